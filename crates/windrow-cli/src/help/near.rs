//! Words that other programs have for what a command of windrow does, and names that options of it had.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is typed, and what does it here.
const NEAR: &[(&[&str], &str)] = &[
    (
        &["ls", "info", "describe", "show"],
        "`windrow inspect` shows what data is: format, counts, lengths, files",
    ),
    (
        &["head", "cat", "view", "tail", "less", "print"],
        "`windrow peek` shows records; -n N, --index -1 say which",
    ),
    (
        &["stats", "histogram", "hist", "wc"],
        "`windrow inspect --histogram` counts records by length; `windrow report` writes a page",
    ),
    (&["tokenise", "tokenizer"], "`windrow tokenize` turns text into token IDs"),
    (&["check", "validate", "fsck"], "`windrow verify` compares data with what was written down of it"),
    (&["recipe"], "`windrow plan` writes the plan of a run"),
];

/// Options that were called otherwise, of which a similar name is another option, and what does it here.
const RENAMED: &[(&str, &str)] = &[
    (
        "--eos",
        "--document-eos ID is the EOS token in raw token files; --eos is an option of --pack and `windrow tokenize`",
    ),
    ("--keep-last", "--no-drop-last keeps the last batch"),
    ("--no-durable", "--no-fsync does not wait for the disk"),
    ("--record", "`windrow find PLAN --record N` shows which steps read a record"),
];

/// Names the command or the option that does what was typed, where there is none of that name.
pub(crate) fn hint(error: &Error) -> Option<&'static str> {
    let typed = |context| match error.get(context) {
        Some(ContextValue::String(typed)) => Some(typed.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = typed(ContextKind::InvalidSubcommand)?;
            NEAR.iter().find(|(words, _)| words.contains(&typed)).map(|(_, hint)| *hint)
        }
        ErrorKind::UnknownArgument => {
            let typed = typed(ContextKind::InvalidArg)?;
            RENAMED.iter().find(|(name, _)| *name == typed).map(|(_, hint)| *hint)
        }
        _ => None,
    }
}

/// The error with that as its tip.
pub(crate) fn with_nearest(mut error: Error) -> Error {
    if let Some(hint) = hint(&error) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}
