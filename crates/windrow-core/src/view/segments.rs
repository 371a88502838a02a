//! Records packed into rows one after the other, split where a row is full: no padding but in the last row.

use std::ops::Range;
use std::sync::Arc;

use super::lengths::{self, RunningSums};
use super::{Coverage, View};
use crate::error::{Error, Result};
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// The pairs (value, next value) of all records, in record order, cut into rows; no pair crosses two records.
///
/// A record of L values has L - 1 pairs. Row by row, pairs are taken until the row is full; a record that does not fit
/// continues in the next row. A piece of n pairs reads n + 1 values: the last of them is only a label. A row has `length`
/// positions or, with buckets, the positions of the smallest bucket that takes the pairs left in the record it starts in; the
/// largest one where none does. Only the last row can be short. [`Segments::apart`] cuts values instead: each takes a position,
/// and none is read for a label only.
///
/// ```
/// # use std::sync::Arc;
/// use windrow_core::Pass;
/// use windrow_core::view::{Segments, View};
///
/// let view = Segments::new(Arc::new(vec![6, 1, 4]), 4, &[])?; // 5 + 0 + 3 pairs
/// assert_eq!(view.len(), 2);
/// assert_eq!(view.samples_of(0, Pass::default())?, 0..2);
/// let view = Segments::new(Arc::new(vec![6, 1, 4]), 4, &[2, 4])?;
/// assert_eq!([0, 1, 2].map(|row| view.target(row)), [4, 2, 2]);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Segments {
    /// Each record's share of all pairs; of all values where they are cut apart.
    pairs: RunningSums,
    /// 1 where a piece reads the value after its last input for its label.
    label: u64,
    lengths: Arc<dyn Lengths>,
    rows: Rows,
    length: u64,
    buckets: Vec<u64>,
}

/// Where rows end among all pairs.
enum Rows {
    /// Each `length` pairs on.
    Even,
    /// By list.
    Listed(Vec<u64>),
}

impl Segments {
    /// Rows of `length` positions, or of those in `buckets` where there are some. Without buckets O(1) for uniform
    /// lengths, else one pass and 4 to 8 bytes per record; with buckets 8 bytes per row more.
    ///
    /// # Errors
    /// `Config` when `length` or a bucket is 0, or a bucket exceeds `length`; `Corrupt` when there are more pairs than
    /// 64 bits can count; what the lengths say.
    pub fn new(lengths: Arc<dyn Lengths>, length: u64, buckets: &[u64]) -> Result<Self> {
        Segments::cut(lengths, length, buckets, 1)
    }

    /// Rows of all values, a position for each.
    ///
    /// # Errors
    /// As [`Segments::new`].
    pub fn apart(lengths: Arc<dyn Lengths>, length: u64, buckets: &[u64]) -> Result<Self> {
        Segments::cut(lengths, length, buckets, 0)
    }

    fn cut(lengths: Arc<dyn Lengths>, length: u64, buckets: &[u64], label: u64) -> Result<Self> {
        lengths::with_label("length", length, label)?;
        let mut buckets = buckets.to_vec();
        buckets.sort_unstable();
        buckets.dedup();
        if let Some(wrong) = buckets.iter().find(|b| **b == 0 || **b > length) {
            return Err(Error::config(format!("a bucket of {wrong} positions, expected 1 to {length}"))
                .hint("buckets are row lengths, none of them longer than the longest row"));
        }
        let pairs = RunningSums::new(&*lengths, |len| Some(len.saturating_sub(label)))?;
        let rows = if buckets.is_empty() { Rows::Even } else { Rows::Listed(listed(&pairs, &buckets)?) };
        Ok(Segments { pairs, label, lengths, rows, length, buckets })
    }

    /// Positions of a row: `length`, or its bucket.
    pub fn target(&self, row: u64) -> u64 {
        let taken = self.row(row);
        target(&self.buckets, self.length, taken.end - taken.start)
    }

    // The pairs of a row.
    fn row(&self, row: u64) -> Range<u64> {
        match &self.rows {
            Rows::Even => {
                let start = row * self.length;
                start..start.saturating_add(self.length).min(self.pairs.total())
            }
            Rows::Listed(ends) => {
                let row = row as usize;
                let start = if row == 0 { 0 } else { ends[row - 1] };
                start..ends[row]
            }
        }
    }

    // The row in which a pair is.
    fn row_of(&self, pair: u64) -> u64 {
        match &self.rows {
            Rows::Even => pair / self.length,
            Rows::Listed(ends) => ends.partition_point(|&end| end <= pair) as u64,
        }
    }

    // Rows that begin within a record, not with it: each reads one value again, where it is a label before.
    fn splits(&self) -> Result<u64> {
        match (&self.pairs, &self.rows) {
            (RunningSums::Even { each, .. }, Rows::Even) => {
                let starts = self.len().saturating_sub(1);
                // Of the starts length, 2·length, …, those that are multiples of `each` split nothing.
                let step = (*each / gcd(*each, self.length)).max(1);
                Ok(starts - starts / step)
            }
            // There may be many more records than rows. The last row ends with a record.
            (RunningSums::Even { each, .. }, Rows::Listed(ends)) => {
                Ok(ends.iter().filter(|end| *end % each != 0).count() as u64)
            }
            (RunningSums::Listed(_), _) => (0..self.pairs.records()).try_fold(0, |n, record| {
                let share = self.pairs.range(record)?;
                if share.is_empty() {
                    Ok(n)
                } else {
                    Ok(n + (self.row_of(share.end - 1) - self.row_of(share.start)))
                }
            }),
        }
    }
}

/// Positions of a row of `pairs` pairs: the smallest bucket that takes them, the largest where none does.
fn target(buckets: &[u64], length: u64, pairs: u64) -> u64 {
    let fitting = buckets.iter().find(|bucket| **bucket >= pairs);
    fitting.or(buckets.last()).copied().unwrap_or(length)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn listed(pairs: &RunningSums, buckets: &[u64]) -> Result<Vec<u64>> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < pairs.total() {
        let left = pairs.range(pairs.find(at))?.end - at;
        at = at.saturating_add(target(buckets, 0, left)).min(pairs.total());
        if ends.len() == ends.capacity() {
            ends.try_reserve(ends.len().max(64)).map_err(|_| {
                Error::memory(format!("8 bytes for each of {} rows and more", ends.len()))
                    .hint("leave the buckets out, or split the source")
            })?;
        }
        ends.push(at);
    }
    Ok(ends)
}

impl View for Segments {
    fn len(&self) -> u64 {
        match &self.rows {
            Rows::Even => self.pairs.total().div_ceil(self.length),
            Rows::Listed(ends) => ends.len() as u64,
        }
    }

    fn pieces(&self, sample: u64, _draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        let Range { start: mut at, end } = self.row(sample);
        let mut record = self.pairs.find(at);
        while at < end {
            let mut share = self.pairs.range(record)?;
            if share.end <= at {
                // Any number of records without a pair: searched over, not walked through.
                record = self.pairs.find(at);
                share = self.pairs.range(record)?;
            }
            let pairs = share.end.min(end) - at;
            out.push(Piece::Read(Span { record, start: at - share.start, len: pairs + self.label }));
            at += pairs;
            record += 1;
        }
        Ok(())
    }

    fn documents(&self, pieces: &[Piece], out: &mut Vec<u64>) {
        out.extend(pieces.iter().map(|piece| piece.len().saturating_sub(self.label)).filter(|len| *len > 0));
    }

    fn samples_of(&self, record: u64, _pass: Pass) -> Result<Range<u64>> {
        let share = self.pairs.range(record)?;
        Ok(if share.is_empty() { 0..0 } else { self.row_of(share.start)..self.row_of(share.end - 1) + 1 })
    }

    fn positions(&self) -> u64 {
        self.buckets.last().copied().unwrap_or(self.length)
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        let all = lengths::sum(&*self.lengths, |len| {
            Some(if len <= self.label {
                Coverage { unseen: len, skipped_records: 1, ..Coverage::default() }
            } else {
                Coverage { used: len, ..Coverage::default() }
            })
        })?;
        let padded = match self.len().checked_sub(1) {
            None => 0,
            Some(last) => {
                let taken = self.row(last);
                self.target(last) - (taken.end - taken.start)
            }
        };
        let repeated = if self.label == 0 { 0 } else { self.splits()? };
        Ok(Coverage { repeated, padded, ..all })
    }

    fn describe(&self) -> String {
        let buckets: Vec<_> = self.buckets.iter().map(u64::to_string).collect();
        let apart = lengths::apart(self.label);
        if buckets.is_empty() {
            format!("segments(length={}{apart})", self.length)
        } else {
            format!("segments(length={},buckets={}{apart})", self.length, buckets.join("/"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::view::lengths::tests::{Same, counts, show, show_inverse};

    #[track_caller]
    fn check(
        lengths: &[u64],
        (length, buckets): (u64, &[u64]),
        samples: &str,
        inverse: &str,
        coverage: [u64; 5],
    ) {
        let view = Segments::new(Arc::new(lengths.to_vec()), length, buckets).unwrap();
        assert_eq!(show(&view), samples);
        assert_eq!(show_inverse(&view, lengths.len() as u64), inverse);
        assert_eq!(counts(&view), coverage);
    }

    #[test]
    fn records_are_split_where_a_row_is_full() {
        check(
            &[6, 1, 0, 4, 2],
            (4, &[]),
            "0[0..5] | 0[4..6] 3[0..4] | 4[0..2]",
            "0..2 0..0 0..0 1..2 2..3",
            [12, 1, 3, 1, 2],
        );
        check(&[], (4, &[]), "", "", [0; 5]);
        check(&[1, 0], (4, &[2]), "", "0..0 0..0", [0, 0, 0, 1, 2]);
    }

    #[test]
    fn a_row_takes_the_bucket_of_what_it_starts_with() {
        check(
            &[3, 4, 9, 2],
            (4, &[4, 2, 2]),
            "0[0..3] | 1[0..4] 2[0..2] | 2[1..6] | 2[5..9] 3[0..2]",
            "0..1 1..2 1..4 3..4",
            [18, 2, 0, 0, 0],
        );
        let view = Segments::new(Arc::new(vec![3, 4, 9, 2, 3]), 8, &[2, 4]).unwrap();
        assert_eq!((0..view.len()).map(|i| view.target(i)).collect::<Vec<_>>(), [2, 4, 4, 4, 2]);
        assert_eq!((view.positions(), view.describe()), (4, "segments(length=8,buckets=2/4)".to_string()));
    }

    #[test]
    fn values_apart_take_a_position_each() {
        let view = Segments::apart(Arc::new(vec![6, 1, 0, 4, 2]), 4, &[]).unwrap();
        assert_eq!(show(&view), "0[0..4] | 0[4..6] 1[0..1] 3[0..1] | 3[1..4] 4[0..1] | 4[1..2]");
        assert_eq!((counts(&view), view.describe()), ([13, 0, 3, 0, 1], "segments(length=4,apart)".into()));
        let view = Segments::apart(Arc::new(Same(3, 3)), 4, &[2, 4]).unwrap();
        assert_eq!(show(&view), "0[0..3] 1[0..1] | 1[1..3] | 2[0..3]");
        assert_eq!(counts(&view), [9, 0, 1, 0, 0]);
        assert_eq!((view.target(1), view.describe()), (2, "segments(length=4,buckets=2/4,apart)".into()));
    }

    #[test]
    fn uniform_lengths_are_arithmetic() {
        let view = Segments::new(Arc::new(Same(1_000_000_000, 1_025)), 1_536, &[]).unwrap();
        // Two thirds of a billion rows; every second of them starts within a record.
        assert_eq!(view.len(), 666_666_667);
        assert_eq!(counts(&view), [1_025_000_000_000, 333_333_333, 512, 0, 0]);
        for (n, each, length) in [(7, 4, 2), (7, 4, 3), (5, 2, 4), (6, 3, 7), (4, 1, 2), (9, 7, 9)] {
            for buckets in [&[][..], &[1], &[2], &[1, 2]] {
                let even = Segments::new(Arc::new(Same(n, each)), length, buckets).unwrap();
                let listed = Segments::new(Arc::new(vec![each; n as usize]), length, buckets).unwrap();
                assert_eq!((show(&even), counts(&even)), (show(&listed), counts(&listed)));
            }
        }
        let none = Segments::new(Arc::new(Same(1 << 62, 1)), 8, &[4]).unwrap();
        assert_eq!(counts(&none), [0, 0, 0, 1 << 62, 1 << 62]);
    }

    #[test]
    fn wrong_numbers_are_errors() {
        let new = |length, buckets: &[u64]| Segments::new(Arc::new(vec![3]), length, buckets).err().unwrap();
        for e in [new(0, &[]), new(4, &[0]), new(4, &[2, 5]), new(u64::MAX, &[])] {
            assert_eq!(e.kind(), Kind::Config);
        }
    }
}
