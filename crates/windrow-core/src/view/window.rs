//! Windows that slide over each record: fixed width, fixed stride, never across two records.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lengths::{self, RunningSums};
use super::{Coverage, View};
use crate::error::{Error, Result};
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// What to do with the values after a record's last full window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tail {
    /// They are left out, and counted in the coverage.
    #[default]
    Drop,
    /// One more window, one stride on, shorter and padded; where it would hold an input with its label.
    Pad,
}

/// Where the windows of a record begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Starts {
    /// A stride from one to the next.
    #[default]
    Strided,
    /// Windows anywhere in the record, drawn again each epoch; their number is that of strided ones.
    Random,
    /// One, that ends with the record: what a forecast is evaluated on.
    Last,
}

/// Windows of `width` positions, from `width + 1` values each, `stride` apart.
///
/// A record of L values gives `1 + max(0, (L - (width + 1)) / stride)` windows, none where L < 2; a record shorter than
/// `width + 1` gives one short window. Order: record by record, left to right. [`Windows::apart`] leaves out the value that is
/// only a label: `width` for `width + 1` there, and 1 for 2.
///
/// ```
/// # use std::sync::Arc;
/// use windrow_core::view::{Tail, View, Windows};
///
/// let lengths = Arc::new(vec![10, 1, 3]);
/// assert_eq!(Windows::new(lengths.clone(), 4, 2, Tail::Drop)?.len(), 3 + 0 + 1);
/// assert_eq!(Windows::new(lengths, 4, 2, Tail::Pad)?.len(), 4 + 0 + 1);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Windows {
    lengths: Arc<dyn Lengths>,
    cut: Cut,
    /// Each record's samples.
    samples: RunningSums,
    /// Windows of records that do not fill one.
    short: u64,
}

#[derive(Clone, Copy)]
struct Cut {
    /// Values of a full window: `label` more than it has positions.
    full: u64,
    /// 1 where the value after the last input is read for its label.
    label: u64,
    stride: u64,
    /// 2^64 / stride, rounded up: what a division becomes a product by. 0 of a stride of 1.
    inverse: u64,
    tail: Tail,
    starts: Starts,
}

impl Windows {
    /// Windows of `width` positions (context and prediction together), `stride` apart. O(1) for uniform lengths;
    /// otherwise one pass, then 4 to 8 bytes per record and a binary search per window.
    ///
    /// # Errors
    /// `Config` when `width` is 0 or 2^64 - 1, or `stride` is 0; `Corrupt` when there are more windows than 64 bits can
    /// count; what the lengths say.
    pub fn new(lengths: Arc<dyn Lengths>, width: u64, stride: u64, tail: Tail) -> Result<Self> {
        Windows::cut(lengths, width, stride, tail, Starts::Strided, 1)
    }

    /// Windows of `width` positions from `width` values each.
    ///
    /// # Errors
    /// As [`Windows::new`].
    pub fn apart(lengths: Arc<dyn Lengths>, width: u64, stride: u64, tail: Tail) -> Result<Self> {
        Windows::cut(lengths, width, stride, tail, Starts::Strided, 0)
    }

    /// Windows that begin elsewhere: of `width` values each, and one more where `label` is true.
    ///
    /// # Errors
    /// As [`Windows::new`]; `Config` for padded tails of windows that have no stride.
    pub fn starting(
        lengths: Arc<dyn Lengths>,
        width: u64,
        stride: u64,
        tail: Tail,
        starts: Starts,
        label: bool,
    ) -> Result<Self> {
        if starts != Starts::Strided && tail == Tail::Pad {
            return Err(Error::config("a padded tail of windows that are not strided")
                .field("tail")
                .hint("leave tail out: what comes after the last full window is for strided ones"));
        }
        Windows::cut(lengths, width, stride, tail, starts, u64::from(label))
    }

    fn cut(
        lengths: Arc<dyn Lengths>,
        width: u64,
        stride: u64,
        tail: Tail,
        starts: Starts,
        label: u64,
    ) -> Result<Self> {
        let full = lengths::with_label("width", width, label)?;
        lengths::at_least_one("stride", stride)?;
        let cut = Cut { full, label, stride, inverse: (u64::MAX / stride).wrapping_add(1), tail, starts };
        let short = Cell::new(0);
        let samples = RunningSums::new(&*lengths, |len| {
            short.set(short.get() + u64::from(len > label && len < full));
            Some(cut.windows(len))
        })?;
        // Of equal lengths one was asked for.
        let short = match samples {
            RunningSums::Even { records, .. } if short.get() > 0 => records,
            _ => short.get(),
        };
        Ok(Windows { lengths, cut, samples, short })
    }
}

impl View for Windows {
    fn len(&self) -> u64 {
        self.samples.total()
    }

    fn pieces(&self, sample: u64, draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        let record = self.samples.find(sample);
        let nth = sample - self.samples.range(record)?.start;
        let all = self.lengths.length(record)?;
        let last = all.saturating_sub(self.cut.full);
        let start = match self.cut.starts {
            Starts::Strided => nth.checked_mul(self.cut.stride),
            Starts::Random => Some(draw.below(last.saturating_add(1), 0)),
            Starts::Last => Some(last),
        };
        let start = start.filter(|start| *start < all);
        let start = start.ok_or_else(|| {
            Error::corrupt(format!("the record holds {all} values now, expected a window {nth} in it"))
                .record(record)
        })?;
        out.push(Piece::Read(Span { record, start, len: self.cut.full.min(all - start) }));
        Ok(())
    }

    fn samples_of(&self, record: u64, _pass: Pass) -> Result<Range<u64>> {
        self.samples.range(record)
    }

    fn positions(&self) -> u64 {
        self.cut.full - self.cut.label
    }

    fn short(&self) -> u64 {
        self.short
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        lengths::sum(&*self.lengths, |len| self.cut.coverage(len))
    }

    fn describe(&self) -> String {
        let tail = match self.cut.tail {
            Tail::Drop => "drop",
            Tail::Pad => "pad",
        };
        let apart = lengths::apart(self.cut.label);
        let starts = match self.cut.starts {
            Starts::Strided => "",
            Starts::Random => ",starts=random",
            Starts::Last => ",starts=last",
        };
        format!("windows(width={},stride={},tail={tail}{apart}{starts})", self.positions(), self.cut.stride)
    }
}

impl Cut {
    /// How many windows a record of `len` values gives.
    fn windows(self, len: u64) -> u64 {
        // An input and its label.
        let least = 1 + self.label;
        if len < least {
            return 0;
        }
        if self.starts == Starts::Last {
            return 1;
        }
        let whole = 1 + self.strides(len.saturating_sub(self.full));
        if self.tail == Tail::Drop {
            return whole;
        }
        // The last window starts within the record, so only the next start may pass 64 bits.
        let seen = ((whole - 1) * self.stride).saturating_add(self.full);
        let next = whole.saturating_mul(self.stride);
        whole + u64::from(len > seen && len.saturating_sub(next) >= least)
    }

    /// `values / stride`, which of millions of records takes longer than all else about them: of 32-bit numbers it is the
    /// upper half of a product (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019).
    fn strides(self, values: u64) -> u64 {
        if (values | self.stride) >> 32 == 0 && self.inverse != 0 {
            ((u128::from(values) * u128::from(self.inverse)) >> 64) as u64
        } else {
            values / self.stride
        }
    }

    /// What the windows of a record of `len` values see of it. Only the last of them can be short.
    fn coverage(self, len: u64) -> Option<Coverage> {
        let n = self.windows(len);
        let Some(before) = n.checked_sub(1) else {
            return Some(Coverage { unseen: len, skipped_records: 1, ..Coverage::default() });
        };
        if self.starts != Starts::Strided {
            // Of random ones what they see at most, as if they overlapped where they must only.
            let window = self.full.min(len);
            let read = u128::from(n) * u128::from(window);
            let used = u64::try_from(read.min(u128::from(len))).ok()?;
            return Some(Coverage {
                used,
                repeated: u64::try_from(read - u128::from(used)).ok()?,
                padded: n.checked_mul(self.full - window)?,
                unseen: len - used,
                skipped_records: 0,
            });
        }
        let start = before * self.stride;
        let last = self.full.min(len - start);
        let read = u128::from(before) * u128::from(self.full) + u128::from(last);
        let used = if self.stride < self.full { start + last } else { u64::try_from(read).ok()? };
        Some(Coverage {
            used,
            repeated: u64::try_from(read - u128::from(used)).ok()?,
            padded: self.full - last,
            unseen: len - used,
            skipped_records: 0,
        })
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
        (width, stride, tail): (u64, u64, Tail),
        samples: &str,
        inverse: &str,
        coverage: [u64; 5],
    ) {
        let view = Windows::new(Arc::new(lengths.to_vec()), width, stride, tail).unwrap();
        assert_eq!(show(&view), samples);
        assert_eq!(show_inverse(&view, lengths.len() as u64), inverse);
        assert_eq!(counts(&view), coverage);
    }

    #[test]
    fn a_short_record_gives_one_short_window() {
        check(&[3], (8, 4, Tail::Drop), "0[0..3]", "0..1", [3, 0, 6, 0, 0]);
        check(&[0, 1, 2], (4, 4, Tail::Pad), "2[0..2]", "0..0 0..0 0..1", [2, 0, 3, 1, 2]);
        check(&[], (4, 4, Tail::Pad), "", "", [0, 0, 0, 0, 0]);
    }

    #[test]
    fn overlap_is_repeated_and_the_tail_unseen() {
        check(&[9], (4, 2, Tail::Drop), "0[0..5] | 0[2..7] | 0[4..9]", "0..3", [9, 6, 0, 0, 0]);
        check(&[8, 5], (4, 2, Tail::Drop), "0[0..5] | 0[2..7] | 1[0..5]", "0..2 2..3", [12, 3, 0, 1, 0]);
        check(&[11], (4, 4, Tail::Drop), "0[0..5] | 0[4..9]", "0..2", [9, 1, 0, 2, 0]);
    }

    #[test]
    fn a_padded_tail_shows_what_is_left() {
        check(&[11], (4, 4, Tail::Pad), "0[0..5] | 0[4..9] | 0[8..11]", "0..3", [11, 2, 2, 0, 0]);
        check(&[9], (4, 4, Tail::Pad), "0[0..5] | 0[4..9]", "0..2", [9, 1, 0, 0, 0]);
        check(&[8], (4, 2, Tail::Pad), "0[0..5] | 0[2..7] | 0[4..8]", "0..3", [8, 6, 1, 0, 0]);
    }

    #[test]
    fn a_stride_wider_than_the_window_leaves_gaps() {
        check(&[12], (2, 5, Tail::Drop), "0[0..3] | 0[5..8]", "0..2", [6, 0, 0, 6, 0]);
        check(&[12], (2, 5, Tail::Pad), "0[0..3] | 0[5..8] | 0[10..12]", "0..3", [8, 0, 1, 4, 0]);
        check(&[11], (2, 5, Tail::Pad), "0[0..3] | 0[5..8]", "0..2", [6, 0, 0, 5, 0]);
    }

    #[test]
    fn the_last_window_ends_with_its_record() {
        let lengths = Arc::new(vec![9, 1, 4, 20]);
        let view = Windows::starting(lengths, 4, 3, Tail::Drop, Starts::Last, true).unwrap();
        assert_eq!(show(&view), "0[4..9] | 2[0..4] | 3[15..20]");
        assert_eq!(counts(&view), [14, 0, 1, 20, 1]);
        let no_label = Windows::starting(Arc::new(vec![9]), 4, 1, Tail::Drop, Starts::Last, false).unwrap();
        assert_eq!(show(&no_label), "0[5..9]");
        assert_eq!(no_label.describe(), "windows(width=4,stride=1,tail=drop,apart,starts=last)");
    }

    #[test]
    fn random_windows_lie_anywhere_and_are_as_many_as_strided_ones() {
        let lengths = Arc::new(vec![3, 9, 1, 20]);
        let strided = Windows::new(lengths.clone(), 4, 2, Tail::Drop).unwrap();
        let view = Windows::starting(lengths.clone(), 4, 2, Tail::Drop, Starts::Random, true).unwrap();
        assert_eq!(view.len(), strided.len());
        let mut starts = std::collections::BTreeMap::<u64, std::collections::BTreeSet<u64>>::new();
        for epoch in 0..300 {
            for sample in 0..view.len() {
                let (mut pieces, mut again) = (Vec::new(), Vec::new());
                let draw = Draw::new(7, epoch, 0, sample);
                view.pieces(sample, draw, &mut pieces).unwrap();
                view.pieces(sample, draw, &mut again).unwrap();
                assert_eq!(pieces, again);
                let [Piece::Read(span)] = pieces[..] else { panic!("{pieces:?}") };
                assert_eq!(span.len, 5.min(lengths[span.record as usize]));
                assert!(view.samples_of(span.record, Pass::default()).unwrap().contains(&sample));
                starts.entry(span.record).or_default().insert(span.start);
            }
        }
        let all = |n: u64| (0..n).collect();
        assert_eq!(starts, [(0, all(1)), (1, all(5)), (3, all(16))].into());
        let padded = Windows::starting(lengths, 4, 2, Tail::Pad, Starts::Random, true).err().unwrap();
        assert_eq!(padded.kind(), Kind::Config);
    }

    #[test]
    fn windows_that_a_record_does_not_fill_are_counted() {
        let short = |lengths: Vec<u64>| Windows::new(Arc::new(lengths), 4, 4, Tail::Pad).unwrap().short();
        assert_eq!(short(vec![0, 1, 2, 4, 5, 9]), 2);
        assert_eq!((short(vec![3]), short(vec![5]), short(vec![])), (1, 0, 0));
        assert_eq!(Windows::new(Arc::new(Same(1_000, 3)), 4, 4, Tail::Drop).unwrap().short(), 1_000);
        let apart = |lengths: Vec<u64>| Windows::apart(Arc::new(lengths), 4, 4, Tail::Pad).unwrap().short();
        assert_eq!(apart(vec![0, 1, 3, 4, 5, 9]), 2);
    }

    #[test]
    fn windows_apart_read_no_value_more() {
        let check = |lengths: &[u64], stride, tail, samples: &str, coverage: [u64; 5]| {
            let view = Windows::apart(Arc::new(lengths.to_vec()), 4, stride, tail).unwrap();
            assert_eq!(show(&view), samples);
            assert_eq!((counts(&view), view.positions()), (coverage, 4));
        };
        check(&[8], 4, Tail::Drop, "0[0..4] | 0[4..8]", [8, 0, 0, 0, 0]);
        check(&[9, 1, 0], 4, Tail::Drop, "0[0..4] | 0[4..8] | 1[0..1]", [9, 0, 3, 1, 1]);
        check(&[9, 7], 4, Tail::Pad, "0[0..4] | 0[4..8] | 0[8..9] | 1[0..4] | 1[4..7]", [16, 0, 4, 0, 0]);
        check(&[7], 2, Tail::Pad, "0[0..4] | 0[2..6] | 0[4..7]", [7, 4, 1, 0, 0]);
        let view = Windows::apart(Arc::new(Same(1 << 40, 1_024)), 512, 64, Tail::Drop).unwrap();
        assert_eq!(
            (view.len(), view.describe()),
            (9 << 40, "windows(width=512,stride=64,tail=drop,apart)".into())
        );
    }

    #[test]
    fn uniform_lengths_are_arithmetic() {
        let view = Windows::new(Arc::new(Same(1_000_000_000, 1_024)), 512, 64, Tail::Drop).unwrap();
        assert_eq!(view.len(), 8_000_000_000);
        assert_eq!(counts(&view), [961_000_000_000, 3_143_000_000_000, 0, 63_000_000_000, 0]);
        assert_eq!(view.samples_of(999_999_999, Pass::default()).unwrap(), 7_999_999_992..8_000_000_000);
    }

    #[test]
    fn strides_are_counted_as_a_division_does() {
        const MOST: u64 = u32::MAX as u64;
        let ends = [0, 1, 2, 3, 63, 64, 65, 1_000_003, MOST / 2, MOST - 1, MOST, MOST + 1, u64::MAX];
        for stride in (1..2_000).chain(ends).filter(|stride| *stride > 0) {
            let cut = Windows::new(Arc::new(Same(1, 9)), 4, stride, Tail::Drop).unwrap().cut;
            let near = ends.iter().flat_map(|n| [n.saturating_sub(1), *n, n.saturating_add(1)]);
            for values in near.chain(
                (0..40u64).map(|k| k.wrapping_mul(stride) % MOST).flat_map(|n| [n.saturating_sub(1), n]),
            ) {
                assert_eq!(cut.strides(values), values / stride, "{values} / {stride}");
            }
        }
    }

    #[test]
    fn wrong_numbers_are_errors() {
        let new =
            |lengths: Vec<u64>, width, stride| Windows::new(Arc::new(lengths), width, stride, Tail::Pad);
        for (width, stride) in [(0, 1), (1, 0), (u64::MAX, 1)] {
            assert_eq!(new(vec![3], width, stride).err().unwrap().kind(), Kind::Config);
        }
        assert_eq!(new(vec![u64::MAX, u64::MAX], 1, 1).err().unwrap().kind(), Kind::Corrupt);
        let wide = new(vec![u64::MAX, 7], u64::MAX - 1, u64::MAX).unwrap();
        assert_eq!(wide.len(), 2);
        let wide = new(vec![u64::MAX], 1 << 62, 1).unwrap();
        assert_eq!(wide.coverage(Pass::default()).unwrap_err().kind(), Kind::Corrupt);
        let far = new(vec![u64::MAX], 4, u64::MAX / 2 + 3).unwrap();
        assert_eq!(far.len(), 2);
        let e = far.pieces(2, Draw::new(0, 0, 0, 0), &mut Vec::new()).unwrap_err();
        assert_eq!(e.kind(), Kind::OutOfRange);
        assert_eq!(far.samples_of(1, Pass::default()).unwrap_err().kind(), Kind::OutOfRange);
        let view = new(vec![3], 512, 64).unwrap();
        assert_eq!(view.describe(), "windows(width=512,stride=64,tail=pad)");
    }
}
