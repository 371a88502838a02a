//! How a command fails, the exit code it gives, and its JSON.

use std::{fmt, io};

use serde_json::{Value, json};
use windrow::{Error, Kind};

use crate::{spelling, text};

/// Done.
pub(crate) const DONE: i32 = 0;
/// Failed.
pub(crate) const FAILED: i32 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: i32 = 2;
/// The data is bad.
pub(crate) const BAD_DATA: i32 = 3;
/// A state, plan or tokenizer does not fit the data.
pub(crate) const MISMATCH: i32 = 4;
/// Some of it is done, and can be run again for the rest.
pub(crate) const PARTLY: i32 = 5;
/// Stopped by the user.
pub(crate) const INTERRUPTED: i32 = 130;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What windrow says.
    Windrow(Error),
    /// A job of which some tasks are left: nothing of it is bad.
    Unfinished(Error),
    /// Arguments that each parse but make no sense together.
    Usage { message: String, hint: Option<String> },
    /// stdout cannot be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::Usage { message: message.into(), hint: None }
    }

    pub(crate) fn exit(&self) -> i32 {
        match self {
            Failure::Usage { .. } => USAGE,
            Failure::Output(_) => FAILED,
            Failure::Unfinished(_) => PARTLY,
            Failure::Windrow(e) => match e.kind() {
                Kind::Corrupt | Kind::Stale | Kind::Unrecognised => BAD_DATA,
                Kind::Mismatch => MISMATCH,
                Kind::Config => USAGE,
                Kind::Interrupted => INTERRUPTED,
                _ => FAILED,
            },
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let (kind, message, hint) = match self {
            Failure::Usage { message, hint } => ("usage", message.clone(), hint.as_deref()),
            Failure::Output(e) => ("io", format!("cannot write to stdout: {e}"), None),
            Failure::Windrow(e) | Failure::Unfinished(e) => {
                (e.kind().name(), text::message(e), e.hint_text())
            }
        };
        // Every error has every key, so that a program need not ask which it is.
        let place = match self {
            Failure::Windrow(e) | Failure::Unfinished(e) => Some(e.place()),
            Failure::Usage { .. } | Failure::Output(_) => None,
        };
        json!({
            "kind": kind,
            "message": message,
            "path": place.and_then(|p| p.file.as_ref()),
            "record": place.and_then(|p| p.record),
            "byte": place.and_then(|p| p.byte),
            "field": place.and_then(|p| p.field.as_ref()),
            "hint": hint,
            "exit": self.exit(),
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Windrow(e) | Failure::Unfinished(e) => match option_of(e) {
                Some(option) => write!(f, "{:#}", e.again().field(option)),
                None => write!(f, "{e:#}"),
            },
            Failure::Usage { message, hint } => {
                f.write_str(message)?;
                hint.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
            }
            Failure::Output(e) => write!(f, "cannot write to stdout: {e}"),
        }
    }
}

// The option that an error is about, as it is typed.
fn option_of(error: &Error) -> Option<String> {
    let place = error.place();
    let is_of_a_file = place.file.is_some() || !matches!(error.kind(), Kind::Config | Kind::Mismatch);
    place.field.as_deref().filter(|_| !is_of_a_file).and_then(spelling::option)
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Windrow(e)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Output(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_kind() {
        let exit = |kind| Failure::from(Error::new(kind, "x")).exit();
        assert_eq!(exit(Kind::NotFound), 1);
        assert_eq!(exit(Kind::Exists), 1);
        assert_eq!(exit(Kind::Memory), 1);
        assert_eq!(exit(Kind::Config), 2);
        assert_eq!(exit(Kind::Corrupt), 3);
        assert_eq!(exit(Kind::Stale), 3);
        assert_eq!(exit(Kind::Unrecognised), 3);
        assert_eq!(exit(Kind::Mismatch), 4);
        assert_eq!(exit(Kind::Interrupted), 130);
        assert_eq!(Failure::from(io::Error::other("full")).exit(), 1);
        assert_eq!(Failure::Unfinished(Error::new(Kind::Stale, "x")).exit(), 5);
    }

    #[test]
    fn every_failure_has_the_same_keys_in_json() {
        let keys = |failure: Failure| match failure.to_json() {
            Value::Object(fields) => fields.keys().cloned().collect::<Vec<_>>(),
            other => panic!("{other}"),
        };
        let expected = keys(Failure::from(Error::corrupt("bad")));
        assert_eq!(keys(Failure::usage("two views")), expected);
        assert_eq!(keys(Failure::from(io::Error::other("full"))), expected);
    }

    #[test]
    fn json_has_kind_place_and_hint() {
        let e = Error::corrupt("bad").at("a.jsonl").record(3).byte(17).hint("mend it");
        let json = Failure::from(e).to_json();
        assert_eq!(json["kind"], "corrupt");
        assert_eq!(
            (&json["path"], &json["record"], &json["byte"]),
            (&json!("a.jsonl"), &json!(3), &json!(17))
        );
        assert_eq!((&json["hint"], &json["exit"]), (&json!("mend it"), &json!(3)));
    }
}
