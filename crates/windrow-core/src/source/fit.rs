//! Which part of each record its statistics come from: what lies after it must not decide how it is scaled.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A part of every record, by which it is scaled as a whole.
///
/// ```
/// use windrow_core::source::Fit;
///
/// assert_eq!(Fit::Fraction(0.0, 0.7).of(10), 0..7);
/// assert_eq!(Fit::Values(2, 100).of(10), 2..10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Of `T` values those from `floor(T × from)` on, up to `floor(T × to)`.
    Fraction(f64, f64),
    /// The values from this number on, up to that one or the record's end.
    Values(u64, u64),
}

impl Fit {
    /// The values that a record of `length` values is fitted on.
    pub fn of(self, length: u64) -> Range<u64> {
        let (start, end) = match self {
            Fit::Fraction(from, to) => ((length as f64 * from) as u64, (length as f64 * to) as u64),
            Fit::Values(start, end) => (start, end),
        };
        let end = end.min(length);
        start.min(end)..end
    }

    /// # Errors
    /// `Config` when it is empty, or a fraction lies outside of 0 to 1.
    pub fn check(self) -> Result<()> {
        let is_one = match self {
            Fit::Fraction(from, to) => 0.0 <= from && from < to && to <= 1.0,
            Fit::Values(start, end) => start < end,
        };
        if is_one {
            Ok(())
        } else {
            Err(Error::config(format!("@fit={self}@ is not a part of a record")).field("fit").hint(
                "@fit=(0.0, 0.7)@ takes the first 70 % of each record, @fit=range(0, 500)@ its first 500 values",
            ))
        }
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fit::Fraction(from, to) => write!(f, "({from:?}, {to:?})"),
            Fit::Values(start, end) => write!(f, "range({start}, {end})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_within_the_record() {
        for (fit, length, part) in [
            (Fit::Fraction(0.0, 0.7), 20, 0..14),
            (Fit::Fraction(0.25, 0.5), 9, 2..4),
            (Fit::Fraction(0.0, 1.0), u64::from(u32::MAX), 0..u64::from(u32::MAX)),
            (Fit::Fraction(0.0, 0.3), 2, 0..0),
            (Fit::Values(5, 9), 7, 5..7),
            (Fit::Values(5, 9), 3, 3..3),
        ] {
            assert_eq!(fit.of(length), part, "{fit} of {length}");
        }
    }

    #[test]
    fn what_is_no_part_is_an_error() {
        let nan = f64::NAN;
        for (from, to) in [(0.5, 0.5), (0.7, 0.2), (-0.1, 0.5), (0.0, 1.5), (nan, 1.0), (0.0, nan)] {
            assert!(Fit::Fraction(from, to).check().is_err(), "{from} {to}");
        }
        assert!(Fit::Values(3, 3).check().is_err());
        assert!(Fit::Fraction(0.0, 1.0).check().is_ok() && Fit::Values(0, u64::MAX).check().is_ok());
    }
}
