//! Which records are in which bin.

use std::ops::Range;

use super::slot::{Overlong, Slot};
use crate::error::{Error, Result};
use crate::record::{Lengths, Pass};
use crate::view::allocate::make_room;
use crate::view::fit::{self, NO_BIN, Strategy};
use crate::view::lengths::too_many;
use crate::view::reshuffle::{Pieces, Rows};

/// Which records are in which bin.
pub(super) enum Layout {
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

/// What a bin has of a record.
pub(super) enum Part {
    /// A piece, which fills the bin, by its number in the record.
    Full(u64, u64),
    /// What it has in a bin that it shares.
    Shared(u64),
}

/// How records are put into bins.
#[derive(Clone, Copy)]
pub(super) struct Fitting {
    pub(super) strategy: Strategy,
    /// How many neighbours are put together.
    pub(super) scope: Option<u64>,
    /// In another order in each pass.
    pub(super) is_reshuffled: bool,
}

impl Layout {
    /// Of `n` records of the same length.
    ///
    /// # Errors
    /// `Corrupt` for more bins than 64 bits can count.
    pub(super) fn even(n: u64, len: u64, slot: Slot, fitting: Fitting) -> Result<Layout> {
        let (per_bin, full) = (slot.length.checked_div(slot.size(len)), slot.n_full(len));
        let bins = per_bin.map_or(0, |per_bin| n.div_ceil(per_bin));
        let samples = n.checked_mul(full).and_then(|full| full.checked_add(bins));
        let samples = samples.ok_or_else(|| too_many(n))?;
        Ok(match fitting.is_reshuffled {
            true => Layout::Reshuffled {
                full: Pieces::Even(n, full),
                rows: Rows::even(n, per_bin, fitting.scope),
            },
            false => Layout::Even { per_bin: per_bin.unwrap_or(1), full, bins, samples },
        })
    }

    /// Of records of these lengths, and how many of them are longer than `most`.
    ///
    /// # Errors
    /// `Config` for 2^32 - 1 records or more; `Memory`; `Corrupt` for more bins than 64 bits can count; what the lengths say.
    pub(super) fn listed(
        lengths: &dyn Lengths,
        slot: Slot,
        fitting: Fitting,
        most: u64,
    ) -> Result<(Layout, u64)> {
        let n = lengths.len();
        if n >= u64::from(NO_BIN) {
            return Err(Error::config(format!(
                "there are {n} records, expected fewer than {NO_BIN} for bins"
            ))
            .hint("pack() has no such limit"));
        }
        let (mut sizes, mut full, mut n_overlong) = (Vec::new(), Pieces::none(), 0);
        for record in 0..n {
            let len = lengths.length(record)?;
            n_overlong += u64::from(len > most);
            make_room(&mut sizes, 1, n)?;
            // At most 2^28, see MOST_POSITIONS.
            sizes.push(slot.size(len) as u32);
            if fitting.is_reshuffled {
                full.push(record as u32, slot.n_full(len), n)?;
            }
        }
        let Fitting { strategy, scope, is_reshuffled } = fitting;
        if is_reshuffled {
            let rows = Rows::listed(sizes, slot.length as u32, strategy, scope)?;
            return Ok((Layout::Reshuffled { full, rows }, n_overlong));
        }
        let together = scope.and_then(|records| usize::try_from(records).ok()).unwrap_or(sizes.len());
        let mut bins = 0;
        for sizes in sizes.chunks_mut(together.max(1)) {
            let before = bins;
            bins += fitted(sizes, slot.length, strategy)?;
            sizes.iter_mut().filter(|bin| **bin != NO_BIN).for_each(|bin| *bin += before);
        }
        let (order, ends) = by_bin(&sizes, bins)?;
        let has_full = slot.overlong == Overlong::Split && n_overlong > 0;
        let numbers = has_full.then(|| numbers(lengths, slot, &order, &ends)).transpose()?;
        Ok((Layout::Listed { bin_of: sizes, order, ends, numbers }, n_overlong))
    }

    /// How many bins.
    pub(super) fn len(&self) -> u64 {
        match self {
            Layout::Even { samples, .. } => *samples,
            Layout::Listed { numbers: Some(numbers), .. } => numbers.last().map_or(0, |last| last + 1),
            Layout::Listed { ends, .. } => ends.len() as u64,
            Layout::Reshuffled { full, rows } => full.len() + rows.len(),
        }
    }

    /// Records in the bin that holds most of the `n`.
    pub(super) fn most(&self, n: u64) -> u64 {
        match self {
            Layout::Even { bins: 0, .. } => 0,
            Layout::Even { per_bin, .. } => n.min(*per_bin),
            Layout::Listed { ends, .. } => {
                let before = [0].into_iter().chain(ends.iter().copied());
                ends.iter().zip(before).map(|(end, start)| u64::from(end - start)).max().unwrap_or(0)
            }
            Layout::Reshuffled { rows, .. } => rows.most(),
        }
    }

    /// Gives what is in a bin, in order.
    ///
    /// # Errors
    /// What the lengths say; those of `take`.
    #[inline]
    pub(super) fn each(
        &self,
        sample: u64,
        pass: Pass,
        (lengths, slot): (&dyn Lengths, Slot),
        mut take: impl FnMut(Part) -> Result<()>,
    ) -> Result<()> {
        match self {
            Layout::Even { per_bin, full, .. } => {
                let each = per_bin * full + 1;
                let (start, at) = (sample / each * per_bin, sample % each);
                let end = start.saturating_add(*per_bin).min(lengths.len());
                if at < (end - start) * full {
                    return take(Part::Full(start + at / full, at % full));
                }
                (start..end).try_for_each(|record| take(Part::Shared(record)))
            }
            Layout::Listed { order, ends, numbers, .. } => {
                let bin = match numbers {
                    None => sample as usize,
                    Some(numbers) => numbers.partition_point(|number| *number < sample),
                };
                let records = records_of(order, ends, bin);
                let Some(numbers) = numbers.as_ref().filter(|numbers| numbers[bin] != sample) else {
                    return records.iter().try_for_each(|&record| take(Part::Shared(record.into())));
                };
                let mut at = sample - first_number(numbers, bin);
                for found in full_of(records, lengths, slot) {
                    let (record, full) = found?;
                    if at < full {
                        return take(Part::Full(record, at));
                    }
                    at -= full;
                }
                Err(Error::corrupt("the lengths of records are not those that the bins were made of"))
            }
            Layout::Reshuffled { full, .. } if sample < full.len() => {
                let (record, piece) = full.find(sample);
                take(Part::Full(record, piece))
            }
            Layout::Reshuffled { full, rows } => {
                rows.records(sample - full.len(), pass, |record| take(Part::Shared(record)))
            }
        }
    }

    /// The bins that have something of a record, and those of others between them.
    ///
    /// # Errors
    /// What the lengths say.
    pub(super) fn samples_of(
        &self,
        record: u64,
        pass: Pass,
        (lengths, slot): (&dyn Lengths, Slot),
    ) -> Result<Range<u64>> {
        Ok(match self {
            Layout::Even { bins: 0, .. } => 0..0,
            Layout::Even { per_bin, full, .. } => {
                let bin = record / per_bin;
                let start = bin * (per_bin * full + 1);
                let n = (*per_bin).min(lengths.len() - bin * per_bin);
                start + record % per_bin * full..start + n * full + 1
            }
            Layout::Listed { bin_of, order, ends, numbers } => match (bin_of[record as usize], numbers) {
                (NO_BIN, _) => 0..0,
                (bin, None) => u64::from(bin)..u64::from(bin) + 1,
                (bin, Some(numbers)) => {
                    let bin = bin as usize;
                    let mut start = first_number(numbers, bin);
                    for found in full_of(records_of(order, ends, bin), lengths, slot) {
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
                let size = slot.size(lengths.length(record)?) as u32;
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

// The records of a listed bin, and the number of bins that each fills before it.
fn full_of<'r>(
    records: &'r [u32],
    lengths: &'r dyn Lengths,
    slot: Slot,
) -> impl Iterator<Item = Result<(u64, u64)>> + 'r {
    records.iter().map(move |&record| Ok((record.into(), slot.n_full(lengths.length(record.into())?))))
}

// The number of each bin, where bins that its records fill come before it.
fn numbers(lengths: &dyn Lengths, slot: Slot, order: &[u32], ends: &[u32]) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    make_room(&mut numbers, ends.len(), ends.len() as u64)?;
    let mut at = 0u64;
    for bin in 0..ends.len() {
        for found in full_of(records_of(order, ends, bin), lengths, slot) {
            at = at.checked_add(found?.1).ok_or_else(|| too_many(lengths.len()))?;
        }
        numbers.push(at);
        at += 1;
    }
    Ok(numbers)
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

// Records bin by bin, and where each bin ends among them.
fn by_bin(bin_of: &[u32], bins: u32) -> Result<(Vec<u32>, Vec<u32>)> {
    let mut ends = vec![0u32; bins as usize];
    let placed = || bin_of.iter().enumerate().filter(|(_, bin)| **bin != NO_BIN);
    placed().for_each(|(_, &bin)| ends[bin as usize] += 1);
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
    Ok((order, ends))
}
