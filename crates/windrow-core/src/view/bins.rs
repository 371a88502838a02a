//! Whole records packed into bins of so many positions: no record is split, little is padded.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::fit::{self, NO_BIN};
use super::{Coverage, View, allocate, lengths};
use crate::error::{Error, Result};
use crate::record::{Draw, Lengths, Piece, Span};

/// Which bin a record goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The longest record first (equal ones in record order), each to the fullest bin that still has room for it; of
    /// several such, to the one filled last. Packs tightest.
    #[default]
    BestFit,
    /// In record order, each to the first bin that still has room for it. Neighbours stay near each other.
    FirstFit,
}

/// Sample i is bin i: the records in it, in record order, in `length` positions together.
///
/// A record of n values takes n positions; its last position has no label. A record longer than `length` is cut: it
/// reads `length + 1` values ([`Bins::apart`]: `length`) and takes `length` positions, the rest is counted as unseen. Empty
/// records are skipped.
///
/// ```
/// # use std::sync::Arc;
/// use windrow_core::view::{Bins, Strategy, View};
///
/// let bins = Bins::new(Arc::new(vec![3, 0, 6, 5, 2]), 8, Strategy::BestFit)?;
/// assert_eq!(bins.len(), 2); // 6 + 2, 5 + 3
/// assert_eq!(bins.samples_of(4)?, 0..1);
/// assert_eq!(bins.max_segments(), 2);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Bins {
    lengths: Arc<dyn Lengths>,
    length: u64,
    /// 1 where a record that is cut reads the value after it as the last label.
    label: u64,
    strategy: Strategy,
    layout: Layout,
    max_segments: u64,
}

/// Which records are in which bin.
enum Layout {
    /// All records are equal: so many to a bin, in record order, whatever the strategy.
    Even { per_bin: u64, bins: u64 },
    /// By list: 12 bytes per record at most.
    Listed {
        /// Each record's bin, or [`NO_BIN`].
        bin_of: Vec<u32>,
        /// Records bin by bin.
        order: Vec<u32>,
        /// Where each bin ends in `order`.
        ends: Vec<u32>,
    },
}

/// Bins are found in a table with one place per free capacity; this many are 1 GiB of it at worst.
const MOST_POSITIONS: u64 = 1 << 28;

impl Bins {
    /// Bins of `length` positions. O(1) for uniform lengths; otherwise one pass and a sort (best fit) or a search per
    /// record (first fit), then at most 12 bytes per record.
    ///
    /// # Errors
    /// `Config` when `length` is 0 or above 2^28, or there are 2^32 - 1 records or more of unequal length; what the
    /// lengths say.
    pub fn new(lengths: Arc<dyn Lengths>, length: u64, strategy: Strategy) -> Result<Self> {
        Bins::cut(lengths, length, strategy, 1)
    }

    /// The same bins, of which a record that is cut reads `length` values.
    ///
    /// # Errors
    /// As [`Bins::new`].
    pub fn apart(lengths: Arc<dyn Lengths>, length: u64, strategy: Strategy) -> Result<Self> {
        Bins::cut(lengths, length, strategy, 0)
    }

    fn cut(lengths: Arc<dyn Lengths>, length: u64, strategy: Strategy, label: u64) -> Result<Self> {
        lengths::at_least_one("length", length)?;
        if length > MOST_POSITIONS {
            return Err(Error::config(format!(
                "length is {length}, expected at most {MOST_POSITIONS} for bins"
            ))
            .hint("give the positions of one sample as length"));
        }
        let (layout, max_segments) = match lengths::uniform(&*lengths)? {
            Some(each) => even(lengths.len(), each.min(length), length),
            None => listed(&*lengths, length, strategy)?,
        };
        Ok(Bins { lengths, length, label, strategy, layout, max_segments })
    }

    /// Records in the bin that holds most of them; 0 where there is no bin.
    pub fn max_segments(&self) -> u64 {
        self.max_segments
    }

    fn read(&self, record: u64, out: &mut Vec<Piece>) -> Result<()> {
        let len = self.lengths.length(record)?.min(self.length + self.label);
        out.push(Piece::Read(Span { record, start: 0, len }));
        Ok(())
    }
}

impl View for Bins {
    fn len(&self) -> u64 {
        match &self.layout {
            Layout::Even { bins, .. } => *bins,
            Layout::Listed { ends, .. } => ends.len() as u64,
        }
    }

    fn pieces(&self, sample: u64, _draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        match &self.layout {
            Layout::Even { per_bin, .. } => {
                let start = sample * per_bin;
                let end = start.saturating_add(*per_bin).min(self.lengths.len());
                (start..end).try_for_each(|record| self.read(record, out))
            }
            Layout::Listed { order, ends, .. } => {
                let bin = sample as usize;
                let start = if bin == 0 { 0 } else { ends[bin - 1] as usize };
                let records = &order[start..ends[bin] as usize];
                records.iter().try_for_each(|&record| self.read(record.into(), out))
            }
        }
    }

    fn samples_of(&self, record: u64) -> Result<Range<u64>> {
        lengths::check_record(record, self.lengths.len())?;
        Ok(match &self.layout {
            Layout::Even { bins: 0, .. } => 0..0,
            Layout::Even { per_bin, .. } => record / per_bin..record / per_bin + 1,
            Layout::Listed { bin_of, .. } => match bin_of[record as usize] {
                NO_BIN => 0..0,
                bin => u64::from(bin)..u64::from(bin) + 1,
            },
        })
    }

    fn positions(&self) -> u64 {
        self.length
    }

    fn coverage(&self) -> Result<Coverage> {
        let n = self.lengths.len();
        // In `padded` first what the records fill, then what they leave free.
        let filled = lengths::sum(&*self.lengths, |len| {
            let used = len.min(self.length + self.label);
            Some(Coverage {
                used,
                padded: len.min(self.length),
                unseen: len - used,
                skipped_records: u64::from(len == 0),
                repeated: 0,
            })
        })?;
        let places = self.len().checked_mul(self.length).ok_or_else(|| lengths::too_many(n))?;
        Ok(Coverage { padded: places - filled.padded, ..filled })
    }

    fn describe(&self) -> String {
        let strategy = match self.strategy {
            Strategy::BestFit => "best_fit",
            Strategy::FirstFit => "first_fit",
        };
        format!("bins(length={},strategy={strategy}{})", self.length, lengths::apart(self.label))
    }
}

fn even(n_records: u64, size: u64, length: u64) -> (Layout, u64) {
    let per_bin = length.checked_div(size).unwrap_or(1);
    let bins = if size == 0 { 0 } else { n_records.div_ceil(per_bin) };
    (Layout::Even { per_bin, bins }, if bins == 0 { 0 } else { per_bin.min(n_records) })
}

fn listed(lengths: &dyn Lengths, length: u64, strategy: Strategy) -> Result<(Layout, u64)> {
    let n = lengths.len();
    if n >= u64::from(NO_BIN) {
        return Err(Error::config(format!("there are {n} records, expected fewer than {NO_BIN} for bins"))
            .hint("pack() has no such limit"));
    }
    let mut slots = allocate::list_for::<u32>(n)?;
    let mut volume = 0;
    for record in 0..n {
        // At most 2^28, see MOST_POSITIONS; their sum is below 2^60.
        let size = lengths.length(record)?.min(length);
        volume += size;
        slots.push(size as u32);
    }
    // One bin of the whole volume holds all there is: no table needs to be larger.
    let capacity = length.min(volume) as u32;
    let bins = match strategy {
        Strategy::BestFit => fit::best_fit(&mut slots, capacity)?,
        Strategy::FirstFit => fit::first_fit(&mut slots, capacity, volume),
    };
    by_bin(slots, bins)
}

fn by_bin(bin_of: Vec<u32>, bins: u32) -> Result<(Layout, u64)> {
    let mut ends = vec![0u32; bins as usize];
    let placed = || bin_of.iter().enumerate().filter(|(_, bin)| **bin != NO_BIN);
    placed().for_each(|(_, &bin)| ends[bin as usize] += 1);
    let max_segments = ends.iter().max().copied().unwrap_or(0);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    // Each is where its bin starts now, and moves to its end while the bin is filled.
    let mut order = allocate::list_for::<u32>(start.into())?;
    order.resize(start as usize, 0);
    for (record, &bin) in placed() {
        let place = &mut ends[bin as usize];
        order[*place as usize] = record as u32;
        *place += 1;
    }
    Ok((Layout::Listed { bin_of, order, ends }, max_segments.into()))
}

#[cfg(test)]
mod tests {
    use super::Strategy::{BestFit, FirstFit};
    use super::*;
    use crate::error::Kind;
    use crate::view::lengths::tests::{Same, counts, show, show_inverse};

    #[track_caller]
    fn check(
        lengths: &[u64],
        (length, strategy): (u64, Strategy),
        samples: &str,
        inverse: &str,
        coverage: [u64; 5],
    ) {
        let view = Bins::new(Arc::new(lengths.to_vec()), length, strategy).unwrap();
        assert_eq!(show(&view), samples);
        assert_eq!(show_inverse(&view, lengths.len() as u64), inverse);
        assert_eq!(counts(&view), coverage);
        let most = samples.split(" | ").map(|bin| bin.split(' ').filter(|s| !s.is_empty()).count()).max();
        assert_eq!(Some(view.max_segments() as usize), most);
    }

    #[test]
    fn best_fit_takes_the_longest_first() {
        let inverse = "1..2 0..0 0..1 1..2 0..1";
        check(&[3, 0, 6, 5, 2], (8, BestFit), "2[0..6] 4[0..2] | 0[0..3] 3[0..5]", inverse, [16, 0, 0, 0, 1]);
        check(&[4, 7, 2], (8, BestFit), "1[0..7] | 0[0..4] 2[0..2]", "1..2 0..1 1..2", [13, 0, 3, 0, 0]);
    }

    #[test]
    fn first_fit_keeps_record_order() {
        let inverse = "0..1 0..0 1..2 0..1 1..2";
        check(
            &[3, 0, 6, 5, 2],
            (8, FirstFit),
            "0[0..3] 3[0..5] | 2[0..6] 4[0..2]",
            inverse,
            [16, 0, 0, 0, 1],
        );
        check(
            &[5, 4, 4, 3],
            (8, FirstFit),
            "0[0..5] 3[0..3] | 1[0..4] 2[0..4]",
            "0..1 1..2 1..2 0..1",
            [16, 0, 0, 0, 0],
        );
    }

    #[test]
    fn a_long_record_is_cut_to_one_value_more() {
        for strategy in [BestFit, FirstFit] {
            check(&[9, 4], (4, strategy), "0[0..5] | 1[0..4]", "0..1 1..2", [9, 0, 0, 4, 0]);
            check(&[u64::MAX], (4, strategy), "0[0..5]", "0..1", [5, 0, 0, u64::MAX - 5, 0]);
        }
    }

    #[test]
    fn a_long_record_apart_is_cut_to_the_length() {
        for strategy in [BestFit, FirstFit] {
            let view = Bins::apart(Arc::new(vec![9, 4, 0, 2]), 4, strategy).unwrap();
            assert_eq!(show(&view), "0[0..4] | 1[0..4] | 3[0..2]");
            assert_eq!(counts(&view), [10, 0, 2, 5, 1]);
            assert!(view.describe().ends_with("_fit,apart)"));
        }
    }

    #[test]
    fn nothing_gives_no_bin() {
        for strategy in [BestFit, FirstFit] {
            check(&[], (4, strategy), "", "", [0, 0, 0, 0, 0]);
            check(&[0, 0], (4, strategy), "", "0..0 0..0", [0, 0, 0, 0, 2]);
            check(&[1, 2], (1 << 28, strategy), "0[0..1] 1[0..2]", "0..1 0..1", [3, 0, (1 << 28) - 3, 0, 0]);
        }
    }

    #[test]
    fn uniform_lengths_are_arithmetic() {
        let view = Bins::new(Arc::new(Same(1_000_000_000, 1_024)), 4_000, BestFit).unwrap();
        assert_eq!((view.len(), view.max_segments()), (333_333_334, 3));
        assert_eq!(view.samples_of(999_999_999).unwrap(), 333_333_333..333_333_334);
        assert_eq!(counts(&view), [1_024_000_000_000, 0, 309_333_336_000, 0, 0]);
        for (n, each, length) in [(7, 3, 10), (1, 2, 9), (5, 0, 4), (6, 8, 4), (4, 4, 4), (3, 1, 9)] {
            for strategy in [BestFit, FirstFit] {
                let even = Bins::new(Arc::new(Same(n, each)), length, strategy).unwrap();
                let listed = Bins::new(Arc::new(vec![each; n as usize]), length, strategy).unwrap();
                assert_eq!(show(&even), show(&listed));
                assert_eq!(show_inverse(&even, n), show_inverse(&listed, n));
                assert_eq!((counts(&even), even.max_segments()), (counts(&listed), listed.max_segments()));
            }
        }
    }

    #[test]
    fn wrong_numbers_are_errors() {
        let lengths: Arc<dyn Lengths> = Arc::new(vec![3, u64::MAX, u64::MAX]);
        for length in [0, MOST_POSITIONS + 1, u64::MAX] {
            assert_eq!(Bins::new(lengths.clone(), length, BestFit).err().unwrap().kind(), Kind::Config);
        }
        let view = Bins::new(lengths, 4, FirstFit).unwrap();
        assert_eq!(view.coverage().unwrap_err().kind(), Kind::Corrupt);
        let e = view.pieces(3, Draw::new(0, 0, 0, 0), &mut Vec::new()).unwrap_err();
        assert_eq!(e.kind(), Kind::OutOfRange);
        assert_eq!(view.samples_of(3).unwrap_err().kind(), Kind::OutOfRange);
        assert_eq!(view.describe(), "bins(length=4,strategy=first_fit)");
    }
}
