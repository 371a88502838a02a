//! One sample per record: its first values, padded at the end. Nothing is stored, nothing is scanned.

use std::ops::Range;
use std::sync::Arc;

use super::{Coverage, View, lengths};
use crate::error::Result;
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// Sample i is the first `length + 1` values of record i, fewer where the record is shorter: [`Records::apart`] leaves out
/// the one that is only a label.
///
/// A record of one value or none gives a sample too: all padding but for what there is.
pub struct Records {
    lengths: Arc<dyn Lengths>,
    length: u64,
    /// 1 where the value after the last input is read for its label.
    label: u64,
    /// `length + label`.
    values: u64,
}

impl Records {
    /// Rows of `length` positions. O(1) in time and memory for any number of records.
    ///
    /// # Errors
    /// `Config` when `length` is 0 or 2^64 - 1.
    pub fn new(lengths: Arc<dyn Lengths>, length: u64) -> Result<Self> {
        Records::cut(lengths, length, 1)
    }

    /// Rows of `length` positions from `length` values.
    ///
    /// # Errors
    /// As [`Records::new`].
    pub fn apart(lengths: Arc<dyn Lengths>, length: u64) -> Result<Self> {
        Records::cut(lengths, length, 0)
    }

    fn cut(lengths: Arc<dyn Lengths>, length: u64, label: u64) -> Result<Self> {
        let values = lengths::with_label("length", length, label)?;
        Ok(Records { lengths, length, label, values })
    }
}

impl View for Records {
    fn len(&self) -> u64 {
        self.lengths.len()
    }

    fn pieces(&self, sample: u64, _draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        let len = self.lengths.length(sample)?.min(self.values);
        if len > 0 {
            out.push(Piece::Read(Span { record: sample, start: 0, len }));
        }
        Ok(())
    }

    fn values(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.lengths.lengths(first, out)?;
        out.iter_mut().for_each(|values| *values = (*values).min(self.values));
        Ok(())
    }

    fn documents(&self, pieces: &[Piece], out: &mut Vec<u64>) {
        // A last value is a label alone, also of a record that fills no row.
        out.extend(pieces.iter().map(|piece| piece.len().saturating_sub(self.label)).filter(|len| *len > 0));
    }

    fn samples_of(&self, record: u64, _pass: Pass) -> Result<Range<u64>> {
        lengths::check_record(record, self.len())?;
        Ok(record..record + u64::from(self.lengths.length(record)? > 0))
    }

    fn positions(&self) -> u64 {
        self.length
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        lengths::sum(&*self.lengths, |len| {
            let used = len.min(self.values);
            Some(Coverage {
                used,
                padded: self.length - used.saturating_sub(self.label),
                unseen: len - used,
                skipped_records: u64::from(used == 0),
                repeated: 0,
            })
        })
    }

    fn describe(&self) -> String {
        format!("records(length={}{})", self.length, lengths::apart(self.label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::view::lengths::tests::{Same, counts, show, show_inverse};

    #[track_caller]
    fn check(lengths: &[u64], length: u64, samples: &str, inverse: &str, coverage: [u64; 5]) {
        let view = Records::new(Arc::new(lengths.to_vec()), length).unwrap();
        assert_eq!(show(&view), samples);
        assert_eq!(show_inverse(&view, lengths.len() as u64), inverse);
        assert_eq!(counts(&view), coverage);
    }

    #[test]
    fn every_record_gives_one_row() {
        check(&[], 3, "", "", [0, 0, 0, 0, 0]);
        check(&[9, 2], 3, "0[0..4] | 1[0..2]", "0..1 1..2", [6, 0, 2, 5, 0]);
        check(&[4, 3, 1], 3, "0[0..4] | 1[0..3] | 2[0..1]", "0..1 1..2 2..3", [8, 0, 4, 0, 0]);
        check(&[0, 5], 4, " | 1[0..5]", "0..0 1..2", [5, 0, 4, 0, 1]);
    }

    #[test]
    fn rows_apart_read_no_value_more() {
        let view = Records::apart(Arc::new(vec![9, 3, 2, 0]), 3).unwrap();
        assert_eq!(show(&view), "0[0..3] | 1[0..3] | 2[0..2] | ");
        assert_eq!(counts(&view), [8, 0, 4, 6, 1]);
        assert_eq!((view.positions(), view.describe()), (3, "records(length=3,apart)".to_string()));
        assert_eq!(Records::apart(Arc::new(vec![9]), 0).err().unwrap().kind(), Kind::Config);
    }

    #[test]
    fn a_thousand_million_rows_are_arithmetic() {
        let view = Records::new(Arc::new(Same(1_000_000_000, 1_024)), 1_023).unwrap();
        assert_eq!(view.len(), 1_000_000_000);
        assert_eq!(counts(&view), [1_024_000_000_000, 0, 0, 0, 0]);
        assert_eq!(view.samples_of(999_999_999, Pass::default()).unwrap(), 999_999_999..1_000_000_000);
    }

    #[test]
    fn wrong_numbers_are_errors() {
        let lengths: Arc<dyn Lengths> = Arc::new(vec![3, u64::MAX, u64::MAX]);
        for length in [0, u64::MAX] {
            assert_eq!(Records::new(lengths.clone(), length).err().unwrap().kind(), Kind::Config);
        }
        let view = Records::new(lengths, 2).unwrap();
        assert_eq!(view.coverage(Pass::default()).unwrap_err().kind(), Kind::Corrupt);
        let e = view.pieces(3, Draw::new(0, 0, 0, 0), &mut Vec::new()).unwrap_err();
        assert_eq!(e.kind(), Kind::OutOfRange);
        assert_eq!(view.samples_of(3, Pass::default()).unwrap_err().kind(), Kind::OutOfRange);
        assert_eq!(view.describe(), "records(length=2)");
    }
}
