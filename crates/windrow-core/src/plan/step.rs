//! From one batch to the next: which positions, and which of their rows belong to this rank.

mod batches;

use std::num::NonZeroU64;
use std::ops::Range;

use self::batches::{Cuts, no_samples};
use super::cursor::{Cursor, in_run, kept, kept_until, past_skip};
use super::filling::Filling;
use crate::error::{Error, Kind, Result};
use crate::sampler::{Sampler, Shard};

/// The last batch of an epoch, when the samples do not fill it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastBatch {
    /// Is left out.
    #[default]
    Drop,
    /// Is smaller.
    Keep,
    /// Is filled with the epoch's first samples that are not skipped.
    Repeat,
}

/// One step: the positions of all ranks together, and of which rank a batch of it is. [`Plan::own`](super::Plan::own) says
/// which positions that batch has.
///
/// Positions past the epoch's end stand for its first samples again, those that are not skipped ([`LastBatch::Repeat`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The epoch.
    pub epoch: u64,
    /// Positions of the batch over all ranks.
    pub all: Range<u64>,
    /// How many positions of `all` lie past the epoch's end.
    pub n_repeated: u64,
    /// The rank, among all.
    pub shard: Shard,
    /// Which of the rank's micro-batches, from 0.
    pub micro_batch: u64,
    /// In how many of them the rank gets its rows.
    pub micro_batches: u64,
}

impl Step {
    /// Where a run is once this batch of the step is delivered.
    pub fn after(&self) -> Cursor {
        match self.micro_batch + 1 {
            more if more < self.micro_batches => {
                Cursor { micro_batches: more, ..Cursor::at(self.epoch, self.all.start) }
            }
            _ => Cursor::at(self.epoch, self.all.end - self.n_repeated),
        }
    }

    /// The positions of the batch where ranks get rows that follow each other: where they are dealt by cost, it has that many.
    pub fn in_order(&self) -> Range<u64> {
        let own = self.shard.rows(self.all.end - self.all.start);
        let own = self.all.start + own.start..self.all.start + own.end;
        let each = (own.end - own.start) / self.micro_batches.max(1);
        match self.micro_batches {
            0 | 1 => own,
            _ => own.start + self.micro_batch * each..own.start + (self.micro_batch + 1) * each,
        }
    }

    /// The epoch's position that a row of the batch over all ranks holds.
    pub fn position(&self, sampler: &dyn Sampler, row: u64) -> u64 {
        let position = self.all.start + row;
        if position < self.end() {
            return position;
        }
        let filling = Filling::new(sampler, self.epoch, self.end());
        filling.runs(position..position + 1).next().map_or(position, |run| run.start)
    }

    /// Where its positions begin again with the epoch's first; past all of them in a step that repeats none.
    pub(super) fn end(&self) -> u64 {
        if self.n_repeated == 0 { u64::MAX } else { self.all.end - self.n_repeated }
    }
}

/// The rule from one step to the next.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Rows of a batch over all ranks; their mean, where the order says itself where batches end.
    pub global_batch_size: u64,
    /// This rank among all.
    pub shard: Shard,
    /// What to do with an epoch's last batch when it is not full.
    pub last: LastBatch,
    /// How many epochs a run has; `None` never ends.
    pub epochs: Option<u64>,
    /// In how many batches each rank gets its rows of a step.
    pub micro_batches: u64,
    /// Rows are dealt to ranks by what they cost: each gets the same number.
    pub is_balanced: bool,
}

impl Steps {
    /// Refuses rules that would never give a batch, or from `cursor` on one without a row for some rank, and other batches than an
    /// order is made of.
    ///
    /// # Errors
    /// `Config`; `Mismatch` for a batch size or a cursor that does not fit the order.
    pub fn check(&self, sampler: &dyn Sampler, cursor: Cursor) -> Result<()> {
        if let Some(batches) = sampler.batches() {
            return self.check_own(sampler, batches, cursor);
        }
        if self.global_batch_size == 0 {
            return Err(Error::config("a batch size of 0"));
        }
        let ranks = self.shard.world_size();
        if self.global_batch_size < ranks {
            // A mean over no rows is not a number, and one rank's spreads to all.
            return Err(Error::config(format!(
                "a batch of {} rows over {ranks} ranks: some of them would never get one",
                self.global_batch_size
            ))
            .hint("global_batch_size counts the rows of all ranks together: at least one for each"));
        }
        if let Some(rows) = sampler.batch_rows() {
            self.check_batches(sampler, rows, cursor)?;
        }
        self.check_shares(self.global_batch_size, "a batch")?;
        match sampler.len(0) {
            Some(0) => Err(no_samples()),
            Some(len) if self.last == LastBatch::Drop && len < self.global_batch_size => Err(Error::config(format!(
                "an epoch has {len} samples, a batch over all ranks needs {}: @dropping_last@ there would never be one",
                self.global_batch_size
            ))
            .hint("choose a smaller batch size, or @drop_last=false@")),
            Some(len) if self.last == LastBatch::Keep => {
                self.check_last(len)?;
                self.check_last(len.saturating_sub(cursor.samples))?;
                self.check_skips(sampler, Some(len), cursor)
            }
            None if self.last == LastBatch::Keep => self.check_skips(sampler, None, cursor),
            _ => Ok(()),
        }
    }

    // Batches of an order that is made of them begin where it says.
    fn check_batches(&self, sampler: &dyn Sampler, rows: NonZeroU64, cursor: Cursor) -> Result<()> {
        if self.global_batch_size != rows.get() {
            return Err(Error::mismatch(format!(
                "a batch of {} rows over all ranks, in an order of batches of {rows} rows, each of one part",
                self.global_batch_size
            ))
            .field("global_batch_size")
            .hint(format!("@global_batch_size={rows}@ is what its batches were mixed for")));
        }
        if cursor.samples % rows != 0 {
            return Err(Error::mismatch(format!(
                "the state is at sample {}, inside a batch: each batch is of one part, and has {rows} rows",
                cursor.samples
            )));
        }
        let ends = sampler.skips().iter().flat_map(|skip| [skip.start, skip.end]);
        match ends.into_iter().find(|end| *end % rows != 0) {
            None => Ok(()),
            Some(end) => {
                let before = end - end % rows;
                Err(Error::config(format!(
                    "a skip begins or ends at sample {end}, inside a batch: each batch is of one part, and has {rows} rows"
                ))
                .field("skip")
                .hint(match before.checked_add(rows.get()) {
                    Some(after) => format!("whole batches can be skipped: their ends next to it are {before} and {after}"),
                    None => format!("whole batches can be skipped: the end before it is {before}"),
                }))
            }
        }
    }

    // Every rank needs a row of the last batch: a mean over no rows is NaN, and fewer steps on one rank stop the others.
    fn check_last(&self, samples_left: u64) -> Result<()> {
        let rows = samples_left.checked_rem(self.global_batch_size).unwrap_or(0);
        let ranks = self.shard.world_size();
        if rows == 0 || rows >= ranks {
            let hint =
                "@last=repeat@ fills it with the epoch's first samples, @drop_last=true@ leaves it out";
            return self.check_shares(rows, "the last batch of an epoch").map_err(|e| e.hint(hint));
        }
        Err(Error::config(format!(
            "the last batch of an epoch has {rows} of {} rows, for {ranks} ranks: some of them would get none",
            self.global_batch_size
        ))
        .hint("@last=repeat@ fills it with the epoch's first samples, @drop_last=true@ leaves it out"))
    }

    // Micro-batches, and ranks that are to cost the same, have equal numbers of rows.
    pub(super) fn check_shares(&self, rows: u64, what: &str) -> Result<()> {
        let (ranks, batches) = (self.shard.world_size(), self.micro_batches);
        let is_shared = |by: Option<u64>| by.is_some_and(|by| by > 0 && rows.is_multiple_of(by));
        if batches != 1 && !is_shared(ranks.checked_mul(batches)) {
            return Err(Error::config(format!(
                "@accumulate={batches}@ with {what} of {rows} rows over {ranks} ranks: {ranks} times {batches} batches of equal \
                 size do not make {rows} rows"
            ))
            .field("accumulate")
            .hint("@batch_size@ counts the rows of one such batch, @global_batch_size@ those of all ranks in a whole step"));
        }
        if self.is_balanced && !is_shared(Some(ranks)) {
            return Err(Error::config(format!(
                "@balance@ with {what} of {rows} rows over {ranks} ranks: each rank gets the same number of rows"
            ))
            .field("balance")
            .hint("choose a batch size that the number of ranks divides, or leave @balance@ out"));
        }
        Ok(())
    }

    // What comes before and after each skip ends as an epoch of `len` does; without epochs, what comes before it.
    fn check_skips(&self, sampler: &dyn Sampler, len: Option<u64>, cursor: Cursor) -> Result<()> {
        let skips = sampler.skips();
        let at = u64::try_from(in_run(sampler, cursor)).unwrap_or(u64::MAX);
        let ends = [0].into_iter().chain(skips.iter().map(|skip| skip.end));
        let starts = skips.iter().skip(1).map(|skip| skip.start).chain([u64::MAX]);
        for ((skip, before), next) in skips.iter().zip(ends).zip(starts) {
            let epoch = len.map_or(0, |len| skip.start - skip.start % len);
            self.check_last(skip.start.saturating_sub(epoch.max(before).max(at)))?;
            if let Some(len) = len {
                let end = (skip.end / len + 1).saturating_mul(len).min(next);
                self.check_last(end.saturating_sub(skip.end.max(at)))?;
            }
        }
        Ok(())
    }

    /// The step after `cursor`; `None` when the run is over.
    pub fn next(&self, sampler: &dyn Sampler, cursor: Cursor) -> Option<Step> {
        let mut cursor = cursor;
        loop {
            cursor = past_skip(sampler, cursor);
            let most = self.epochs.into_iter().chain(sampler.epochs()).min();
            if most.is_some_and(|most| cursor.epoch >= most) {
                return None;
            }
            let len = sampler.len(cursor.epoch).unwrap_or(u64::MAX);
            let end = kept_until(sampler, cursor).min(len);
            let left = end.saturating_sub(cursor.samples);
            let (rows, n_repeated) = match (Cuts::new(self, sampler, cursor.epoch), left) {
                (Cuts::Own(own), 1..) if own.is_kept(cursor.samples) => (own.rows(cursor.samples, end), 0),
                (Cuts::Even { rows, .. }, left) if left >= rows => (rows, 0),
                (Cuts::Even { last: LastBatch::Keep, .. }, 1..) => (left, 0),
                (Cuts::Even { rows, last: LastBatch::Repeat }, 1..) => (rows, rows - left),
                _ if end < len => {
                    cursor = Cursor::at(cursor.epoch, end);
                    continue;
                }
                _ => {
                    cursor = Cursor::at(cursor.epoch.checked_add(1)?, 0);
                    continue;
                }
            };
            let start = cursor.samples;
            return Some(Step {
                epoch: cursor.epoch,
                all: start..start.checked_add(rows)?,
                n_repeated,
                shard: self.shard,
                micro_batch: cursor.micro_batches.min(self.micro_batches.saturating_sub(1)),
                micro_batches: self.micro_batches,
            });
        }
    }

    /// The step with this number in an epoch, or in the run: all rows that its rank gets, in one batch.
    ///
    /// # Errors
    /// `OutOfRange` when no run comes there.
    pub fn find(&self, sampler: &dyn Sampler, epoch: Option<u64>, number: u64) -> Result<Step> {
        let no_such = || Error::new(Kind::OutOfRange, format!("no run comes to step {number}"));
        let found = match epoch {
            Some(epoch) => {
                if let Some(most) = self.in_epoch(sampler, epoch).filter(|most| number >= *most) {
                    return Err(Error::out_of_range("step", number, most)
                        .hint("without an epoch, steps count through all of them"));
                }
                self.place_in_epoch(sampler, epoch, number)
            }
            None => self.place_in_run(sampler, number),
        };
        let cursor = found.ok_or_else(no_such)?;
        let whole = Steps { micro_batches: 1, ..*self };
        whole.next(sampler, cursor).filter(|step| step.epoch == cursor.epoch).ok_or_else(no_such)
    }

    // Where step `number` of an epoch begins.
    fn place_in_epoch(&self, sampler: &dyn Sampler, epoch: u64, number: u64) -> Option<Cursor> {
        let cuts = Cuts::new(self, sampler, epoch);
        let mut left = number;
        for positions in kept(sampler, epoch) {
            if let Some(samples) = cuts.start(&positions, left) {
                return Some(Cursor::at(epoch, samples));
            }
            left = left.checked_sub(cuts.count(&positions))?;
        }
        None
    }

    // Where step `number` of the run begins: epochs are equally long but for those that are skipped in part or in whole, and for those
    // of an order that says itself where batches end.
    fn place_in_run(&self, sampler: &dyn Sampler, number: u64) -> Option<Cursor> {
        let Some(len) = sampler.len(0) else { return self.place_in_epoch(sampler, 0, number) };
        if sampler.batches().is_some() {
            return self.place_epoch_by_epoch(sampler, len, number);
        }
        let in_whole = Cuts::new(self, sampler, 0).count(&(0..len));
        let (mut left, mut epoch) = (number, 0u64);
        loop {
            let begins = u128::from(epoch) * u128::from(len);
            let skip = sampler.skips().iter().find(|skip| u128::from(skip.end) > begins);
            let skipped_in = skip.map(|skip| (skip.start / len).max(epoch));
            let n_whole = skipped_in.map_or(u64::MAX - epoch, |other| other - epoch);
            if left.checked_div(in_whole)? < n_whole {
                let samples = (left % in_whole).checked_mul(self.global_batch_size)?;
                return Some(Cursor::at(epoch + left / in_whole, samples));
            }
            left -= in_whole * n_whole;
            epoch += n_whole;
            let n = self.in_epoch(sampler, epoch)?;
            if left < n {
                return self.place_in_epoch(sampler, epoch, left);
            }
            left -= n;
            epoch = past_whole_skip(sampler, len, epoch)?;
        }
    }

    fn place_epoch_by_epoch(&self, sampler: &dyn Sampler, len: u64, number: u64) -> Option<Cursor> {
        let most = self.epochs.into_iter().chain(sampler.epochs()).min();
        let (mut left, mut epoch) = (number, 0);
        while most.is_none_or(|most| epoch < most) {
            let n = self.in_epoch(sampler, epoch)?;
            if left < n {
                return self.place_in_epoch(sampler, epoch, left);
            }
            left -= n;
            epoch = past_whole_skip(sampler, len, epoch)?;
        }
        None
    }

    /// Steps in one epoch; `None` when it never ends.
    pub fn in_epoch(&self, sampler: &dyn Sampler, epoch: u64) -> Option<u64> {
        sampler.len(epoch)?;
        let cuts = Cuts::new(self, sampler, epoch);
        Some(kept(sampler, epoch).iter().map(|positions| cuts.count(positions)).sum())
    }

    /// The number of the step that an epoch's position is first delivered in, counted from the start of the run, as
    /// [`Steps::find`] counts; `None` where none delivers it.
    pub fn number(&self, sampler: &dyn Sampler, epoch: u64, position: u64) -> Option<u64> {
        let (here, _) = self.places(sampler, epoch, position).next()?;
        let before = match sampler.skips().is_empty() && sampler.batches().is_none() {
            true => self.in_epoch(sampler, 0).unwrap_or(0).checked_mul(epoch)?,
            false => (0..epoch).map(|epoch| self.in_epoch(sampler, epoch).unwrap_or(0)).sum(),
        };
        before.checked_add(here)
    }

    /// The row of its batch over all ranks that a position of an epoch has, also where that batch is left out; skips do not count.
    pub fn row(&self, sampler: &dyn Sampler, epoch: u64, position: u64) -> u64 {
        Cuts::new(self, sampler, epoch).row(position)
    }

    /// Where a position of an epoch is delivered, as (step in the epoch, row of the batch over all ranks): nowhere when
    /// its batch is left out, more than once when it also fills the last one.
    pub fn places(
        &self,
        sampler: &dyn Sampler,
        epoch: u64,
        position: u64,
    ) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (cuts, len) = (Cuts::new(self, sampler, epoch), sampler.len(epoch).unwrap_or(u64::MAX));
        let mut found = Vec::new();
        let mut steps_before = 0;
        for positions in kept(sampler, epoch) {
            let once = positions.contains(&position).then_some(position);
            // The last batch of the positions in a row is filled with the epoch's first.
            let again = (self.last == LastBatch::Repeat).then(|| {
                let n = cuts.count(&positions);
                let end = positions.start.saturating_add(n.saturating_mul(self.global_batch_size));
                Filling::new(sampler, epoch, positions.end).places(position, end)
            });
            let here = once.into_iter().chain(again.into_iter().flatten());
            let here = here.filter_map(|at| cuts.place(&positions, at));
            found.extend(here.map(|(step, row)| (steps_before + step, row)));
            // Nothing comes behind the last positions, and to count them may take long.
            steps_before += if positions.end < len { cuts.count(&positions) } else { 0 };
        }
        found.into_iter()
    }
}

// The epoch after one, or where a skip over many of them ends, which is gone past at once.
fn past_whole_skip(sampler: &dyn Sampler, len: u64, epoch: u64) -> Option<u64> {
    let begins = u128::from(epoch) * u128::from(len);
    let over =
        sampler.skips().iter().find(|skip| u128::from(skip.end) > begins && u128::from(skip.start) <= begins);
    Some(over.map_or(0, |skip| skip.end / len).max(epoch.checked_add(1)?))
}
