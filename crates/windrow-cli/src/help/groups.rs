//! The list of commands in groups, by what one does with them.

use std::fmt::Write;

use clap::Command;
use clap::builder::StyledStr;

/// Every command, in the order of the list.
const GROUPS: &[(&str, &[&str])] = &[
    ("Look at data", &["demo", "inspect", "peek", "report"]),
    ("Prepare it", &["download", "index", "tokenize", "prep", "convert", "encode", "dummy"]),
    ("Train on it", &["plan", "bench", "trace", "coverage", "extract", "diff"]),
    ("Keep it", &["verify", "manifest", "rebuild-metadata", "cache"]),
    ("This program", &["completions", "man", "help"]),
];

/// The program, its help with the groups.
pub(super) fn listed(command: Command) -> Command {
    let style = command.get_styles().clone();
    let (header, literal) = (style.get_header(), style.get_literal());
    let mut list = StyledStr::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(StyledStr::to_string);
            let _ = writeln!(list, "  {literal}{name:17}{literal:#} {}", about.unwrap_or_default());
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
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        all.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, all);
    }
}
