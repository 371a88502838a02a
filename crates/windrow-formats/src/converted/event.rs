//! The values of every notation, one event after the other.

use windrow_core::number::Number;
use windrow_core::{DType, Result};

/// How deep values may nest.
pub(crate) const MOST_DEPTH: usize = 120;

/// What GluonTS calls a series.
pub(crate) const TARGET: &str = "target";
/// What it calls the time of a series' first value.
pub(crate) const START: &str = "start";

/// The number that GluonTS writes as a text among those of a target: JSON has no word for it.
pub(crate) fn word_of_target(text: &str) -> Option<f64> {
    match text {
        // A float alone, and one of an array.
        "NaN" | "Nan" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A value, or an end of one, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event<'a> {
    List,
    ListEnd,
    Dict,
    DictEnd,
    /// The key of the value that comes next.
    Key(&'a str),
    Int(i64),
    Float(f64),
    /// A number beyond float64, and the infinity that it becomes.
    Overflow(f64),
    /// A whole number that int64 does not hold.
    Big(&'a str),
    Bool(bool),
    /// One that had a dtype already.
    Stored(Number, DType),
    /// The dtype of a list without numbers.
    Empty(DType),
    Text(&'a str),
    Null,
}

impl Event<'_> {
    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self,
            Event::Int(_)
                | Event::Float(_)
                | Event::Overflow(_)
                | Event::Bool(_)
                | Event::Big(_)
                | Event::Stored(..)
        )
    }

    /// What it is called in an error.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Event::List | Event::ListEnd | Event::Empty(_) => "a list",
            Event::Dict | Event::DictEnd | Event::Key(_) => "an object",
            Event::Bool(_) | Event::Stored(Number::Bool(_), _) => "a boolean",
            Event::Int(_) | Event::Float(_) | Event::Overflow(_) | Event::Big(_) | Event::Stored(..) => {
                "a number"
            }
            Event::Text(_) => "a string",
            Event::Null => "null",
        }
    }
}

/// Receives the values.
pub(crate) trait Sink {
    /// The next one, and the byte at which it is, where that is known; of an end, its last byte.
    ///
    /// # Errors
    /// `Corrupt` when it must not be there.
    fn event(&mut self, event: Event<'_>, byte: Option<u64>) -> Result<()>;
}
