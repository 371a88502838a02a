//! A command line that makes no sense, as any other failure is said: what is wrong, and how to mend it.

use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// What the parser of arguments says.
pub(crate) fn failure(error: &Error, args: &[OsString]) -> Failure {
    let text = error.to_string();
    // The rest is tips and usage, which are asked for by themselves below.
    let mut message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string();
    let listed = |kind| match error.get(kind) {
        Some(ContextValue::Strings(words)) => words.clone(),
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::StyledStrs(tips)) => tips.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    if error.kind() == ErrorKind::MissingRequiredArgument {
        message = format!("{message} {}", listed(ContextKind::InvalidArg).join(", "));
    }
    if error.kind() == ErrorKind::ArgumentConflict && message.ends_with(':') {
        message = format!("{message} {}", listed(ContextKind::PriorArg).join(", "));
    }
    let mut hints = listed(ContextKind::Suggested);
    let near = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let near: Vec<String> = near.into_iter().flat_map(listed).map(|word| format!("`{word}`")).collect();
    if !near.is_empty() {
        hints.push(format!("did you mean {}?", near.join(" or ")));
    }
    let values = listed(ContextKind::ValidValue);
    if !values.is_empty() {
        let begins = if hints.is_empty() { "one" } else { "One" };
        hints.push(format!("{begins} of {}", values.join(", ")));
    }
    if hints.is_empty() {
        hints.push(format!("`{} -h` shows how it is typed", path(args)));
    }
    Failure::Usage { message, hint: Some(hints.join(" ")) }
}

// The command that was typed.
fn path(args: &[OsString]) -> String {
    let program = crate::command::command();
    let (mut command, mut path) = (&program, program.get_name().to_string());
    for arg in args.iter().skip(1).filter(|arg| !arg.to_string_lossy().starts_with('-')) {
        let Some(found) = command.find_subcommand(arg) else { break };
        path = format!("{path} {}", found.get_name());
        command = found;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help::near;

    fn check(line: &str, expected: &str) {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = crate::command::command().try_get_matches_from(&args).unwrap_err();
        assert_eq!(failure(&near::with_nearest(error), &args).to_string(), expected, "{line}");
    }

    #[test]
    fn what_is_typed_wrongly_is_said_in_one_style() {
        check("windrow inspct x", "unrecognized subcommand 'inspct'\n  hint: did you mean `inspect`?");
        check(
            "windrow ls x",
            "unrecognized subcommand 'ls'\n  hint: `windrow inspect` shows what data is: format, counts, lengths, files",
        );
        check(
            "windrow inspect x --histgram",
            "unexpected argument '--histgram' found\n  hint: did you mean `--histogram`?",
        );
        check(
            "windrow dummy --out x",
            "the following required arguments were not provided: --vocab-size <V>, --tokens <N>\n  \
             hint: `windrow dummy -h` shows how it is typed",
        );
        check(
            "windrow prep status",
            "the following required arguments were not provided: <JOB>\n  \
             hint: `windrow prep status -h` shows how it is typed",
        );
        check(
            "windrow inspect x --histogram --mixing",
            "the argument '--histogram' cannot be used with '--mixing'\n  hint: `windrow inspect -h` shows how it is typed",
        );
        check(
            "windrow inspect x --color red",
            "invalid value 'red' for '--color <WHEN>'\n  hint: one of auto, always, never",
        );
    }
}
