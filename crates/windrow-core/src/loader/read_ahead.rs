//! When the next steps' bytes are asked for: while batches wait for the disk, and where the data is larger than memory.
//! What fits into it the system soon holds: it reads around every place that is asked for, which nothing is faster than.

use std::collections::HashSet;
use std::ops::Range;

use crate::plan::{Cursor, Plan, Step, Steps};
use crate::sampler::Sampler;
use crate::store::memory_for_pages;

/// Steps that are asked for before they are assembled: at 32 samples a step, the same number of reads as a disk has in its queue.
const AHEAD: u64 = 8;
/// Batches in a row that wait for nothing, after which nothing is asked for any more. When the data is not in memory the
/// next batch waits again: one in this number.
const QUIET: u32 = 256;
/// While nothing is asked for, one step in this number says whether any waited.
const SELDOM: u64 = 8;

/// Bytes of steps to come that are asked for of another machine, where nobody says how many find room. Of what does, half: blocks and
/// steps overlap.
const FAR_BYTES: u64 = 128 << 20;
/// The fewest and the most steps that are asked for of another machine.
const FAR_STEPS: [u64; 2] = [2, 256];
/// Blocks that are remembered as asked for.
const MOST_ASKED: usize = 1 << 16;
/// Batches whose own rows are asked for before whole blocks: the first one does not wait for those.
const FIRST: usize = 4;
/// A gap between two ranges up to which stores make one request of them.
const GAP: u64 = 1 << 20;

/// What is asked for as a step is begun, in this order.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Steps, each with its number: what their own rows read.
    pub(super) steps: Vec<(u64, Step)>,
    /// Runs of samples, each with the place of the run of the plan that needs it: all that they read.
    pub(super) runs: Vec<(Cursor, Range<u64>)>,
}

impl Asked {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.runs.is_empty()
    }
}

/// Whether steps are asked for ahead of time, and which were.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// Steps that are always asked for, where each read asks another machine.
    far: Option<u64>,
    /// Blocks that were asked for, by epoch and first sample.
    asked: HashSet<(u64, u64)>,
    is_on: bool,
    /// Whether it is of any use, once that was asked.
    is_worth: Option<bool>,
    quiet: u32,
    /// Number of the step that is asked for next, and where it begins.
    next: Option<(u64, Cursor)>,
}

impl ReadAhead {
    /// Of data on another machine: `row` bytes a row, `rows` of them a step, and of what is asked ahead `room` bytes find room until
    /// they are read.
    pub(super) fn of_far(row: u64, rows: u64, room: Option<u64>) -> ReadAhead {
        let step = row.saturating_mul(rows).max(1);
        let bytes = room.map_or(FAR_BYTES, |room| room / 2);
        let far = Some((bytes / step).clamp(FAR_STEPS[0], FAR_STEPS[1]));
        ReadAhead { far, is_worth: Some(false), ..ReadAhead::default() }
    }

    /// Whether each read asks another machine.
    pub(super) fn is_far(&self) -> bool {
        self.far.is_some()
    }

    /// What to ask for now, as the step `number` is begun, behind which the next one begins at `after`.
    pub(super) fn ask(
        &mut self,
        (number, step): (u64, &Step),
        after: Cursor,
        steps: &Steps,
        plan: &Plan,
    ) -> Asked {
        let is_first = self.far.is_some() && self.next.is_none();
        let mut ahead = self.steps(number, after, steps, plan.sampler());
        if self.far.is_none() {
            return Asked { steps: ahead, runs: Vec::new() };
        }
        if is_first {
            ahead.insert(0, (number, step.clone()));
        }
        let Some(runs) = self.blocks(&ahead, plan) else { return Asked { steps: ahead, runs: Vec::new() } };
        ahead.truncate(if is_first { FIRST } else { 0 });
        let rows = ahead.iter().map(|(_, step)| step.own.end - step.own.start).fold(0, u64::saturating_add);
        let samples = runs.iter().map(|(_, run)| run.end - run.start).fold(0, u64::saturating_add);
        // So near each other in the blocks that they would be fetched with all that is between them.
        if samples.saturating_mul(plan.bytes_per_row()) <= rows.saturating_mul(GAP) {
            ahead.clear();
        }
        Asked { steps: ahead, runs }
    }

    // The blocks, as runs of samples, that steps draw from and that were not asked for yet; `None` where the order has none.
    fn blocks(&mut self, steps: &[(u64, Step)], plan: &Plan) -> Option<Vec<(Cursor, Range<u64>)>> {
        let mut found = Vec::new();
        let mut new = Vec::new();
        for (_, step) in steps {
            found.clear();
            if !plan.blocks(step, &mut found) {
                return None;
            }
            if self.asked.len() + found.len() > MOST_ASKED {
                self.asked.clear();
            }
            let at = Cursor { epoch: step.epoch, samples: step.own.start };
            let unasked = found.drain(..).filter(|run| self.asked.insert((step.epoch, run.start)));
            new.extend(unasked.map(|run| (at, run)));
        }
        Some(new)
    }

    /// Whether somebody should find out if it is of any use.
    pub(super) fn is_asking(&self, waited: bool) -> bool {
        waited && self.is_worth.is_none()
    }

    /// What was found.
    pub(super) fn worth(&mut self, is_worth: bool) {
        self.is_worth = Some(is_worth);
    }

    /// Whether to find out if this step waits: to know it costs a call of the system, which short batches would feel.
    pub(super) fn is_timely(&self, number: u64) -> bool {
        match self.is_worth {
            Some(false) => false,
            _ => self.is_on || number.is_multiple_of(SELDOM),
        }
    }

    /// A batch was assembled, and waited for the disk or did not.
    pub(super) fn assembled(&mut self, waited: bool) {
        if waited {
            (self.is_on, self.quiet) = (self.is_worth == Some(true), 0);
        } else if self.is_on {
            self.quiet += 1;
            self.is_on = self.quiet < QUIET;
        }
        if !self.is_on && self.far.is_none() {
            self.next = None;
        }
    }

    // The steps behind the one that is begun, each with its number.
    fn steps(
        &mut self,
        number: u64,
        after: Cursor,
        steps: &Steps,
        sampler: &dyn Sampler,
    ) -> Vec<(u64, Step)> {
        let ahead = match self.far {
            Some(steps) => steps,
            None if self.is_on => AHEAD,
            None => return Vec::new(),
        };
        let (mut at, mut cursor) = self.next.filter(|(at, _)| *at > number).unwrap_or((number + 1, after));
        let mut asked = Vec::new();
        while at <= number.saturating_add(ahead) {
            let Some(step) = steps.next(sampler, cursor) else { break };
            cursor = step.after();
            asked.push((at, step));
            at += 1;
        }
        self.next = Some((at, cursor));
        asked
    }
}

/// Whether data of `bytes` bytes is more than memory can hold beside what else there is.
pub(super) fn exceeds_memory(bytes: u64) -> bool {
    memory_for_pages().is_none_or(|memory| bytes > memory / 2)
}

/// What this thread has waited for so far: pages that were not in memory, and blocks that were read from a disk.
#[cfg(target_os = "linux")]
pub(super) fn disk_waits() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure that it is given; zeros are a valid one where it fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_majflt.unsigned_abs().wrapping_add(usage.ru_inblock.unsigned_abs())
}

/// Not known here: nothing is asked for ahead of time.
#[cfg(not(target_os = "linux"))]
pub(super) fn disk_waits() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::LastBatch;
    use crate::sampler::{Sequential, Shard};

    fn steps() -> Steps {
        Steps {
            global_batch_size: 2,
            shard: Shard::new(0, 1).unwrap(),
            last: LastBatch::Drop,
            epochs: Some(1),
        }
    }

    fn numbers(ahead: &mut ReadAhead, number: u64) -> Vec<u64> {
        let sampler = Sequential::new(40);
        let after = Cursor { epoch: 0, samples: 2 * (number + 1) };
        let asked = ahead.steps(number, after, &steps(), &sampler);
        assert!(asked.iter().all(|(number, step)| step.all.start == 2 * number));
        asked.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn no_more_is_told_ahead_than_finds_room() {
        let steps = |row, rows, room| ReadAhead::of_far(row, rows, room).far;
        assert_eq!(steps(1 << 20, 8, None), Some(16));
        assert_eq!(steps(1 << 20, 8, Some(64 << 20)), Some(4));
        assert_eq!(steps(1 << 20, 8, Some(1 << 30)), Some(64));
        assert_eq!(steps(1 << 20, 8, Some(0)), Some(FAR_STEPS[0]));
        assert_eq!(steps(0, 0, None), Some(FAR_STEPS[1]));
    }

    #[test]
    fn each_step_is_asked_for_once_and_only_while_batches_wait() {
        let mut ahead = ReadAhead::default();
        assert_eq!(numbers(&mut ahead, 0), [0; 0]);
        ahead.assembled(true);
        assert_eq!(numbers(&mut ahead, 0), [0; 0]);
        assert!(ahead.is_asking(true) && !ahead.is_asking(false));
        ahead.worth(true);
        assert!(!ahead.is_asking(true));
        ahead.assembled(true);
        assert_eq!(numbers(&mut ahead, 1), [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(numbers(&mut ahead, 2), [10]);
        assert_eq!(numbers(&mut ahead, 4), [11, 12]);
        assert_eq!(numbers(&mut ahead, 15), [16, 17, 18, 19]);
        for _ in 0..QUIET {
            ahead.assembled(false);
        }
        assert_eq!(numbers(&mut ahead, 5), [0; 0]);
        ahead.assembled(true);
        assert_eq!(numbers(&mut ahead, 6), [7, 8, 9, 10, 11, 12, 13, 14]);
    }
}
