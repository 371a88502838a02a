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

/// One step: the positions that all ranks lay together, and those of this rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The epoch.
    pub epoch: u64,
    /// Positions of the batch over all ranks.
    pub all: Range<u64>,
    /// This rank's part of them.
    pub own: Range<u64>,
}

impl Step {
    /// Where a run stands once the step is delivered.
    pub fn after(&self) -> Cursor {
        Cursor { epoch: self.epoch, samples: self.all.end }
    }
}

/// The rule from one step to the next.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Rows of a batch over all ranks.
    pub global_batch_size: u64,
    /// This rank among all.
    pub shard: Shard,
    /// Leaves out the last batch of an epoch when it is not full.
    pub drop_last: bool,
    /// Ends after so many epochs; `None` never ends.
    pub epochs: Option<u64>,
}

impl Steps {
    /// Refuses rules that would never give a batch.
    ///
    /// # Errors
    /// `Config`.
    pub fn check(&self, sampler: &dyn Sampler) -> Result<()> {
        if self.global_batch_size == 0 {
            return Err(Error::config("a batch size of 0"));
        }
        let ranks = self.shard.world_size();
        if self.global_batch_size < ranks {
            // A mean over no rows is no number, and one rank's spreads to all.
            return Err(Error::config(format!(
                "a batch of {} rows over {ranks} ranks: some of them would never get one",
                self.global_batch_size
            ))
            .hint("global_batch_size counts the rows of all ranks together: at least one for each"));
        }
        match sampler.len(0) {
            Some(0) => Err(Error::config("the view has no samples")
                .hint("choose a shorter length; view.coverage() counts what it leaves out")),
            Some(len) if self.drop_last && len < self.global_batch_size => Err(Error::config(format!(
                "an epoch has {len} samples, a batch over all ranks needs {}: with drop_last there would never be one",
                self.global_batch_size
            ))
            .hint("choose a smaller batch size, or drop_last=False")),
            _ => Ok(()),
        }
    }

    /// The step after `cursor`; `None` when the run is over.
    pub fn next(&self, sampler: &dyn Sampler, cursor: Cursor) -> Option<Step> {
        let mut cursor = cursor;
        loop {
            if self.epochs.is_some_and(|most| cursor.epoch >= most) {
                return None;
            }
            let left = sampler.len(cursor.epoch).map_or(u64::MAX, |len| len.saturating_sub(cursor.samples));
            let rows = match left {
                left if left >= self.global_batch_size => self.global_batch_size,
                left if left > 0 && !self.drop_last => left,
                _ => {
                    cursor = Cursor { epoch: cursor.epoch.checked_add(1)?, samples: 0 };
                    continue;
                }
            };
            let start = cursor.samples;
            let all = start..start.checked_add(rows)?;
            let own = self.shard.rows(rows);
            return Some(Step { epoch: cursor.epoch, all, own: start + own.start..start + own.end });
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
        Some(if self.drop_last { len / self.global_batch_size } else { len.div_ceil(self.global_batch_size) })
    }
}
