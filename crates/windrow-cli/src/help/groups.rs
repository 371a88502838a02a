//! The list of commands in groups, by what one does with them.

use std::fmt::Write;

use clap::Command;
use clap::builder::StyledStr;

/// Every command, in the order of the list, and what it does, in few words.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    (
        "Look at data",
        &[
            ("demo", "Try windrow: prepare, inspect and read its sample data"),
            ("inspect", "Show what data is: format, counts, dtype, lengths, files"),
            ("peek", "Show records: decoded text, formatted JSON, drawn series"),
            ("report", "Write an HTML page about data or a plan"),
        ],
    ),
    (
        "Prepare it",
        &[
            ("download", "Download from the Hugging Face Hub or from a store"),
            ("index", "Index the lines of JSONL files"),
            ("tokenize", "Turn text into token IDs"),
            ("prep", "Prepare data in tasks, on one machine or many"),
            ("convert", "Write records in another format"),
            ("encode", "Encode sound files into audio codes"),
            ("dummy", "Write random tokens"),
        ],
    ),
    (
        "Train on it",
        &[
            ("plan", "Write the plan of a run: its data, view and order"),
            ("bench", "Measure how fast batches are made here"),
            ("trace", "Show which bytes a step read"),
            ("find", "Show which steps read a record"),
            ("coverage", "Show which files and records a range of steps read"),
            ("extract", "Write the batch of a step"),
            ("diff", "Compare two plans"),
        ],
    ),
    (
        "Keep it, and this program",
        &[
            ("verify", "Compare data with the sizes, counts and hashes it declares"),
            ("manifest", "Write the manifest of data that has none"),
            ("rebuild-metadata", "Write metadata.json again, from encoded tracks and prompts"),
            ("cache", "List what is in the cache, or clear it"),
            ("completions", "Print the completion script of a shell"),
            ("man", "Print a manual page"),
            ("help", "Print the help of a command or a topic"),
        ],
    ),
];

/// The program, its help with the groups.
pub(super) fn listed(command: Command) -> Command {
    let style = command.get_styles().clone();
    let (header, literal) = (style.get_header(), style.get_literal());
    let mut list = StyledStr::new();
    for (heading, commands) in GROUPS {
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for (name, does) in *commands {
            let _ = writeln!(list, "  {literal}{name:17}{literal:#} {does}");
        }
        let _ = writeln!(list);
    }
    let list = list.ansi().to_string();
    command.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n{{options}}{{after-help}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let line = crate::command::command();
        let mut all: Vec<&str> = line.get_subcommands().map(Command::get_name).collect();
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name)).collect();
        all.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, all);
    }
}
