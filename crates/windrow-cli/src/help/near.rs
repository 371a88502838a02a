//! Words that other programs have for what a command of windrow does.

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

/// Names the command that does what was typed, where there is no command of that name.
pub(crate) fn hint(error: &Error) -> Option<&'static str> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    NEAR.iter().find(|(words, _)| words.contains(&typed.as_str())).map(|(_, hint)| *hint)
}

/// The error with that as its tip.
pub(crate) fn with_nearest(mut error: Error) -> Error {
    if let Some(hint) = hint(&error) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}
