//! Options as they are typed: what the library's texts name is spelt as an argument of the command that runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Arc, LazyLock};

use windrow::dev::spelling::{Frontend, Mark, speak, spelt};
use windrow::{LOADER, VIEWS};

use crate::text;

/// Numbers within `--shuffle blocks:size=2048,lanes=64`, which are typed as Python has them.
const OF_BLOCKS: [&str; 4] = ["size", "lanes", "pool", "bytes"];

/// A command, as it is typed behind the program's name, and its options.
struct Command {
    path: String,
    flags: BTreeSet<String>,
}

/// The command that runs, and all there are.
struct Typed {
    own: Command,
    all: Vec<Command>,
}

/// While it lives, texts are for a command line.
pub(crate) struct Spoken {
    before: Frontend,
}

impl Drop for Spoken {
    fn drop(&mut self) {
        speak(std::mem::take(&mut self.before));
    }
}

/// Spells texts for whoever typed these arguments; `commands` are all there are.
pub(crate) fn of_command(commands: fn() -> clap::Command, args: &[OsString]) -> Spoken {
    let args = args.to_vec();
    // Most runs say nothing.
    let typed = LazyLock::new(move || Typed::of(&commands(), &args));
    Spoken { before: speak(Frontend::CommandLine(Arc::new(move |mark| typed.spell(mark)))) }
}

/// The option that a field of an error's place is, where the command has one of this name.
pub(crate) fn option(field: &str) -> Option<String> {
    // Without a file, it is the dtype of what is written.
    let names = if field == "dtype" { vec!["as_dtype", field] } else { vec![field] };
    let typed = names.into_iter().map(|name| spelt(format!("@the {name}@")));
    typed.into_iter().find(|typed| typed.starts_with("--") && !typed.contains(' '))
}

impl Typed {
    fn of(root: &clap::Command, args: &[OsString]) -> Typed {
        let (mut command, mut path) = (root, Vec::new());
        for arg in args.iter().skip(1).filter(|arg| !arg.to_string_lossy().starts_with('-')) {
            let Some(found) = command.find_subcommand(arg) else { break };
            path.push(found.get_name());
            command = found;
        }
        let mut all = Vec::new();
        Command::add_below(root, "", &mut all);
        // Those within others last.
        all.sort_by_key(|command| command.path.contains(' '));
        Typed { own: Command::of(command, path.join(" ")), all }
    }

    fn spell(&self, mark: &Mark<'_>) -> String {
        if let Some(flag) = self.own.flag(mark).or_else(|| self.own.of_writing(mark)) {
            return typed(&flag, mark);
        }
        let of = if mark.is_spoken_of { "the " } else { "" };
        let value = mark.value.map_or(String::new(), |value| format!("={value}"));
        let python = Frontend::Python.spell(&format!("@{of}{}{value}@", mark.name));
        if OF_BLOCKS.contains(&mark.name) {
            return python;
        }
        match self.all.iter().find_map(|command| Some((command, command.flag(mark)?))) {
            Some((command, flag)) => format!("{} (of `windrow {}`)", typed(&flag, mark), command.path),
            None => format!("{python} (in Python)"),
        }
    }
}

impl Command {
    fn of(command: &clap::Command, path: String) -> Command {
        let flags = command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_string).collect();
        Command { path, flags }
    }

    fn add_below(command: &clap::Command, path: &str, all: &mut Vec<Command>) {
        for below in command.get_subcommands() {
            let path = format!("{path}{}", below.get_name());
            Command::add_below(below, &format!("{path} "), all);
            all.push(Command::of(below, path));
        }
    }

    // The option that is meant, where it has one.
    fn flag(&self, mark: &Mark<'_>) -> Option<String> {
        let plain = match mark.name {
            "store_options" => "store-option".to_string(),
            name => name.replace('_', "-"),
        };
        let rows = VIEWS.iter().flat_map(|view| view.options()).chain(LOADER);
        let named = rows.filter(|row| row.name == mark.name).find_map(|row| row.flag);
        let named = named.map(|flag| flag.replace('_', "-"));
        let off = format!("no-{plain}");
        let positive = [Some(plain), named].into_iter().flatten();
        match mark.value {
            Some("false") => self.flags.contains(&off).then_some(off),
            _ => positive.chain([off]).find(|flag| self.flags.contains(flag)),
        }
    }

    // What opens no data has one dtype, that of what it writes.
    fn of_writing(&self, mark: &Mark<'_>) -> Option<String> {
        let is_it = mark.name == "as_dtype" && !self.flags.contains("format");
        Some("dtype".to_string()).filter(|flag| is_it && self.flags.contains(flag))
    }
}

fn typed(flag: &str, mark: &Mark<'_>) -> String {
    match mark.value {
        None | Some("true" | "false") => format!("--{flag}"),
        Some(value) => format!("--{flag} {}", argument(value)),
    }
}

// A value as a shell takes it: a text without its quotes, several with commas.
fn argument(value: &str) -> String {
    let within = |start: &str, end: &str| value.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    if let Some((from, to)) = within("range(", ")").and_then(|range| range.split_once(", ")) {
        return format!("{from}..{to}");
    }
    if let Some((name, value)) = within("{", "}").and_then(|pair| pair.split_once(": ")) {
        let joined = if value.starts_with('{') { "." } else { "=" };
        return format!("{}{joined}{}", name.trim_matches('"'), argument(value));
    }
    match within("(", ")").or_else(|| within("[", "]")) {
        Some(several) => several.split(", ").map(argument).collect::<Vec<_>>().join(","),
        None if value == "…" => value.to_string(),
        None => text::quoted(&serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, text: &str, expected: &str) {
        let args: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        let typed = Typed::of(&crate::command::command(), &args);
        let frontend = Frontend::CommandLine(Arc::new(move |mark| typed.spell(mark)));
        assert_eq!(frontend.spell(text), expected, "{command}");
    }

    #[test]
    fn an_option_is_spelt_as_the_command_has_it() {
        check("windrow bench x", "leave @dtype@ out", "leave --dtype out");
        check("windrow --json bench x", "@dtype=uint16@", "--dtype uint16");
        check("windrow convert a b", "@as_dtype=float32@", "--as-dtype float32");
        check("windrow prep plan tokenize x", "a wider @as_dtype@", "a wider --dtype");
        check("windrow bench x", "a wider @as_dtype@", "a wider --as-dtype (of `windrow convert`)");
        check("windrow inspect x", "@the document_eos@ was given", "--document-eos was given");
        check("windrow bench x", "@trust=true@ reads it", "--trust reads it");
        check("windrow bench x", "@fit=(0.0, 0.7)@, @fit=range(0, 500)@", "--fit 0.0,0.7, --fit 0..500");
        check("windrow bench x", "@fields=[\"a b\", \"c\"]@", "--fields 'a b',c");
        check("windrow bench x", "@split=\"a'b\"@, @split=…@", "--split 'a'\\''b', --split …");
        check("windrow bench x", "@store_options={\"region\": …}@", "--store-option region=…");
        check(
            "windrow bench x",
            "@store_options={\"headers\": {\"Authorization\": …}}@",
            "--store-option headers.Authorization=…",
        );
        check("windrow tokenize x", "@block_sums=false@", "--no-block-sums");
        check("windrow bench x", "@drop_last=false@, @row_columns@", "--no-drop-last, --row-columns");
        check("windrow bench x", "@scaler@ is for @collate@", "--scaler is for collate= (in Python)");
        check(
            "windrow peek x",
            "@skip=3@ and @stack@",
            "skip=3 (in Python) and --stack (of `windrow report`)",
        );
    }
}
