//! Warnings of the library, and with `-v` what it does, on stderr.

use std::sync::atomic::{AtomicBool, Ordering};

use log::{Level, LevelFilter, Log, Metadata, Record};
use windrow::dev::store::text_without_secrets;

use crate::stderr::{Message, say};
use crate::text;

struct Stderr;

/// Whether a command runs that shows them.
static LISTENING: AtomicBool = AtomicBool::new(false);

/// While it lives, warnings are shown.
pub(crate) struct Listening {
    before: LevelFilter,
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.store(false, Ordering::Relaxed);
        log::set_max_level(self.before);
    }
}

/// Shows warnings and, where asked for, what the library does. A logger that is there already asks [`took`].
pub(crate) fn listen(most: LevelFilter) -> Listening {
    // There is one already in Python, and where a program runs several commands.
    let _ = log::set_logger(&Stderr);
    let before = log::max_level();
    log::set_max_level(most);
    LISTENING.store(true, Ordering::Relaxed);
    Listening { before }
}

/// Whether a command runs in this process: then it shows a record of the library itself, on stderr.
///
/// For the logger of a program that has one of its own, as Python's is.
pub fn took(record: &Record<'_>) -> bool {
    let takes = LISTENING.load(Ordering::Relaxed);
    if takes && record.target().starts_with("windrow") {
        let message = match record.level() {
            Level::Error => Message::Error,
            Level::Warn => Message::Warning,
            _ => Message::Info,
        };
        say(message, &escaped(&text_without_secrets(&record.args().to_string())));
    }
    takes
}

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("windrow")
    }

    fn log(&self, record: &Record<'_>) {
        took(record);
    }

    fn flush(&self) {}
}

// Names of files are quoted as they are: none may colour the terminal or begin a line. Only an error in a warning has lines.
fn escaped(warning: &str) -> String {
    let mut out = String::with_capacity(warning.len());
    for (number, line) in warning.split('\n').enumerate() {
        let is_of_an_error = line.starts_with("  at: ") || line.starts_with("  hint: ");
        if number > 0 {
            out.push_str(if is_of_an_error { "\n" } else { "\\n" });
        }
        out.push_str(&text::escaped(line));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_lines_of_an_error_stay_lines() {
        assert_eq!(
            escaped("a\u{1b}[2K\nerror: b\r.bin: left out"),
            "a\\u{1b}[2K\\nerror: b\\r.bin: left out"
        );
        let error = "not kept: no space\n  at: /cache\n  hint: delete files";
        assert_eq!(escaped(error), error);
    }
}
