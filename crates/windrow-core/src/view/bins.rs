//! Whole records packed into bins of a fixed number of positions: no record is split, little is padded.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::allocate::make_room;
use super::fit::{self, NO_BIN, Strategy};
use super::reshuffle::{Pieces, Rows, WORD, check_count};
use super::share::{RowLength, Share};
use super::{Coverage, View, lengths};
use crate::error::{Error, Result};
use crate::record::{Draw, Lengths, Pass, Piece, Span};

/// What to do with a record that is longer than a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overlong {
    /// Its first values are a bin, the rest is never seen.
    #[default]
    Cut,
    /// It is split into pieces of a bin each; what is left over goes into a bin as a record of that length does.
    Split,
    /// It is left out.
    Drop,
}

impl Overlong {
    // Values that a record has in a bin among others; 0 where it is in none.
    fn size(self, len: u64, length: u64) -> u64 {
        match self {
            Overlong::Cut => len.min(length),
            Overlong::Drop if len > length => 0,
            Overlong::Drop => len,
            Overlong::Split => len - self.n_full(len, length) * length,
        }
    }

    // Bins that a record fills by itself, before the one that it shares.
    fn n_full(self, len: u64, length: u64) -> u64 {
        if self == Overlong::Split { len.saturating_sub(1) / length } else { 0 }
    }
}

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
    length: u64,
    /// 1 where a record that is cut reads the value after it as the last label.
    label: u64,
    strategy: Strategy,
    overlong: Overlong,
    scope: Option<u64>,
    n_overlong: u64,
    share: Share,
    layout: Layout,
    max_segments: u64,
}

/// Which records are in which bin.
enum Layout {
    /// All records have the same length: `per_bin` to a bin, in record order, whatever the strategy. Each record first fills
    /// `full` bins by itself, which come before the bin of its rest.
    Even { per_bin: u64, full: u64, bins: u64, samples: u64 },
    /// By list: 12 bytes per record at most.
    Listed {
        /// Each record's bin, or [`NO_BIN`].
        bin_of: Vec<u32>,
        /// Records bin by bin.
        order: Vec<u32>,
        /// Where each bin ends in `order`.
        ends: Vec<u32>,
        /// The number of each bin, where some are filled by a record's pieces.
        numbers: Option<Vec<u64>>,
    },
    /// Records of about the same size change places in each pass. Before the rows that they share are those that their pieces fill.
    Reshuffled { full: Pieces, rows: Rows },
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
        let row = length.into();
        let (length, share) = (row.length(), row.share(0));
        let most = most_values(row, overlong, scope, is_next)?;
        let slot = Slot { length, overlong, share };
        let (layout, max_segments, n_overlong) = match lengths::uniform(&*lengths)? {
            Some(each) => {
                let (layout, max_segments) = even(lengths.len(), each, slot)?;
                (layout, max_segments, if each > most { lengths.len() } else { 0 })
            }
            None => listed(&*lengths, slot, (strategy, scope), most)?,
        };
        let label = u64::from(is_next);
        Ok(Bins {
            lengths,
            length,
            label,
            strategy,
            overlong,
            scope,
            n_overlong,
            share,
            layout,
            max_segments,
        })
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
        let row = length.into();
        let (length, share) = (row.length(), row.share(0));
        let most = most_values(row, overlong, scope, is_next)?;
        let slot = Slot { length, overlong, share };
        let n = lengths.len();
        check_count(n)?;
        let (full, rows, n_overlong) = match lengths::uniform(&*lengths)? {
            Some(each) => {
                let (size, full) = (slot.size(each), overlong.n_full(each, length));
                let fits = full.checked_mul(n).and_then(|pieces| pieces.checked_add(n));
                fits.ok_or_else(|| lengths::too_many(n))?;
                let rows = Rows::even(n, length.checked_div(size), scope);
                (Pieces::Even(n, full), rows, if each > most { n } else { 0 })
            }
            None => {
                let mut full = Pieces::none();
                let (sizes, n_overlong) = sizes(&*lengths, most, |record, len| {
                    full.push(record, overlong.n_full(len, length), n)?;
                    // At most 2^28, see MOST_POSITIONS.
                    Ok(slot.size(len) as u32)
                })?;
                (full, Rows::listed(sizes, length as u32, strategy, scope)?, n_overlong)
            }
        };
        let max_segments = rows.most();
        let layout = Layout::Reshuffled { full, rows };
        let label = u64::from(is_next);
        Ok(Bins {
            lengths,
            length,
            label,
            strategy,
            overlong,
            scope,
            n_overlong,
            share,
            layout,
            max_segments,
        })
    }

    /// Records in the bin that holds most of them; 0 where there is no bin.
    pub fn max_segments(&self) -> u64 {
        self.max_segments
    }

    // What a record has in the bin that it shares.
    fn read(&self, record: u64, out: &mut Vec<Piece>) -> Result<()> {
        let len = self.lengths.length(record)?;
        let start = self.overlong.n_full(len, self.length) * self.length;
        let len = match self.overlong {
            Overlong::Cut => len.min(self.length + self.label),
            Overlong::Split | Overlong::Drop => len - start,
        };
        out.push(Piece::Read(Span { record, start, len }));
        let filled = self.slot().size(start + len).saturating_sub(len);
        if filled > 0 {
            out.push(Piece::Fill(Span { record, start: start + len, len: filled }));
        }
        Ok(())
    }

    fn slot(&self) -> Slot {
        Slot { length: self.length, overlong: self.overlong, share: self.share }
    }

    // A piece that fills a bin. The record continues after it.
    fn read_full(&self, record: u64, piece: u64, out: &mut Vec<Piece>) {
        let start = piece * self.length;
        out.push(Piece::Read(Span { record, start, len: self.length + self.label }));
    }

    // The records of a listed bin, and the number of bins that each fills before it.
    fn full_of<'r>(&'r self, records: &'r [u32]) -> impl Iterator<Item = Result<(u64, u64)>> + 'r {
        records.iter().map(|&record| {
            let len = self.lengths.length(record.into())?;
            Ok((record.into(), self.overlong.n_full(len, self.length)))
        })
    }
}

/// What a record takes of the bin that it shares.
#[derive(Clone, Copy)]
struct Slot {
    length: u64,
    overlong: Overlong,
    share: Share,
}

impl Slot {
    // Positions; 0 where it is in no such bin.
    fn size(self, len: u64) -> u64 {
        let values = self.overlong.size(len, self.length);
        // The length of a bin is a multiple itself.
        self.share.of(values).unwrap_or(self.length)
    }
}

// The records of bin `bin`.
fn records_of<'r>(order: &'r [u32], ends: &[u32], bin: usize) -> &'r [u32] {
    let start = if bin == 0 { 0 } else { ends[bin - 1] as usize };
    &order[start..ends[bin] as usize]
}

// The first of the bins that the records of bin `bin` fill, or itself where they fill none.
fn first_number(numbers: &[u64], bin: usize) -> u64 {
    if bin == 0 { 0 } else { numbers[bin - 1] + 1 }
}

impl View for Bins {
    fn len(&self) -> u64 {
        match &self.layout {
            Layout::Even { samples, .. } => *samples,
            Layout::Listed { numbers: Some(numbers), .. } => numbers.last().map_or(0, |last| last + 1),
            Layout::Listed { ends, .. } => ends.len() as u64,
            Layout::Reshuffled { full, rows } => full.len() + rows.len(),
        }
    }

    fn pieces(&self, sample: u64, draw: Draw, out: &mut Vec<Piece>) -> Result<()> {
        lengths::check_sample(sample, self.len())?;
        match &self.layout {
            Layout::Even { per_bin, full, .. } => {
                let each = per_bin * full + 1;
                let (start, at) = (sample / each * per_bin, sample % each);
                let end = start.saturating_add(*per_bin).min(self.lengths.len());
                if at < (end - start) * full {
                    self.read_full(start + at / full, at % full, out);
                    Ok(())
                } else {
                    (start..end).try_for_each(|record| self.read(record, out))
                }
            }
            Layout::Listed { order, ends, numbers: None, .. } => {
                let records = records_of(order, ends, sample as usize);
                records.iter().try_for_each(|&record| self.read(record.into(), out))
            }
            Layout::Listed { order, ends, numbers: Some(numbers), .. } => {
                let bin = numbers.partition_point(|number| *number < sample);
                let records = records_of(order, ends, bin);
                if numbers[bin] == sample {
                    return records.iter().try_for_each(|&record| self.read(record.into(), out));
                }
                let mut at = sample - first_number(numbers, bin);
                for found in self.full_of(records) {
                    let (record, full) = found?;
                    if at < full {
                        self.read_full(record, at, out);
                        return Ok(());
                    }
                    at -= full;
                }
                Err(Error::corrupt("the lengths of records are not those that the bins were made of"))
            }
            Layout::Reshuffled { full, .. } if sample < full.len() => {
                let (record, piece) = full.find(sample);
                self.read_full(record, piece, out);
                Ok(())
            }
            Layout::Reshuffled { full, rows } => {
                rows.records(sample - full.len(), draw.pass(), |record| self.read(record, out))
            }
        }
    }

    fn is_reshuffled(&self) -> bool {
        matches!(self.layout, Layout::Reshuffled { .. })
    }

    fn samples_of(&self, record: u64, pass: Pass) -> Result<Range<u64>> {
        lengths::check_record(record, self.lengths.len())?;
        Ok(match &self.layout {
            Layout::Even { bins: 0, .. } => 0..0,
            Layout::Even { per_bin, full, .. } => {
                let bin = record / per_bin;
                let start = bin * (per_bin * full + 1);
                let n = (*per_bin).min(self.lengths.len() - bin * per_bin);
                start + record % per_bin * full..start + n * full + 1
            }
            Layout::Listed { bin_of, order, ends, numbers } => match (bin_of[record as usize], numbers) {
                (NO_BIN, _) => 0..0,
                (bin, None) => u64::from(bin)..u64::from(bin) + 1,
                (bin, Some(numbers)) => {
                    let bin = bin as usize;
                    let mut start = first_number(numbers, bin);
                    for found in self.full_of(records_of(order, ends, bin)) {
                        let (other, full) = found?;
                        if other == record {
                            // Bins that records after it fill are among them, where it fills some itself.
                            start = if full == 0 { numbers[bin] } else { start };
                            break;
                        }
                        start += full;
                    }
                    start..numbers[bin] + 1
                }
            },
            Layout::Reshuffled { full, rows } => {
                let size = self.slot().size(self.lengths.length(record)?) as u32;
                let pieces = full.of(record);
                match rows.row_of(record, size, pass) {
                    None => pieces,
                    Some(row) if pieces.is_empty() => full.len() + row..full.len() + row + 1,
                    // Pieces and rows of others are between.
                    Some(row) => pieces.start..full.len() + row + 1,
                }
            }
        })
    }

    fn positions(&self) -> u64 {
        self.length
    }

    fn coverage(&self, _pass: Pass) -> Result<Coverage> {
        let n = self.lengths.len();
        let Bins { length, label, overlong, .. } = *self;
        // In `padded` first what the records fill, then what they leave free.
        let filled = lengths::sum(&*self.lengths, |len| {
            let full = overlong.n_full(len, length);
            let used = match overlong {
                Overlong::Cut => len.min(length + label),
                Overlong::Split | Overlong::Drop => full * length + overlong.size(len, length),
            };
            Some(Coverage {
                used,
                repeated: full * label,
                padded: full * length + overlong.size(len, length),
                unseen: len - used,
                skipped_records: u64::from(used == 0),
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
        let overlong = match self.overlong {
            Overlong::Cut => "",
            Overlong::Split => ",overlong=split",
            Overlong::Drop => ",overlong=drop",
        };
        let scope = self.scope.map_or(String::new(), |records| format!(",scope={records}"));
        let reshuffled = if self.is_reshuffled() { format!(",reshuffle={WORD}") } else { String::new() };
        format!(
            "bins(length={},strategy={strategy}{overlong}{scope}{}{reshuffled}{})",
            self.length,
            lengths::apart(self.label),
            self.share.described()
        )
    }

    fn overlong(&self) -> u64 {
        self.n_overlong
    }
}

fn even(n_records: u64, len: u64, slot: Slot) -> Result<(Layout, u64)> {
    let Slot { length, overlong, .. } = slot;
    let (size, full) = (slot.size(len), overlong.n_full(len, length));
    let per_bin = length.checked_div(size).unwrap_or(1);
    let bins = if size == 0 { 0 } else { n_records.div_ceil(per_bin) };
    let samples = n_records.checked_mul(full).and_then(|full| full.checked_add(bins));
    let samples = samples.ok_or_else(|| lengths::too_many(n_records))?;
    let max_segments = if bins == 0 { 0 } else { per_bin.min(n_records) };
    Ok((Layout::Even { per_bin, full, bins, samples }, max_segments))
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

// The size of each record, and how many are longer than `most`.
fn sizes(
    lengths: &dyn Lengths,
    most: u64,
    mut size: impl FnMut(u32, u64) -> Result<u32>,
) -> Result<(Vec<u32>, u64)> {
    let n = lengths.len();
    if n >= u64::from(NO_BIN) {
        return Err(Error::config(format!("there are {n} records, expected fewer than {NO_BIN} for bins"))
            .hint("pack() has no such limit"));
    }
    let (mut sizes, mut n_overlong) = (Vec::new(), 0);
    for record in 0..n {
        let len = lengths.length(record)?;
        n_overlong += u64::from(len > most);
        make_room(&mut sizes, 1, n)?;
        sizes.push(size(record as u32, len)?);
    }
    Ok((sizes, n_overlong))
}

// `most`: what is longer is counted.
fn listed(
    lengths: &dyn Lengths,
    slot: Slot,
    (strategy, scope): (Strategy, Option<u64>),
    most: u64,
) -> Result<(Layout, u64, u64)> {
    let Slot { length, overlong, .. } = slot;
    let n = lengths.len();
    // At most 2^28, see MOST_POSITIONS.
    let (mut slots, n_overlong) = sizes(lengths, most, |_, len| Ok(slot.size(len) as u32))?;
    let together = scope.and_then(|records| usize::try_from(records).ok()).unwrap_or(slots.len());
    let mut bins = 0;
    for slots in slots.chunks_mut(together.max(1)) {
        let before = bins;
        bins += fitted(slots, length, strategy)?;
        slots.iter_mut().filter(|bin| **bin != NO_BIN).for_each(|bin| *bin += before);
    }
    let (mut layout, max_segments) = by_bin(slots, bins)?;
    if let (Layout::Listed { order, ends, numbers, .. }, Overlong::Split, true) =
        (&mut layout, overlong, n_overlong > 0)
    {
        let mut found = Vec::new();
        make_room(&mut found, ends.len(), ends.len() as u64)?;
        let mut at = 0u64;
        for bin in 0..ends.len() {
            for &record in records_of(order, ends, bin) {
                let full = overlong.n_full(lengths.length(record.into())?, length);
                at = at.checked_add(full).ok_or_else(|| lengths::too_many(n))?;
            }
            found.push(at);
            at += 1;
        }
        *numbers = Some(found);
    }
    Ok((layout, max_segments, n_overlong))
}

// Replaces the sizes of records by their bins, which are counted.
fn fitted(slots: &mut [u32], length: u64, strategy: Strategy) -> Result<u32> {
    // Below 2^60.
    let volume = slots.iter().map(|size| u64::from(*size)).sum();
    // One bin of the whole volume holds all there is: no table needs to be larger.
    let capacity = length.min(volume) as u32;
    match strategy {
        Strategy::BestFit => fit::best_fit(slots, capacity),
        Strategy::FirstFit => Ok(fit::first_fit(slots, capacity, volume)),
    }
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
    let mut order = Vec::new();
    make_room(&mut order, start as usize, start.into())?;
    order.resize(start as usize, 0);
    for (record, &bin) in placed() {
        let place = &mut ends[bin as usize];
        order[*place as usize] = record as u32;
        *place += 1;
    }
    Ok((Layout::Listed { bin_of, order, ends, numbers: None }, max_segments.into()))
}

#[cfg(test)]
mod tests {
    use super::fit::Strategy::{BestFit, FirstFit};
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
