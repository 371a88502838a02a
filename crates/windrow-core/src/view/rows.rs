//! One sample per record, the record whole: for records that are rows, texts or JSON, which nothing is cut of.

use std::ops::Range;

use super::{Coverage, View, lengths};
use crate::error::Result;
use crate::record::{Draw, Pass, Piece, Span};

/// Sample i is record i. Its piece is a span of one value, whatever the record's length: no length is asked for.
///
/// Positions and [`Coverage`] count records.
pub struct Rows {
    n_records: u64,
}

impl Rows {
    /// One sample for each of `n_records` records.
    pub fn new(n_records: u64) -> Rows {
        Rows { n_records }
    }
}

impl View for Rows {
    fn len(&self) -> u64 {
        self.n_records
    }

    fn pieces(&self, sample: u64, _draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.n_records)?;
        out.push(Piece::Read(Span { record: sample, start: 0, len: 1 }));
        Ok(())
    }

    fn samples_of(&self, record: u64, _pass: Pass) -> Result<Range<u64>> {
        lengths::check_record(record, self.n_records)?;
        Ok(record..record + 1)
    }

    fn positions(&self) -> u64 {
        1
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        Ok(Coverage { used: self.n_records, ..Coverage::default() })
    }

    fn describe(&self) -> String {
        "rows".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::view::lengths::tests::{counts, show, show_inverse};

    #[test]
    fn every_record_is_a_sample() {
        let view = Rows::new(3);
        assert_eq!(show(&view), "0[0..1] | 1[0..1] | 2[0..1]");
        assert_eq!(show_inverse(&view, 3), "0..1 1..2 2..3");
        assert_eq!((counts(&view), view.positions()), ([3, 0, 0, 0, 0], 1));
        assert_eq!(
            view.pieces(3, Draw::new(0, 0, 0, 0), &mut Vec::new()).unwrap_err().kind(),
            Kind::OutOfRange
        );
        assert_eq!(view.samples_of(3, Pass::default()).unwrap_err().kind(), Kind::OutOfRange);
        assert!(Rows::new(0).is_empty());
    }
}
