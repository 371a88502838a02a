//! Whole records packed into bins of a fixed number of positions: no record is split, little is padded.

mod layout;
mod slot;

use std::ops::Range;
use std::sync::Arc;

use self::layout::{Fitting, Layout, Part};
pub use self::slot::Overlong;
use self::slot::Slot;
use super::fit::Strategy;
use super::reshuffle::{WORD, check_count};
use super::share::RowLength;
use super::{Coverage, View, lengths};
use crate::error::{Error, Result};
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// Sample i is bin i: the records in it, in record order, in `length` positions together.
///
/// A record of n values takes n positions; its last position has no label. A record longer than `length` is cut: it
/// reads `length + 1` values ([`Bins::apart`]: `length`) and takes `length` positions, the rest is counted as unseen. It is
/// split or left out instead where [`Bins::with`] says so: the bins that its pieces fill come right before the one that its last
/// piece is in. Empty records are skipped. [`RowLength::filled`] makes each take positions up to a multiple.
///
/// ```
/// # use std::sync::Arc;
/// use windrow_core::Pass;
/// use windrow_core::view::{Bins, Strategy, View};
///
/// let bins = Bins::new(Arc::new(vec![3, 0, 6, 5, 2]), 8, Strategy::BestFit)?;
/// assert_eq!(bins.len(), 2); // 6 + 2, 5 + 3
/// assert_eq!(bins.samples_of(4, Pass::default())?, 0..1);
/// assert_eq!(bins.max_segments(), 2);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Bins {
    lengths: Arc<dyn Lengths>,
    slot: Slot,
    /// 1 where a record that is cut reads the value after it as the last label.
    label: u64,
    fitting: Fitting,
    n_overlong: u64,
    layout: Layout,
    max_segments: u64,
}

/// Bins are found in a table with one place per free capacity; this many are 1 GiB of it at worst.
const MOST_POSITIONS: u64 = 1 << 28;

impl Bins {
    /// Bins of `length` positions. O(1) for uniform lengths; otherwise one pass and a sort (best fit) or a search per
    /// record (first fit), then at most 12 bytes per record.
    ///
    /// # Errors
    /// `Config` when `length` is 0 or above 2^28, for a multiple that does not divide it, or where there are 2^32 - 1 records or more of
    /// unequal length; what the lengths say.
    pub fn new(lengths: Arc<dyn Lengths>, length: impl Into<RowLength>, strategy: Strategy) -> Result<Self> {
        Bins::with(lengths, length, strategy, Overlong::Cut, None, true)
    }

    /// Makes a record that is cut read `length` values.
    ///
    /// # Errors
    /// As [`Bins::new`].
    pub fn apart(
        lengths: Arc<dyn Lengths>,
        length: impl Into<RowLength>,
        strategy: Strategy,
    ) -> Result<Self> {
        Bins::with(lengths, length, strategy, Overlong::Cut, None, false)
    }

    /// Sets what to do with records that are longer than a bin. `scope`: this number of consecutive records are packed together,
    /// then the next ones, so that neighbouring bins hold neighbours; those of equal length are neighbours in any case.
    /// `is_next`: a piece after which its record continues reads the next value too, as its last label. Splitting takes 8 bytes
    /// more for each bin.
    ///
    /// # Errors
    /// As [`Bins::new`]; `Config` for a scope of 0; `Corrupt` where there are more pieces than 64 bits can count.
    pub fn with(
        lengths: Arc<dyn Lengths>,
        length: impl Into<RowLength>,
        strategy: Strategy,
        overlong: Overlong,
        scope: Option<u64>,
        is_next: bool,
    ) -> Result<Self> {
        let fitting = Fitting { strategy, scope, is_reshuffled: false };
        Bins::of(lengths, length.into(), overlong, fitting, is_next)
    }

    /// Bins of the same shape in each pass, whose records change places, of the arguments of [`Bins::with`]: a *class* is a run of nearly equal
    /// sizes, and a bin has a slot of the longest of a class where one of its records is in each pass. So about one bin in a
    /// hundred is more than [`Bins::with`] makes. A scope is one of classes.
    ///
    /// [`Strategy::BestFit`] puts slots of more than half a bin first, the longest first, then the others in one random order.
    ///
    /// # Errors
    /// As [`Bins::with`]; `Config` for fewer than two records.
    pub fn reshuffled(
        lengths: Arc<dyn Lengths>,
        length: impl Into<RowLength>,
        strategy: Strategy,
        overlong: Overlong,
        scope: Option<u64>,
        is_next: bool,
    ) -> Result<Self> {
        let fitting = Fitting { strategy, scope, is_reshuffled: true };
        Bins::of(lengths, length.into(), overlong, fitting, is_next)
    }

    fn of(
        lengths: Arc<dyn Lengths>,
        row: RowLength,
        overlong: Overlong,
        fitting: Fitting,
        is_next: bool,
    ) -> Result<Self> {
        let most = most_values(row, overlong, fitting.scope, is_next)?;
        let (slot, n) = (Slot { length: row.length(), overlong, share: row.share(0) }, lengths.len());
        if fitting.is_reshuffled {
            check_count(n)?;
        }
        let (layout, n_overlong) = match lengths::uniform(&*lengths)? {
            Some(each) => (Layout::even(n, each, slot, fitting)?, if each > most { n } else { 0 }),
            None => Layout::listed(&*lengths, slot, fitting, most)?,
        };
        let (label, max_segments) = (u64::from(is_next), layout.most(n));
        Ok(Bins { lengths, slot, label, fitting, n_overlong, layout, max_segments })
    }

    /// Records in the bin that holds most of them; 0 where there is no bin.
    pub fn max_segments(&self) -> u64 {
        self.max_segments
    }

    // What a record has in the bin that it shares.
    fn read(&self, record: u64, out: &mut Vec<Piece>) -> Result<()> {
        let (len, Slot { length, overlong, .. }) = (self.lengths.length(record)?, self.slot);
        let start = self.slot.n_full(len) * length;
        let len = match overlong {
            Overlong::Cut => len.min(length + self.label),
            Overlong::Split | Overlong::Drop => len - start,
        };
        out.push(Piece::Read(Span { record, start, len }));
        let filled = self.slot.size(start + len).saturating_sub(len);
        if filled > 0 {
            out.push(Piece::Fill(Span { record, start: start + len, len: filled }));
        }
        Ok(())
    }

    // A piece that fills a bin. The record continues after it.
    fn read_full(&self, record: u64, piece: u64) -> Piece {
        let Slot { length, .. } = self.slot;
        Piece::Read(Span { record, start: piece * length, len: length + self.label })
    }
}

impl View for Bins {
    fn len(&self) -> u64 {
        self.layout.len()
    }

    fn pieces(&self, sample: u64, draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        self.layout.each(sample, draw.pass(), (&*self.lengths, self.slot), |part| {
            match part {
                Part::Full(record, piece) => out.push(self.read_full(record, piece)),
                Part::Shared(record) => self.read(record, out)?,
            }
            Ok(())
        })
    }

    fn is_reshuffled(&self) -> bool {
        self.fitting.is_reshuffled
    }

    fn samples_of(&self, record: u64, pass: Pass) -> Result<Range<u64>> {
        lengths::check_record(record, self.lengths.len())?;
        self.layout.samples_of(record, pass, (&*self.lengths, self.slot))
    }

    fn positions(&self) -> u64 {
        self.slot.length
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        let n = self.lengths.len();
        let Bins { label, slot, .. } = *self;
        let Slot { length, overlong, .. } = slot;
        // In `padded` first what the records fill, then what they leave free.
        let filled = lengths::sum(&*self.lengths, |len| {
            let full = slot.n_full(len);
            let used = match overlong {
                Overlong::Cut => len.min(length + label),
                Overlong::Split | Overlong::Drop => full * length + slot.values(len),
            };
            Some(Coverage {
                used,
                repeated: full * label,
                padded: full * length + slot.values(len),
                unseen: len - used,
                skipped_records: u64::from(used == 0),
            })
        })?;
        let places = self.len().checked_mul(length).ok_or_else(|| lengths::too_many(n))?;
        Ok(Coverage { padded: places - filled.padded, ..filled })
    }

    fn describe(&self) -> String {
        let strategy = match self.fitting.strategy {
            Strategy::BestFit => "best_fit",
            Strategy::FirstFit => "first_fit",
        };
        let overlong = match self.slot.overlong {
            Overlong::Cut => "",
            Overlong::Split => ",overlong=split",
            Overlong::Drop => ",overlong=drop",
        };
        let scope = self.fitting.scope.map_or(String::new(), |records| format!(",scope={records}"));
        let reshuffled = if self.is_reshuffled() { format!(",reshuffle={WORD}") } else { String::new() };
        format!(
            "bins(length={},strategy={strategy}{overlong}{scope}{}{reshuffled}{})",
            self.slot.length,
            lengths::apart(self.label),
            self.slot.share.described()
        )
    }

    fn overlong(&self) -> u64 {
        self.n_overlong
    }
}

/// # Errors
/// `Config` for a length or a scope of 0, for a length that is too large, and for a multiple that does not divide it. Else the values of
/// a record that is whole.
fn most_values(row: RowLength, overlong: Overlong, scope: Option<u64>, is_next: bool) -> Result<u64> {
    let length = row.length();
    lengths::at_least_one("length", length)?;
    row.check()?;
    scope.map_or(Ok(()), |records| lengths::at_least_one("scope", records))?;
    if length > MOST_POSITIONS {
        return Err(Error::config(format!("length is {length}, expected at most {MOST_POSITIONS} for bins"))
            .hint("give the positions of one sample as length"));
    }
    // A record that is cut to `length` and the label after it is whole.
    Ok(length + if overlong == Overlong::Cut { u64::from(is_next) } else { 0 })
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
    fn a_long_record_is_split_or_left_out() {
        let bins = |lengths: &[u64], overlong, is_next| {
            Bins::with(Arc::new(lengths.to_vec()), 4, FirstFit, overlong, None, is_next).unwrap()
        };
        let split = bins(&[2, 9, 0, 3, 8, 1], Overlong::Split, true);
        // 9 = 4 + 4 + 1, whose last piece is beside record 0; 8 = 4 + 4.
        assert_eq!(show(&split), "1[0..5] | 1[4..9] | 0[0..2] 1[8..9] 5[0..1] | 3[0..3] | 4[0..5] | 4[4..8]");
        assert_eq!(show_inverse(&split, 6), "2..3 0..3 0..0 3..4 4..6 2..3");
        assert_eq!(counts(&split), [23, 3, 1, 0, 1]);
        assert_eq!((split.overlong(), split.max_segments()), (2, 3));
        assert!(split.describe().ends_with("first_fit,overlong=split)"));
        let apart = bins(&[5, 4], Overlong::Split, false);
        assert_eq!((show(&apart), counts(&apart)), ("0[0..4] | 0[4..5] | 1[0..4]".into(), [9, 0, 3, 0, 0]));
        let dropped = bins(&[2, 9, 0, 5, 4], Overlong::Drop, true);
        assert_eq!(show(&dropped), "0[0..2] | 4[0..4]");
        assert_eq!(show_inverse(&dropped, 5), "0..1 0..0 0..0 0..0 1..2");
        assert_eq!((counts(&dropped), dropped.overlong()), ([6, 0, 2, 14, 3], 2));
        // A label after the last position is no rest.
        assert_eq!([5, 6].map(|len| bins(&[len, 1], Overlong::Cut, true).overlong()), [0, 1]);
        assert_eq!(bins(&[u64::MAX], Overlong::Split, true).len(), 1 << 62);
    }

    #[test]
    fn neighbours_are_put_together_within_a_scope() {
        let bins = |scope| {
            let lengths = Arc::new(vec![3, 2, 1, 9, 0, 2, 1]);
            Bins::with(lengths, 4, BestFit, Overlong::Split, scope, true).unwrap()
        };
        // 3 + 1, 2; 9 = 4 + 4 + 1; 2 + 1.
        let within = bins(Some(3));
        assert_eq!(
            show(&within),
            "0[0..3] 2[0..1] | 1[0..2] | 3[0..5] | 3[4..9] | 3[8..9] 5[0..2] | 6[0..1]"
        );
        assert_eq!(show_inverse(&within, 7), "0..1 1..2 0..1 2..5 0..0 4..5 5..6");
        assert!(within.describe().ends_with("best_fit,overlong=split,scope=3)"));
        let all = show(&bins(None));
        assert_eq!(
            [7, 8, u64::MAX].map(|scope| show(&bins(Some(scope)))),
            [&all, &all, &all].map(String::from)
        );
        let none = Bins::with(Arc::new(vec![1, 2]), 4, BestFit, Overlong::Cut, Some(0), true);
        assert_eq!(none.err().unwrap().kind(), Kind::Config);
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
        assert_eq!(view.samples_of(999_999_999, Pass::default()).unwrap(), 333_333_333..333_333_334);
        assert_eq!(counts(&view), [1_024_000_000_000, 0, 309_333_336_000, 0, 0]);
        for (n, each, length) in
            [(7, 3, 10), (1, 2, 9), (5, 0, 4), (6, 8, 4), (4, 4, 4), (3, 1, 9), (5, 9, 4), (5, 6, 4)]
        {
            let treatments = [Overlong::Cut, Overlong::Split, Overlong::Drop];
            let all = [BestFit, FirstFit].map(|strategy| treatments.map(|overlong| (strategy, overlong)));
            for (strategy, overlong) in all.into_iter().flatten() {
                let even =
                    Bins::with(Arc::new(Same(n, each)), length, strategy, overlong, None, true).unwrap();
                let listed = Arc::new(vec![each; n as usize]);
                let listed = Bins::with(listed, length, strategy, overlong, None, true).unwrap();
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
        assert_eq!(view.coverage(Pass::default()).unwrap_err().kind(), Kind::Corrupt);
        let e = view.pieces(3, Draw::new(0, 0, 0, 0), &mut Vec::new()).unwrap_err();
        assert_eq!(e.kind(), Kind::OutOfRange);
        assert_eq!(view.samples_of(3, Pass::default()).unwrap_err().kind(), Kind::OutOfRange);
        assert_eq!(view.describe(), "bins(length=4,strategy=first_fit)");
    }
}
