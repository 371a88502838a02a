//! Whether what is printed has colours: as `--color` says, else as the environment and the terminal do.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum;
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Style};

/// What `--color` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// What was asked for, by its place in `Color`. A process runs one command at a time.
static ASKED: AtomicU8 = AtomicU8::new(Color::Auto as u8);

/// Colours from here on as asked.
pub(crate) fn choose(asked: Color) {
    ASKED.store(asked as u8, Ordering::Relaxed);
}

/// What these arguments ask for, also where they make no sense otherwise.
pub(crate) fn typed(args: &[OsString]) -> Color {
    let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let own = words.iter().enumerate().filter_map(|(i, word)| match word.strip_prefix("--color") {
        Some("") => words.get(i + 1).map(AsRef::as_ref),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    });
    own.filter_map(|value| Color::from_str(value, false).ok()).next_back().unwrap_or(Color::Auto)
}

/// Whether what is written to this has colours.
pub(crate) fn of(stream: &impl IsTerminal) -> bool {
    let asked = ASKED.load(Ordering::Relaxed);
    match asked {
        _ if asked == Color::Always as u8 => true,
        _ if asked == Color::Never as u8 => false,
        _ => by_environment(&|name| std::env::var(name).ok(), stream.is_terminal()),
    }
}

/// A help as it is written to this.
pub(crate) fn shown(help: &StyledStr, stream: &impl IsTerminal) -> String {
    if of(stream) { help.ansi().to_string() } else { help.to_string() }
}

// As other programs read these variables; an empty one says nothing.
fn by_environment(variable: &dyn Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
    match () {
        () if is_set("NO_COLOR") => false,
        () if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
        () => is_terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb"),
    }
}

/// How `error:` looks.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// How `warning:` looks.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// How `at:`, `hint:` and `info:` look.
pub(crate) const LABEL: Style = AnsiColor::Cyan.on_default();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_say_whether_there_are_colours() {
        let check = |set: &[(&str, &str)], is_terminal: bool, expected: bool| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_string())
            };
            assert_eq!(by_environment(&variable, is_terminal), expected, "{set:?} {is_terminal}");
        };
        check(&[], true, true);
        check(&[], false, false);
        check(&[("NO_COLOR", "1")], true, false);
        check(&[("NO_COLOR", "")], true, true);
        check(&[("CLICOLOR_FORCE", "1")], false, true);
        check(&[("CLICOLOR_FORCE", "0")], false, false);
        check(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, false);
        check(&[("CLICOLOR", "0")], true, false);
        check(&[("TERM", "dumb")], true, false);
    }

    #[test]
    fn what_is_asked_for_is_found_in_any_arguments() {
        let check = |line: &str, expected: Color| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(typed(&args), expected, "{line}");
        };
        check("windrow inspect x", Color::Auto);
        check("windrow --color always nosuch", Color::Always);
        check("windrow nosuch --color=never", Color::Never);
        check("windrow nosuch --color", Color::Auto);
        check("windrow nosuch --color red", Color::Auto);
        check("windrow --color=never nosuch --color always", Color::Always);
    }
}
