//! What help shows beside clap's own: groups of commands, examples, variables; and what a short help leaves out.

pub(crate) mod environment;
pub(crate) mod examples;
mod groups;
pub(crate) mod near;

use clap::{Arg, Command};

use crate::hinted::completed;
use crate::own_options::OF_FORMAT;
use crate::text;

/// Headings of options that only `--help` lists: some of them, and what shows all.
const LONG: [(&str, &str); 4] = [
    ("How to cut", "--pack N, --windows N, … how records are cut: see `windrow help views`"),
    ("How to open", "--format NAME, --dtype DTYPE, … how data is opened: see `windrow help data`"),
    ("Which records", "--select WHICH, --where CONDITION  which records: see `windrow help data`"),
    (OF_FORMAT, "--max-shard-bytes BYTES, … options of one format: see --help"),
];

/// Options that few need, which only `--help` lists too.
const RARE: [&str; 23] = [
    "accumulate",
    "allow_empty",
    "append_eos",
    "balance",
    "batch_multiple",
    "chat_date",
    "chat_template",
    "checkpoint_bytes",
    "lengths",
    "map_name",
    "mask_field",
    "max_skipped",
    "max_tokens",
    "messages_field",
    "no_fsync",
    "node_price",
    "pad_value",
    "pool",
    "remainder",
    "special_tokens",
    "scratch",
    "store_options",
    "timeout",
];

/// The program with all of it.
pub(crate) fn dressed(program: Command) -> Command {
    let program = program.mut_subcommands(|command| dress(command, ""));
    groups::listed(program).after_long_help(environment::text())
}

fn dress(command: Command, above: &str) -> Command {
    let path = format!("{above}{}", command.get_name());
    let below = format!("{path} ");
    let mut command = command.mut_subcommands(|command| dress(command, &below));
    let mut short = String::new();
    for (heading, says) in LONG {
        if command.get_arguments().any(|arg| arg.get_help_heading() == Some(heading)) {
            short += &format!("\n  {says}");
        }
    }
    if !short.is_empty() {
        command = command.after_help(format!("More in --help:{short}"));
    }
    let lines: String = examples::of(&path).iter().map(|line| format!("\n  {line}")).collect();
    if !lines.is_empty() {
        command = command.after_long_help(format!("Examples:{lines}"));
    }
    command.mut_args(|arg: Arg| {
        let arg = in_mebibytes(completed(arg));
        let is_long = LONG.iter().any(|(heading, _)| arg.get_help_heading() == Some(heading));
        if is_long || RARE.contains(&arg.get_id().as_str()) { arg.hide_short_help(true) } else { arg }
    })
}

// The default of an argument of many bytes, as it would be typed.
fn in_mebibytes(arg: Arg) -> Arg {
    let bytes = arg.get_default_values().first().and_then(|value| value.to_str()?.parse::<u64>().ok());
    let is_of_bytes =
        arg.get_value_names().is_some_and(|names| names.first().is_some_and(|name| name == "BYTES"));
    match bytes.filter(|_| is_of_bytes) {
        Some(bytes) => {
            let says = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.help(format!("{says} [default: {}]", text::typed_size(bytes))).hide_default_value(true)
        }
        None => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(command: &Command, all: &mut Vec<String>) {
        all.extend(command.get_arguments().map(|arg| arg.get_id().to_string()));
        command.get_subcommands().for_each(|below| ids(below, all));
    }

    #[test]
    fn what_a_short_help_leaves_out_is_an_option_of_some_command() {
        let mut all = Vec::new();
        ids(&crate::command::command(), &mut all);
        for rare in RARE {
            assert!(all.iter().any(|id| id == rare), "{rare}");
        }
    }
}
