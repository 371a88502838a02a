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
/// The fewest steps that are asked for of another machine where what is asked for is kept, and the most.
const FAR_STEPS: [u64; 2] = [2, 256];
/// The fewest rows of a step that finds no room as a whole.
const FEWEST_ROWS: u64 = 8;
/// Blocks that are remembered as asked for.
const MOST_ASKED: usize = 1 << 16;
/// Batches whose own rows are asked for before whole blocks: the first one does not wait for those.
const FIRST: usize = 4;
/// Requests that a store is asked at a time.
const AT_A_TIME: u64 = 64;
/// Bytes that come while a request waits for its first one: at 30 ms and 85 MB/s.
const OF_A_WAIT: u64 = 5 << 19;

/// What is asked for as a step is begun, in this order.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Steps, each with its number: what their own rows read.
    pub(super) steps: Vec<(u64, Step)>,
    /// Rows of each of them at most, the first ones.
    pub(super) rows: u64,
    /// Runs of samples, each with the place of the run of the plan that needs it: all that they read.
    pub(super) runs: Vec<(Cursor, Range<u64>)>,
}

impl Asked {
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.runs.is_empty()
    }
}

/// How much is asked for of another machine: what was asked for finds room until it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Far {
    /// Steps behind the one that is begun; 0 asks for that one's rows alone.
    steps: u64,
    /// Steps that are begun at a time.
    at_once: usize,
    /// Rows of a step.
    rows: u64,
}

/// What there is for bytes of another machine until they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// In memory, where the stores say.
    pub(super) bytes: Option<u64>,
    /// All data is kept, on disk or in memory.
    pub(super) is_kept: bool,
}

impl Far {
    fn of(row: u64, rows: u64, room: Room, threads: usize) -> Far {
        let step = row.saturating_mul(rows).max(1);
        let steps = room.bytes.map_or(FAR_BYTES, |room| room / 2) / step;
        let Some(room) = room.bytes.filter(|_| !room.is_kept) else {
            let [fewest, most] = FAR_STEPS;
            return Far { steps: steps.clamp(fewest, most), at_once: usize::MAX, rows: u64::MAX };
        };
        // The rest is for what is between them.
        let usable = room - room / 5;
        let fit = usable / step;
        let steps = steps.min(fit.saturating_sub(threads as u64).max(u64::from(fit > 1))).min(FAR_STEPS[1]);
        let at_once = usize::try_from(fit - steps.min(fit)).unwrap_or(usize::MAX).max(1);
        if fit > 0 {
            return Far { steps, at_once, rows: u64::MAX };
        }
        crate::warn!(
            "a batch reads {step} bytes, @read_ahead@ holds {room}: part of its rows are asked for one by one\n  \
             hint: raise @read_ahead@, or choose a smaller batch size"
        );
        Far { steps, at_once, rows: (usable / row.max(1)).max(FEWEST_ROWS) }
    }
}

/// Whether steps are asked for ahead of time, and which were.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// What is always asked for, where each read asks another machine.
    far: Option<Far>,
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
    /// Of data on another machine: `row` bytes a row, `rows` of them a step, assembled by `threads` threads: no more is asked ahead than
    /// finds room until it is read.
    pub(super) fn of_far(row: u64, rows: u64, room: Room, threads: usize) -> ReadAhead {
        ReadAhead {
            far: Some(Far::of(row, rows, room, threads)),
            is_worth: Some(false),
            ..ReadAhead::default()
        }
    }

    /// Whether each read asks another machine.
    pub(super) fn is_far(&self) -> bool {
        self.far.is_some()
    }

    /// Steps that may be begun at a time: more would ask for what finds no room.
    pub(super) fn at_once(&self) -> usize {
        self.far.map_or(usize::MAX, |far| far.at_once)
    }

    /// What to ask for now, as the step `number` is begun, behind which the next one begins at `after`.
    pub(super) fn ask(
        &mut self,
        (number, step): (u64, &Step),
        after: Cursor,
        steps: &Steps,
        plan: &Plan,
    ) -> Asked {
        let is_first = self.next.is_none();
        let mut ahead = self.steps(number, after, steps, plan.sampler());
        let rows = self.far.map_or(u64::MAX, |far| far.rows);
        let Some(far) = self.far else { return Asked { steps: ahead, rows, runs: Vec::new() } };
        if is_first || far.steps == 0 {
            ahead.insert(0, (number, step.clone()));
        }
        let runs = self.blocks(&ahead, plan);
        let Some(runs) = runs else { return Asked { steps: ahead, rows, runs: Vec::new() } };
        ahead.truncate(if is_first { FIRST } else { 0 });
        let samples = runs.iter().map(|(_, run)| run.end - run.start).fold(0, u64::saturating_add);
        let bytes = samples.saturating_mul(plan.bytes_per_row());
        if ahead.first().is_some_and(|(_, first)| !are_sooner(first, rows, runs.len() as u64, bytes)) {
            ahead.clear();
        }
        Asked { steps: ahead, rows, runs }
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
            let at = Cursor::at(step.epoch, step.in_order().start);
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
            Some(far) => far.steps,
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

// Whether a step's rows, `most` at most, each asked for by itself, are there before whole blocks are, which have `bytes` bytes
// together: in fewer waits for a store.
fn are_sooner(step: &Step, most: u64, blocks: u64, bytes: u64) -> bool {
    let (own, block) = (step.in_order(), bytes / blocks.max(1));
    let rows = (own.end - own.start).min(most);
    rows.div_ceil(AT_A_TIME) < blocks.div_ceil(AT_A_TIME) * (1 + block / OF_A_WAIT)
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
            shard: Shard::ALONE,
            last: LastBatch::Drop,
            epochs: Some(1),
            micro_batches: 1,
            is_balanced: false,
        }
    }

    fn numbers(ahead: &mut ReadAhead, number: u64) -> Vec<u64> {
        let sampler = Sequential::new(40);
        let after = Cursor::at(0, 2 * (number + 1));
        let asked = ahead.steps(number, after, &steps(), &sampler);
        assert!(asked.iter().all(|(number, step)| step.all.start == 2 * number));
        asked.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn no_more_is_told_ahead_than_finds_room() {
        let far = |row, rows, bytes, threads| {
            let Far { steps, at_once, rows } = Far::of(row, rows, Room { bytes, is_kept: false }, threads);
            (steps, at_once, rows)
        };
        const MIB: u64 = 1 << 20;
        assert_eq!(far(MIB, 8, None, 4), (16, usize::MAX, u64::MAX));
        assert_eq!(far(MIB, 8, Some(1 << 30), 4), (64, 38, u64::MAX));
        // What is begun has room, too.
        assert_eq!(far(MIB, 8, Some(64 * MIB), 4), (2, 4, u64::MAX));
        assert_eq!(far(MIB, 8, Some(64 * MIB), 16), (1, 5, u64::MAX));
        assert_eq!(far(MIB, 8, Some(20 * MIB), 4), (1, 1, u64::MAX));
        // One step alone, and some rows of one.
        assert_eq!(far(MIB, 8, Some(12 * MIB), 4), (0, 1, u64::MAX));
        assert_eq!(far(MIB, 32, Some(20 * MIB), 4), (0, 1, 16));
        assert_eq!(far(MIB, 32, Some(0), 4), (0, 1, FEWEST_ROWS));
        assert_eq!(far(0, 0, None, 1), (FAR_STEPS[1], usize::MAX, u64::MAX));
        // What is kept needs no room in memory.
        let kept = |bytes| Far::of(MIB, 32, Room { bytes: Some(bytes), is_kept: true }, 4);
        assert_eq!(kept(0), Far { steps: FAR_STEPS[0], at_once: usize::MAX, rows: u64::MAX });
        assert_eq!(kept(256 * MIB).steps, 4);
    }

    #[test]
    fn rows_are_asked_for_first_where_that_takes_fewer_waits_than_blocks() {
        let all = Steps { last: LastBatch::Keep, ..steps() };
        let step = |rows| {
            let steps = Steps { global_batch_size: rows, ..all };
            steps.next(&Sequential::new(rows), Cursor::default()).unwrap()
        };
        // Blocks of 8 MiB take four waits, together, and rows one for each 64.
        for (rows, blocks_of, sooner) in
            [(32, 6, true), (192, 6, true), (256, 6, false), (256, 65, true), (1, 0, false)]
        {
            assert_eq!(
                are_sooner(&step(rows), u64::MAX, blocks_of, blocks_of << 23),
                sooner,
                "{rows} rows, {blocks_of} blocks"
            );
        }
        // Small ones are there as soon.
        assert!(!are_sooner(&step(32), u64::MAX, 6, 6 << 17));
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
