//! One piece of every record: from its start, or from a place drawn again each epoch.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Coverage, View, lengths};
use crate::error::Result;
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// Where a crop begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// Anywhere that leaves it whole, each place equally likely.
    #[default]
    Random,
    /// At the record's first value.
    Start,
}

/// Sample i is up to `length` consecutive values of record i; a shorter record is taken whole.
///
/// Values, not pairs of input and label: a sample never reads `length + 1`.
pub struct Crop {
    lengths: Arc<dyn Lengths>,
    length: u64,
    mode: Mode,
    keeps_empty: bool,
}

impl Crop {
    /// Crops of at most `length` values. O(1) in time and memory for any number of records.
    ///
    /// # Errors
    /// `Config` when `length` is 0.
    pub fn new(lengths: Arc<dyn Lengths>, length: u64, mode: Mode) -> Result<Self> {
        lengths::at_least_one("length", length)?;
        Ok(Crop { lengths, length, mode, keeps_empty: false })
    }

    /// Records without values are samples too: of one piece without values, that names the record.
    #[must_use]
    pub fn keep_empty(mut self) -> Self {
        self.keeps_empty = true;
        self
    }
}

impl View for Crop {
    fn len(&self) -> u64 {
        self.lengths.len()
    }

    fn pieces(&self, sample: u64, draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        let all = self.lengths.length(sample)?;
        let len = all.min(self.length);
        let start = match self.mode {
            // `length` is at least 1, so the number of places fits.
            Mode::Random if all > len => draw.below(all - len + 1, 0),
            _ => 0,
        };
        if len > 0 || self.keeps_empty {
            out.push(Piece::Read(Span { record: sample, start, len }));
        }
        Ok(())
    }

    fn values(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.lengths.lengths(first, out)?;
        out.iter_mut().for_each(|values| *values = (*values).min(self.length));
        Ok(())
    }

    fn samples_of(&self, record: u64, _pass: Pass) -> Result<Range<u64>> {
        lengths::check_record(record, self.len())?;
        Ok(record..record + u64::from(self.lengths.length(record)? > 0 || self.keeps_empty))
    }

    fn positions(&self) -> u64 {
        self.length
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        lengths::sum(&*self.lengths, |len| {
            let used = len.min(self.length);
            Some(Coverage {
                used,
                padded: self.length - used,
                unseen: len - used,
                skipped_records: u64::from(used == 0),
                repeated: 0,
            })
        })
    }

    fn describe(&self) -> String {
        let mode = match self.mode {
            Mode::Random => "random",
            Mode::Start => "start",
        };
        let empty = if self.keeps_empty { ",empty=kept" } else { "" };
        format!("crop(length={},mode={mode}{empty})", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::view::lengths::tests::{Same, counts, show, show_inverse};

    #[track_caller]
    fn check(lengths: &[u64], length: u64, samples: &str, inverse: &str, coverage: [u64; 5]) {
        let view = Crop::new(Arc::new(lengths.to_vec()), length, Mode::Start).unwrap();
        assert_eq!(show(&view), samples);
        assert_eq!(show_inverse(&view, lengths.len() as u64), inverse);
        assert_eq!(counts(&view), coverage);
    }

    #[test]
    fn a_crop_from_the_start_is_the_first_values() {
        check(&[], 3, "", "", [0, 0, 0, 0, 0]);
        check(&[9, 3, 2], 3, "0[0..3] | 1[0..3] | 2[0..2]", "0..1 1..2 2..3", [8, 0, 1, 6, 0]);
        check(&[0, 1], 2, " | 1[0..1]", "0..0 1..2", [1, 0, 3, 0, 1]);
    }

    #[test]
    fn a_random_crop_reaches_every_place_and_no_other() {
        let view = Crop::new(Arc::new(vec![5]), 3, Mode::Random).unwrap();
        let mut starts = [0; 3];
        for epoch in 0..300 {
            let mut pieces = Vec::new();
            view.pieces(0, Draw::new(0, epoch, 0, 0), &mut pieces).unwrap();
            let [Piece::Read(Span { record: 0, start, len: 3 })] = pieces[..] else { panic!("{pieces:?}") };
            starts[usize::try_from(start).unwrap()] += 1;
        }
        assert!(starts.iter().all(|&n| n > 60), "{starts:?}");
    }

    #[test]
    fn the_longest_record_there_can_be_is_cropped() {
        let view = Crop::new(Arc::new(vec![u64::MAX]), 1, Mode::Random).unwrap();
        let mut pieces = Vec::new();
        view.pieces(0, Draw::new(0, 0, 0, 0), &mut pieces).unwrap();
        assert_eq!(pieces[0].len(), 1);
        assert_eq!(counts(&view), [1, 0, 0, u64::MAX - 1, 0]);
    }

    #[test]
    fn wrong_numbers_are_errors() {
        let lengths: Arc<dyn Lengths> = Arc::new(Same(2, u64::MAX));
        assert_eq!(Crop::new(lengths.clone(), 0, Mode::Start).err().unwrap().kind(), Kind::Config);
        let view = Crop::new(lengths, u64::MAX, Mode::Random).unwrap();
        assert_eq!(view.coverage(Pass::default()).unwrap_err().kind(), Kind::Corrupt);
        let e = view.pieces(2, Draw::new(0, 0, 0, 0), &mut Vec::new()).unwrap_err();
        assert_eq!(e.kind(), Kind::OutOfRange);
        assert_eq!(view.samples_of(2, Pass::default()).unwrap_err().kind(), Kind::OutOfRange);
        assert_eq!(view.describe(), "crop(length=18446744073709551615,mode=random)");
    }
}
