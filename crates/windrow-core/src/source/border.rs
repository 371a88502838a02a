//! Where parts of records in time meet: at a fraction of their values, some values before their end, or at a time.

use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

/// Where a part of each record begins or ends.
///
/// ```
/// use windrow_core::source::Border;
///
/// assert_eq!([10, 3].map(|length| Border::Fraction(0.7).of(0, length)), [7, 2]);
/// assert_eq!([10, 3].map(|length| Border::Last(4).of(0, length)), [6, 0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Border {
    /// After the first `floor(T × fraction)` of T values.
    Fraction(f64),
    /// This many values before the end; at the beginning of a shorter record.
    Last(u64),
    /// At a time.
    Time {
        /// The time, as text.
        at: Arc<str>,
        /// How many values of each record are before it; those of a longer record than there are.
        before: Arc<[u64]>,
    },
}

impl Border {
    /// How many of a record's `length` values come before it.
    pub fn of(&self, record: u64, length: u64) -> u64 {
        match self {
            Border::Fraction(fraction) => ((length as f64 * fraction) as u64).min(length),
            Border::Last(n) => length.saturating_sub(*n),
            Border::Time { before, .. } => {
                let before = usize::try_from(record).ok().and_then(|record| before.get(record));
                before.map_or(length, |n| length.min(*n))
            }
        }
    }

    /// Moves the border to records that each became `n` records, one after the other.
    #[must_use]
    pub fn repeated(&self, n: usize) -> Border {
        match self {
            Border::Time { at, before } if n != 1 => Border::Time {
                at: at.clone(),
                before: before.iter().flat_map(|before| std::iter::repeat_n(*before, n)).collect(),
            },
            other => other.clone(),
        }
    }

    /// Whether it is at the same place of all records of one length.
    pub(super) fn is_by_length(&self) -> bool {
        !matches!(self, Border::Time { .. })
    }

    /// Takes in what decides it besides its words: the times of the records.
    pub(super) fn hash(&self, hash: &mut Xxh3) {
        if let Border::Time { before, .. } = self {
            before.iter().for_each(|n| hash.update(&n.to_le_bytes()));
        }
    }
}

/// What a plan says of it: another border, other words.
impl fmt::Display for Border {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Border::Fraction(fraction) => write!(f, "{fraction:?}"),
            Border::Last(n) => write!(f, "last {n}"),
            Border::Time { at, .. } => f.write_str(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_lies_within_its_record() {
        let time = Border::Time { at: "2020".into(), before: [0, 4, 9].into() };
        assert_eq!([(0, 5), (1, 5), (2, 5)].map(|(record, length)| time.of(record, length)), [0, 4, 5]);
        let twice = time.repeated(2);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|record| twice.of(record, 9)), [0, 0, 4, 4, 9, 9]);
        assert_eq!([0, 47, 48, 50].map(|length| Border::Last(48).of(0, length)), [0, 0, 0, 2]);
        assert_eq!([1, 20].map(|length| Border::Fraction(0.75).of(0, length)), [0, 15]);
        assert_eq!(
            [time, Border::Last(48), Border::Fraction(1.0)].map(|b| b.to_string()),
            ["2020", "last 48", "1.0"]
        );
    }
}
