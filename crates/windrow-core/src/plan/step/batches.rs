//! Where batches begin and end among positions that follow each other: as long as was asked for, or as the order says.

use std::ops::Range;

use super::super::cursor::{Cursor, in_run};
use super::{LastBatch, Steps};
use crate::error::{Error, Result};
use crate::sampler::{Batches, Sampler};

/// The rule by which positions of an epoch are cut into batches.
pub(super) enum Cuts<'s> {
    /// Each has this number of rows; of the last one it depends what becomes of it.
    Even { rows: u64, last: LastBatch },
    /// The order says it.
    Own(Own<'s>),
}

/// The batches of an epoch of an order that says itself where they end.
pub(super) struct Own<'s> {
    batches: &'s dyn Batches,
    epoch: u64,
    keeps_rest: bool,
}

impl<'s> Cuts<'s> {
    pub(super) fn new(steps: &Steps, sampler: &'s dyn Sampler, epoch: u64) -> Cuts<'s> {
        match sampler.batches() {
            Some(batches) => Cuts::Own(Own { batches, epoch, keeps_rest: steps.last != LastBatch::Drop }),
            None => Cuts::Even { rows: steps.global_batch_size, last: steps.last },
        }
    }

    /// How many batches positions that follow each other make.
    pub(super) fn count(&self, positions: &Range<u64>) -> u64 {
        match self {
            Cuts::Even { rows, last } => {
                let n = positions.end - positions.start;
                match last {
                    LastBatch::Drop => n / rows,
                    LastBatch::Keep | LastBatch::Repeat => n.div_ceil(*rows),
                }
            }
            Cuts::Own(own) => own.count(positions),
        }
    }

    /// Where a batch of positions that follow each other begins; `None` where they make fewer.
    pub(super) fn start(&self, positions: &Range<u64>, number: u64) -> Option<u64> {
        match self {
            Cuts::Even { rows, .. } if number < self.count(positions) => {
                positions.start.checked_add(number.checked_mul(*rows)?)
            }
            Cuts::Even { .. } => None,
            Cuts::Own(own) => {
                let number = own.batches.before(own.epoch, positions.start).checked_add(number)?;
                let start = own.batches.batch(own.epoch, number)?.start;
                Some(start).filter(|start| *start < positions.end && own.is_kept(*start))
            }
        }
    }

    /// Which batch of positions that follow each other one of them is in, and its row there; `None` for one that is in no batch.
    pub(super) fn place(&self, positions: &Range<u64>, position: u64) -> Option<(u64, u64)> {
        match self {
            Cuts::Even { rows, .. } => {
                let at = position - positions.start;
                (at / rows < self.count(positions)).then_some((at / rows, at % rows))
            }
            Cuts::Own(own) => {
                let start = own.around(position).start;
                let before = [start, positions.start].map(|at| own.batches.before(own.epoch, at));
                own.is_kept(position).then(|| (before[0] - before[1], position - start))
            }
        }
    }

    /// The row that a position would have, were its batch not left out.
    pub(super) fn row(&self, position: u64) -> u64 {
        match self {
            Cuts::Even { rows, .. } => position % rows,
            Cuts::Own(own) => position - own.around(position).start,
        }
    }
}

impl Own<'_> {
    fn around(&self, position: u64) -> Range<u64> {
        self.batches.around(self.epoch, position)
    }

    /// Whether the batch of a position is delivered: what an epoch has left at its end may not be.
    pub(super) fn is_kept(&self, position: u64) -> bool {
        let batch = self.around(position);
        self.keeps_rest || (batch.end - batch.start).is_multiple_of(self.batches.multiple().get())
    }

    /// How many positions from one on are of its batch, none of them past `end`.
    pub(super) fn rows(&self, position: u64, end: u64) -> u64 {
        self.around(position).end.min(end) - position
    }

    fn count(&self, positions: &Range<u64>) -> u64 {
        let [first, last] = [positions.start, positions.end].map(|at| self.batches.before(self.epoch, at));
        let leaves_out = !positions.is_empty() && !self.is_kept(positions.end - 1);
        last - first - u64::from(leaves_out)
    }
}

impl Steps {
    /// As [`Steps::check`], of batches of an order that says itself where they end.
    ///
    /// # Errors
    /// `Config`.
    pub(super) fn check_own(
        &self,
        sampler: &dyn Sampler,
        batches: &dyn Batches,
        cursor: Cursor,
    ) -> Result<()> {
        let (multiple, ranks) = (batches.multiple().get(), self.shard.world_size());
        if self.last == LastBatch::Repeat {
            return Err(Error::config(
                "@last=repeat@ with @max_tokens@: an epoch's batches are not filled, they have as many rows as fit",
            )
            .field("last")
            .hint("@drop_last=true@ leaves out fewer rows than @batch_multiple@"));
        }
        if !multiple.is_multiple_of(ranks) {
            return Err(Error::config(format!(
                "@batch_multiple={multiple}@ of @max_tokens@, over {ranks} ranks: some of them would get fewer rows than others"
            ))
            .field("multiple")
            .hint(format!("give @batch_multiple={ranks}@, or another multiple of all numbers of ranks that the run is to have")));
        }
        let skips = sampler.skips();
        for (skip, at) in skips.iter().flat_map(|skip| [(skip, skip.start), (skip, skip.end)]) {
            let len = sampler.len(0).unwrap_or(u64::MAX).max(1);
            let what = if at == skip.start { "a skip begins at" } else { "a skip ends at" };
            check_end(sampler, at / len, at % len, what).map_err(|e| e.field("skip"))?;
        }
        check_end(sampler, cursor.epoch, cursor.samples, "the state is at")?;
        let rest = sampler.len(0).map_or(0, |len| len % multiple);
        if self.last == LastBatch::Keep && rest >= ranks {
            self.check_shares(rest, "the last batch of an epoch")?;
        }
        match sampler.len(0) {
            Some(0) => Err(no_samples()),
            Some(len) if self.last == LastBatch::Drop && len < multiple => Err(Error::config(format!(
                "an epoch has {len} samples, and batches have multiples of {multiple} rows: @dropping_last@ there would \
                 never be one"
            ))
            .field("multiple")
            .hint("choose a smaller @batch_multiple@, or @drop_last=false@")),
            Some(len) if self.last == LastBatch::Keep && (1..ranks).contains(&(len % multiple)) => {
                Err(Error::config(format!(
                    "the last batch of an epoch has {} rows, for {ranks} ranks: some of them would get none",
                    len % multiple
                ))
                .hint("@drop_last=true@ leaves it out"))
            }
            _ => Ok(()),
        }
    }
}

// A position in the middle of a batch is neither that of a state nor where a skip begins or ends.
fn check_end(sampler: &dyn Sampler, epoch: u64, position: u64, what: &str) -> Result<()> {
    let is_over = sampler.len(epoch).is_some_and(|len| position >= len);
    let Some(batches) = sampler.batches().filter(|_| !is_over) else { return Ok(()) };
    let batch = batches.around(epoch, position);
    if batch.start == position {
        return Ok(());
    }
    let [at, before, after] =
        [position, batch.start, batch.end].map(|samples| in_run(sampler, Cursor::at(epoch, samples)));
    Err(Error::config(format!(
        "{what} sample {at}, within a batch: the nearest ends of batches are {before} and {after}"
    )))
}

/// The error of a view without samples.
pub(super) fn no_samples() -> Error {
    Error::config("the view has no samples")
        .hint("choose a shorter length; @coverage@ counts what it leaves out")
}
