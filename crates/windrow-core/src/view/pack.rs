//! Blocks over the joined stream of all records: every value but the first is a label exactly once.

use std::ops::Range;
use std::sync::Arc;

use super::lengths::{self, RunningSums};
use super::reshuffle::{Place, Places, Reshuffled};
use super::share::{RowLength, Share};
use super::{Coverage, View};
use crate::error::Result;
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// All records end to end, cut into blocks of `length` positions.
///
/// Block i reads the stream's values `i·length ..= i·length + length`: one value is shared with the next block, as the
/// last label here and the first input there. [`Pack::apart`] leaves that one out: each value is in one block. A rest
/// that fills no block is left out and counted in the coverage. With `eos`, that value comes after every record, also
/// after an empty one. [`RowLength::filled`] fills each record, with its `eos`, up to a multiple before blocks are cut.
///
/// ```
/// # use std::sync::Arc;
/// use windrow_core::Pass;
/// use windrow_core::view::{Pack, View};
///
/// let view = Pack::new(Arc::new(vec![5, 0, 8]), 4, None)?;
/// assert_eq!(view.len(), 3); // (13 - 1) / 4
/// assert_eq!(view.samples_of(2, Pass::default())?, 1..3);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Pack {
    /// Each record's share of the stream, its eos included.
    stream: Stream,
    length: u64,
    eos: Option<i64>,
    /// Values that neighbouring blocks share.
    shared: u64,
    blocks: u64,
    /// Whether a block that begins with an eos names the record that ends there.
    tells_record: bool,
    share: Share,
    /// Where positions are filled, shares alone do not say where values end.
    filled: Option<Arc<dyn Lengths>>,
}

/// In which order records are joined.
enum Stream {
    /// As they are stored.
    Stored(RunningSums),
    /// In another order in each pass.
    Reshuffled(Reshuffled),
}

impl Pack {
    /// Blocks of `length` positions, from `length + 1` values each. O(1) for uniform lengths and for a single record;
    /// otherwise one pass, then 4 to 8 bytes per record and a binary search per block.
    ///
    /// # Errors
    /// `Config` when `length` is 0 or 2^64 - 1, and for a multiple that does not divide it; `Corrupt` when the stream is longer than
    /// 64 bits can count; what the lengths say.
    pub fn new(lengths: Arc<dyn Lengths>, length: impl Into<RowLength>, eos: Option<i64>) -> Result<Self> {
        Pack::cut(lengths, length.into(), eos, 1, None)
    }

    /// Blocks of `length` positions from `length` values each, none of them shared.
    ///
    /// # Errors
    /// As [`Pack::new`].
    pub fn apart(lengths: Arc<dyn Lengths>, length: impl Into<RowLength>, eos: Option<i64>) -> Result<Self> {
        Pack::cut(lengths, length.into(), eos, 0, None)
    }

    /// Blocks of records that are joined in another order in each pass: the `scope` records that are neighbours trade
    /// places among themselves, or all of them do. `is_next`: as [`Pack::new`], else as [`Pack::apart`].
    ///
    /// Lengths are asked for as blocks are made. For uniform lengths it is all arithmetic. Else each pass of all records needs half a
    /// byte per record, added up in one go over the lengths before its first block, or before that by [`View::prepare`]; within a scope
    /// that is done when it is first needed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use windrow_core::view::{Pack, View};
    /// use windrow_core::{Draw, Piece, Span};
    ///
    /// let view = Pack::reshuffled(Arc::new(vec![5, 3, 8]), 5, None, false, None)?;
    /// let first_record = |epoch| {
    ///     let mut pieces = Vec::new();
    ///     view.pieces(0, Draw::new(7, epoch, 0, 0), &mut pieces)?;
    ///     Ok::<_, windrow_core::Error>(match pieces[0] { Piece::Read(Span { record, .. }) => record, _ => 3 })
    /// };
    /// assert_eq!([first_record(0)?, first_record(3)?], [2, 0]);
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Pack::new`]; `Config` for fewer than two records, and for a scope of 0.
    pub fn reshuffled(
        lengths: Arc<dyn Lengths>,
        length: impl Into<RowLength>,
        eos: Option<i64>,
        is_next: bool,
        scope: Option<u64>,
    ) -> Result<Self> {
        Pack::cut(lengths, length.into(), eos, is_next.into(), Some(scope))
    }

    // `scope`: where records change places, among how many of them.
    fn cut(
        records: Arc<dyn Lengths>,
        row: RowLength,
        eos: Option<i64>,
        shared: u64,
        scope: Option<Option<u64>>,
    ) -> Result<Self> {
        let length = row.length();
        lengths::with_label("length", length, shared)?;
        row.check()?;
        let share = row.share(eos.is_some().into());
        let stream = match scope {
            None => Stream::Stored(RunningSums::new(&*records, |len| share.of(len))?),
            Some(scope) => Stream::Reshuffled(Reshuffled::new(records.clone(), share, scope)?),
        };
        let blocks = stream.total().saturating_sub(shared) / length;
        let filled = share.is_filled().then_some(records);
        Ok(Pack { stream, length, eos, shared, blocks, tells_record: false, share, filled })
    }

    /// A block that begins with an eos begins with a piece of no values of the record before it, at its end.
    #[must_use]
    pub fn telling_record(self) -> Self {
        Pack { tells_record: true, ..self }
    }

    /// Blocks that share a value with the next one.
    fn joints(&self) -> u64 {
        self.blocks.saturating_sub(1) * self.shared
    }

    fn eos_len(&self) -> u64 {
        u64::from(self.eos.is_some())
    }

    /// A record's own values in the stream of a pass.
    fn values(&self, record: u64, pass: Pass) -> Result<Range<u64>> {
        let share = match &self.stream {
            Stream::Stored(sums) => sums.range(record)?,
            Stream::Reshuffled(stream) => stream.in_pass(pass)?.range(record)?,
        };
        self.values_of(record, &share)
    }

    // The values in the share of a record.
    fn values_of(&self, record: u64, share: &Range<u64>) -> Result<Range<u64>> {
        Ok(match &self.filled {
            None => share.start..share.end - self.eos_len(),
            // No more than the share, which was computed of it.
            Some(lengths) => share.start..share.end.min(share.start.saturating_add(lengths.length(record)?)),
        })
    }

    /// How many of the values that two blocks share are an eos.
    fn shared_eos(&self, pass: Pass) -> Result<u64> {
        let joints = self.joints();
        if self.eos.is_none() || joints == 0 {
            return Ok(0);
        }
        if let Some(each) = self.stream.even() {
            // Joints are multiples of what shares are filled up to: an eos there begins the last multiple of its share.
            let multiple = self.share.multiple();
            if !self.values(0, pass)?.end.is_multiple_of(multiple) {
                return Ok(0);
            }
            let each = each / multiple;
            return Ok(match inverse(self.length / multiple, each) {
                // The joints i with i·length = -1 (mod each) are `first`, and every `each`-th after it.
                Some(x) if each - x <= joints => 1 + (joints - (each - x)) / each,
                _ => 0,
            });
        }
        let mut n = 0;
        self.stream.each_place(pass, 0, |place| {
            let at = self.values_of(place.record, &place.share)?.end;
            n += u64::from(at.is_multiple_of(self.length) && (1..=joints).contains(&(at / self.length)));
            Ok(())
        })?;
        Ok(n)
    }

    /// Records with no value among the first `shown` of the stream.
    fn skipped(&self, shown: u64, pass: Pass) -> Result<u64> {
        let n = self.stream.records();
        match (&self.stream, self.stream.even()) {
            (_, Some(each)) if each > self.eos_len() => Ok(n - shown.div_ceil(each)),
            (_, Some(_)) => Ok(n),
            (Stream::Stored(sums), None) => (0..n).try_fold(0, |n, record| {
                let values = self.values_of(record, &sums.range(record)?)?;
                Ok(n + u64::from(values.is_empty() || values.start >= shown))
            }),
            (Stream::Reshuffled(_), None) if shown == 0 => Ok(n),
            (Stream::Reshuffled(stream), None) => {
                let mut skipped = stream.n_empty();
                // Only the end of the stream is not shown.
                self.stream.each_place(pass, shown - 1, |place| {
                    let values = self.values_of(place.record, &place.share)?;
                    skipped += u64::from(!values.is_empty() && values.start >= shown);
                    Ok(())
                })?;
                Ok(skipped)
            }
        }
    }

    // The coverage of records that are filled: of all of them, less what comes after the last block.
    fn coverage_filled(&self, records: &dyn Lengths, shown: u64, pass: Pass) -> Result<Coverage> {
        let eos_len = self.eos_len();
        let all = lengths::sum(records, |len| {
            Some(Coverage {
                used: len,
                padded: self.share.of(len)? - len - eos_len,
                skipped_records: u64::from(len == 0),
                ..Coverage::default()
            })
        })?;
        if shown == 0 {
            return Ok(Coverage { unseen: all.used, skipped_records: records.len(), ..Coverage::default() });
        }
        let mut coverage = Coverage { repeated: self.joints() - self.shared_eos(pass)?, ..all };
        if shown < self.stream.total() {
            self.stream.each_place(pass, shown, |place| {
                let values = self.values_of(place.record, &place.share)?;
                coverage.unseen += values.end.saturating_sub(values.start.max(shown));
                coverage.padded -= place.share.end - (values.end + eos_len).max(shown);
                coverage.skipped_records += u64::from(!values.is_empty() && values.start >= shown);
                Ok(())
            })?;
        }
        coverage.used -= coverage.unseen;
        Ok(coverage)
    }

    // The pieces of a block of records that are joined so.
    fn pieces_of(&self, sample: u64, mut places: impl Places, out: &mut Vec<Piece>) -> Result<()> {
        let start = sample * self.length;
        let (mut at, stop) = (start, start + self.length + self.shared);
        let mut place = places.find(at)?;
        loop {
            let (record, values) = (place.record, self.values_of(place.record, &place.share)?);
            if at < values.end {
                let end = values.end.min(stop);
                out.push(Piece::Read(Span { record, start: at - values.start, len: end - at }));
                at = end;
            } else if self.tells_record && (at == start || self.filled.is_some()) {
                out.push(Piece::Read(Span { record, start: values.end - values.start, len: 0 }));
            }
            if at < stop
                && at == values.end
                && let Some(id) = self.eos
            {
                out.push(Piece::Value(id));
                at += 1;
            }
            let filled = at..place.share.end.min(stop);
            if !filled.is_empty() {
                out.push(Piece::Fill(Span {
                    record,
                    start: at - values.start,
                    len: filled.end - filled.start,
                }));
                at = filled.end;
            }
            if at >= stop {
                return Ok(());
            }
            place = places.after(&place)?;
            if place.share.end <= at {
                // Any number of empty records: searched over, not walked through.
                place = places.find(at)?;
            }
        }
    }
}

impl Stream {
    fn total(&self) -> u64 {
        match self {
            Stream::Stored(sums) => sums.total(),
            Stream::Reshuffled(stream) => stream.total(),
        }
    }

    fn records(&self) -> u64 {
        match self {
            Stream::Stored(sums) => sums.records(),
            Stream::Reshuffled(stream) => stream.records(),
        }
    }

    /// The share of each record, where all have the same.
    fn even(&self) -> Option<u64> {
        match self {
            Stream::Stored(RunningSums::Even { each, .. }) => Some(*each),
            Stream::Stored(RunningSums::Listed(_)) => None,
            Stream::Reshuffled(stream) => stream.even(),
        }
    }

    /// Records before the one in which `number < total()` lies.
    fn places_before(&self, number: u64, pass: Pass) -> Result<u64> {
        Ok(match self {
            Stream::Stored(sums) => sums.find(number),
            Stream::Reshuffled(stream) => stream.in_pass(pass)?.find(number)?.number,
        })
    }

    /// All places from the one on in which `number < total()` lies.
    fn each_place(&self, pass: Pass, number: u64, see: impl FnMut(&Place) -> Result<()>) -> Result<()> {
        match self {
            Stream::Stored(sums) => each_place(sums, sums.records(), number, see),
            Stream::Reshuffled(stream) => each_place(stream.in_pass(pass)?, stream.records(), number, see),
        }
    }
}

fn each_place(
    mut places: impl Places,
    n: u64,
    number: u64,
    mut see: impl FnMut(&Place) -> Result<()>,
) -> Result<()> {
    let mut place = places.find(number)?;
    loop {
        see(&place)?;
        if place.number + 1 == n {
            return Ok(());
        }
        place = places.after(&place)?;
    }
}

impl View for Pack {
    fn len(&self) -> u64 {
        self.blocks
    }

    fn pieces(&self, sample: u64, draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.blocks)?;
        match &self.stream {
            Stream::Stored(sums) => self.pieces_of(sample, sums, out),
            Stream::Reshuffled(stream) => self.pieces_of(sample, stream.in_pass(draw.pass())?, out),
        }
    }

    fn touch(&self, sample: u64) {
        if let Stream::Stored(sums) = &self.stream {
            sums.touch(sample.saturating_mul(self.length));
        }
    }

    fn is_reshuffled(&self) -> bool {
        matches!(self.stream, Stream::Reshuffled(_))
    }

    fn has_preparation(&self) -> bool {
        matches!(&self.stream, Stream::Reshuffled(stream) if stream.is_summed())
    }

    fn prepare(&self, pass: Pass, is_wanted: &dyn Fn() -> bool) -> Result<()> {
        match &self.stream {
            Stream::Stored(_) => Ok(()),
            Stream::Reshuffled(stream) => stream.prepare(pass, is_wanted),
        }
    }

    fn samples_of(&self, record: u64, pass: Pass) -> Result<Range<u64>> {
        let values = self.values(record, pass)?;
        if values.is_empty() {
            return Ok(0..0);
        }
        let first = match self.shared {
            0 => values.start / self.length,
            // The block before reads one value past its end.
            _ => values.start.div_ceil(self.length).saturating_sub(1),
        };
        let last = (values.end - 1) / self.length;
        let end = last.saturating_add(1).min(self.blocks);
        Ok(first.min(end)..end)
    }

    fn positions(&self) -> u64 {
        self.length
    }

    fn coverage(&self, pass: Pass) -> Result<Coverage> {
        let n = self.stream.records();
        let total = self.stream.total();
        let shown = if self.blocks == 0 { 0 } else { self.blocks * self.length + self.shared };
        if let Some(records) = &self.filled {
            return self.coverage_filled(&**records, shown, pass);
        }
        let eos_shown = match self.eos {
            Some(_) if self.blocks > 0 && shown == total => n,
            Some(_) if self.blocks > 0 => self.stream.places_before(shown, pass)?,
            _ => 0,
        };
        let used = shown - eos_shown;
        Ok(Coverage {
            used,
            repeated: self.joints() - self.shared_eos(pass)?,
            padded: 0,
            unseen: total - n * self.eos_len() - used,
            skipped_records: self.skipped(shown, pass)?,
        })
    }

    fn describe(&self) -> String {
        let eos = self.eos.map_or("none".to_owned(), |id| id.to_string());
        let reshuffled = match &self.stream {
            Stream::Stored(_) => String::new(),
            Stream::Reshuffled(stream) => format!(",{}", stream.describe()),
        };
        let (apart, multiple) = (lengths::apart(self.shared), self.share.described());
        format!("pack(length={},eos={eos}{apart}{reshuffled}{multiple})", self.length)
    }
}

/// The x in `0..m` with `a·x = 1 (mod m)`, where there is one.
fn inverse(a: u64, m: u64) -> Option<u64> {
    let (mut rest, mut next) = (i128::from(m), i128::from(a.checked_rem(m)?));
    let (mut x, mut next_x) = (0, 1);
    while next != 0 {
        let times = rest / next;
        (rest, next) = (next, rest - times * next);
        (x, next_x) = (next_x, x - times * next_x);
    }
    if rest == 1 { u64::try_from(x.rem_euclid(i128::from(m))).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::view::lengths::tests::{Same, counts, show, show_inverse};

    #[track_caller]
    fn check(
        lengths: &[u64],
        (length, eos): (u64, Option<i64>),
        samples: &str,
        inverse: &str,
        coverage: [u64; 5],
    ) {
        let view = Pack::new(Arc::new(lengths.to_vec()), length, eos).unwrap();
        assert_eq!(show(&view), samples);
        assert_eq!(show_inverse(&view, lengths.len() as u64), inverse);
        assert_eq!(counts(&view), coverage);
    }

    #[test]
    fn blocks_share_one_value() {
        check(&[], (2, None), "", "", [0, 0, 0, 0, 0]);
        check(&[1], (1, None), "", "0..0", [0, 0, 0, 1, 1]);
        check(&[9], (4, None), "0[0..5] | 0[4..9]", "0..2", [9, 1, 0, 0, 0]);
        check(&[10], (4, None), "0[0..5] | 0[4..9]", "0..2", [9, 1, 0, 1, 0]);
        check(&[5, 4], (4, None), "0[0..5] | 0[4..5] 1[0..4]", "0..2 1..2", [9, 1, 0, 0, 0]);
        check(&[4, 5], (4, None), "0[0..4] 1[0..1] | 1[0..5]", "0..1 0..2", [9, 1, 0, 0, 0]);
    }

    #[test]
    fn empty_records_give_no_pieces() {
        let samples = "1[0..2] 4[0..1] | 4[0..1] 6[0..2]";
        check(
            &[0, 2, 0, 0, 1, 0, 3],
            (2, None),
            samples,
            "0..0 0..1 0..0 0..0 0..2 0..0 1..2",
            [5, 1, 0, 1, 4],
        );
    }

    #[test]
    fn an_eos_stands_after_every_record() {
        let samples = "0[0..2] =7 | =7 =7 2[0..1] | 2[0..1] =7 3[0..1] | 3[0..2] =7";
        check(&[2, 0, 1, 2], (2, Some(7)), samples, "0..1 0..0 1..3 2..4", [5, 2, 0, 0, 1]);
        check(&[0, 0, 0], (2, Some(-1)), "=-1 =-1 =-1", "0..0 0..0 0..0", [0, 0, 0, 0, 3]);
    }

    #[test]
    fn a_rest_is_unseen() {
        check(&[3, 3, 3], (4, None), "0[0..3] 1[0..2] | 1[1..3] 2[0..3]", "0..1 0..2 1..2", [9, 1, 0, 0, 0]);
        check(&[3, 2, 3], (4, None), "0[0..3] 1[0..2]", "0..1 0..1 1..1", [5, 0, 0, 3, 1]);
        check(&[3, 3], (9, None), "", "0..0 0..0", [0, 0, 0, 6, 2]);
    }

    #[test]
    fn blocks_apart_share_nothing() {
        let check = |lengths: &[u64], eos, samples: &str, inverse: &str, coverage: [u64; 5]| {
            let view = Pack::apart(Arc::new(lengths.to_vec()), 4, eos).unwrap();
            assert_eq!(show(&view), samples);
            assert_eq!(show_inverse(&view, lengths.len() as u64), inverse);
            assert_eq!(counts(&view), coverage);
        };
        check(&[9], None, "0[0..4] | 0[4..8]", "0..2", [8, 0, 0, 1, 0]);
        check(&[4, 0, 4], None, "0[0..4] | 2[0..4]", "0..1 0..0 1..2", [8, 0, 0, 0, 1]);
        check(&[3, 5], None, "0[0..3] 1[0..1] | 1[1..5]", "0..1 0..2", [8, 0, 0, 0, 0]);
        check(&[3, 3], Some(7), "0[0..3] =7 | 1[0..3] =7", "0..1 1..2", [6, 0, 0, 0, 0]);
        check(&[3], None, "", "0..0", [0, 0, 0, 3, 1]);
        let even = Pack::apart(Arc::new(Same(5, 3)), 4, None).unwrap();
        let listed = Pack::apart(Arc::new(vec![3; 5]), 4, None).unwrap();
        assert_eq!((show(&even), counts(&even)), (show(&listed), counts(&listed)));
        assert_eq!(even.describe(), "pack(length=4,eos=none,apart)");
    }

    #[test]
    fn uniform_lengths_are_arithmetic() {
        let view = Pack::new(Arc::new(Same(1_000_000_000, 1_024)), 2_048, None).unwrap();
        assert_eq!(view.len(), 499_999_999);
        assert_eq!(counts(&view), [1_023_999_997_953, 499_999_998, 0, 2_047, 1]);
        assert_eq!(view.samples_of(2, Pass::default()).unwrap(), 0..2);
        for (length, eos) in [(3, None), (3, Some(0)), (5, Some(0)), (1, Some(0)), (7, None), (10, Some(0))] {
            for (n, each) in [(1, 9), (4, 0), (5, 1), (9, 3), (12, 6), (40, 4)] {
                let even = Pack::new(Arc::new(Same(n, each)), length, eos).unwrap();
                let listed = Pack::new(Arc::new(vec![each; n as usize]), length, eos).unwrap();
                assert_eq!(show(&even), show(&listed));
                assert_eq!(show_inverse(&even, n), show_inverse(&listed, n));
                assert_eq!(counts(&even), counts(&listed), "{n} × {each} {}", even.describe());
            }
        }
    }

    #[test]
    fn wrong_numbers_are_errors() {
        let kind = |lengths: Arc<dyn Lengths>, length, eos| match Pack::new(lengths, length, eos) {
            Ok(view) => panic!("{}", view.describe()),
            Err(e) => e.kind(),
        };
        assert_eq!(kind(Arc::new(vec![3]), 0, None), Kind::Config);
        assert_eq!(kind(Arc::new(vec![3]), u64::MAX, None), Kind::Config);
        assert_eq!(kind(Arc::new(vec![u64::MAX]), 4, Some(0)), Kind::Corrupt);
        assert_eq!(kind(Arc::new(vec![u64::MAX, 1]), 4, None), Kind::Corrupt);
        assert_eq!(kind(Arc::new(Same(2, u64::MAX / 2)), 4, Some(0)), Kind::Corrupt);
        let view = Pack::new(Arc::new(vec![u64::MAX]), 1, None).unwrap();
        let mut pieces = Vec::new();
        view.pieces(u64::MAX - 2, Draw::new(0, 0, 0, 0), &mut pieces).unwrap();
        assert_eq!(pieces, [Piece::Read(Span { record: 0, start: u64::MAX - 2, len: 2 })]);
        let e = view.pieces(u64::MAX - 1, Draw::new(0, 0, 0, 0), &mut pieces).unwrap_err();
        assert_eq!(e.kind(), Kind::OutOfRange);
        assert_eq!(view.samples_of(1, Pass::default()).unwrap_err().kind(), Kind::OutOfRange);
    }

    #[test]
    fn the_cut_has_a_name() {
        let describe = |eos| Pack::new(Arc::new(vec![3]), 1_024, eos).unwrap().describe();
        assert_eq!(
            [describe(None), describe(Some(2))],
            ["pack(length=1024,eos=none)", "pack(length=1024,eos=2)"]
        );
    }
}
