//! From one batch to the next: which positions, and which of their rows belong to this rank.

use std::ops::Range;

use crate::error::{Error, Kind, Result};
use crate::sampler::{Sampler, Shard};

/// How many samples were delivered to all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch, from 0.
    pub epoch: u64,
    /// Samples of this epoch.
    pub samples: u64,
}

/// The last batch of an epoch, when the samples do not fill it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastBatch {
    /// Is left out.
    #[default]
    Drop,
    /// Is smaller.
    Keep,
    /// Is filled with the epoch's first samples.
    Repeat,
}

/// One step: the positions that all ranks lay together, and those of this rank.
///
/// Positions past the epoch's end stand for its first samples again ([`LastBatch::Repeat`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The epoch.
    pub epoch: u64,
    /// Positions of the batch over all ranks.
    pub all: Range<u64>,
    /// This rank's part of them.
    pub own: Range<u64>,
    /// How many positions of `all` lie past the epoch's end.
    pub n_repeated: u64,
}

impl Step {
    /// Where a run stands once the step is delivered.
    pub fn after(&self) -> Cursor {
        Cursor { epoch: self.epoch, samples: self.all.end - self.n_repeated }
    }

    /// The epoch's position that a row of the batch over all ranks holds.
    pub fn position(&self, row: u64) -> u64 {
        let position = self.all.start + row;
        match self.n_repeated {
            0 => position,
            // The step ends the epoch.
            _ => position % self.after().samples,
        }
    }

    /// Rows of this rank that repeat the epoch's first samples.
    pub fn own_repeated(&self) -> u64 {
        self.own.end.saturating_sub(self.own.start.max(self.after().samples))
    }
}

/// The rule from one step to the next.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Rows of a batch over all ranks.
    pub global_batch_size: u64,
    /// This rank among all.
    pub shard: Shard,
    /// What becomes of an epoch's last batch when it is not full.
    pub last: LastBatch,
    /// Ends after so many epochs; `None` never ends.
    pub epochs: Option<u64>,
}

impl Steps {
    /// Refuses rules that would never give a batch, or from `cursor` on one without a row for some rank.
    ///
    /// # Errors
    /// `Config`.
    pub fn check(&self, sampler: &dyn Sampler, cursor: Cursor) -> Result<()> {
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
        match sampler.len(0) {
            Some(0) => Err(Error::config("the view has no samples")
                .hint("choose a shorter length; view.coverage() counts what it leaves out")),
            Some(len) if self.last == LastBatch::Drop && len < self.global_batch_size => Err(Error::config(format!(
                "an epoch has {len} samples, a batch over all ranks needs {}: with drop_last there would never be one",
                self.global_batch_size
            ))
            .hint("choose a smaller batch size, or drop_last=False")),
            Some(len) if self.last == LastBatch::Keep => {
                self.check_last(len)?;
                self.check_last(len.saturating_sub(cursor.samples))
            }
            _ => Ok(()),
        }
    }

    // Every rank needs a row of the last batch: a mean over no rows is NaN, and fewer steps on one rank stop the others.
    fn check_last(&self, samples_left: u64) -> Result<()> {
        let rows = samples_left.checked_rem(self.global_batch_size).unwrap_or(0);
        let ranks = self.shard.world_size();
        if rows == 0 || rows >= ranks {
            return Ok(());
        }
        Err(Error::config(format!(
            "the last batch of an epoch has {rows} of {} rows, for {ranks} ranks: some of them would get none",
            self.global_batch_size
        ))
        .hint("last=\"repeat\" fills it with the epoch's first samples, drop_last=True leaves it out"))
    }

    /// The step after `cursor`; `None` when the run is over.
    pub fn next(&self, sampler: &dyn Sampler, cursor: Cursor) -> Option<Step> {
        let mut cursor = cursor;
        loop {
            let most = self.epochs.into_iter().chain(sampler.epochs()).min();
            if most.is_some_and(|most| cursor.epoch >= most) {
                return None;
            }
            let left = sampler.len(cursor.epoch).map_or(u64::MAX, |len| len.saturating_sub(cursor.samples));
            let (rows, n_repeated) = match (left, self.last) {
                (left, _) if left >= self.global_batch_size => (self.global_batch_size, 0),
                (1.., LastBatch::Keep) => (left, 0),
                (1.., LastBatch::Repeat) => (self.global_batch_size, self.global_batch_size - left),
                _ => {
                    cursor = Cursor { epoch: cursor.epoch.checked_add(1)?, samples: 0 };
                    continue;
                }
            };
            let start = cursor.samples;
            let all = start..start.checked_add(rows)?;
            let own = self.shard.rows(rows);
            return Some(Step {
                epoch: cursor.epoch,
                all,
                own: start + own.start..start + own.end,
                n_repeated,
            });
        }
    }

    /// The step with this number in an epoch, or in the run.
    ///
    /// # Errors
    /// `OutOfRange` when no run comes there.
    pub fn find(&self, sampler: &dyn Sampler, epoch: Option<u64>, number: u64) -> Result<Step> {
        let mut cursor = Cursor { epoch: epoch.unwrap_or(0), samples: 0 };
        let mut inside = number;
        let no_such = || Error::new(Kind::OutOfRange, format!("no run comes to step {number}"));
        if let Some(most) = self.in_epoch(sampler, cursor.epoch).filter(|most| inside >= *most) {
            if epoch.is_some() {
                return Err(Error::out_of_range("step", number, most)
                    .hint("without an epoch, steps count through all of them"));
            }
            // Epochs are equally long.
            cursor.epoch = inside.checked_div(most).ok_or_else(no_such)?;
            inside %= most;
        }
        cursor.samples = inside.checked_mul(self.global_batch_size).ok_or_else(no_such)?;
        self.next(sampler, cursor).filter(|step| step.epoch == cursor.epoch).ok_or_else(no_such)
    }

    /// Steps in one epoch; `None` when it never ends.
    pub fn in_epoch(&self, sampler: &dyn Sampler, epoch: u64) -> Option<u64> {
        let len = sampler.len(epoch)?;
        Some(match self.last {
            LastBatch::Drop => len / self.global_batch_size,
            LastBatch::Keep | LastBatch::Repeat => len.div_ceil(self.global_batch_size),
        })
    }

    /// Where a position of an epoch is delivered, as (step in the epoch, row of the batch over all ranks): nowhere when
    /// its batch is left out, more than once when it also fills the last one.
    pub fn places(
        &self,
        sampler: &dyn Sampler,
        epoch: u64,
        position: u64,
    ) -> impl Iterator<Item = (u64, u64)> + use<> {
        let batch = self.global_batch_size;
        let end = self.in_epoch(sampler, epoch).map_or(u64::MAX, |steps| steps.saturating_mul(batch));
        let len = match self.last {
            LastBatch::Repeat => sampler.len(epoch),
            LastBatch::Drop | LastBatch::Keep => None,
        };
        std::iter::successors(Some(position), move |at| at.checked_add(len?))
            .take_while(move |at| *at < end)
            .map(move |at| (at / batch, at % batch))
    }
}
