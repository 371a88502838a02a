//! When the next steps' bytes are asked for: only while a batch has to wait for the disk, as asking costs more than it
//! gains where everything is in memory.

use crate::plan::{Cursor, Step, Steps};
use crate::sampler::Sampler;

/// Steps that are asked for before they are assembled: at 32 samples a step, as many reads as a disk has in its queue.
const AHEAD: u64 = 8;
/// Batches in a row that wait for nothing, after which nothing is asked for any more. When the data is not in memory the
/// next batch waits again, one in so many.
const QUIET: u32 = 256;

/// Whether steps are asked for ahead of time, and which were.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    is_on: bool,
    quiet: u32,
    /// Number of the step that is asked for next, and where it begins.
    next: Option<(u64, Cursor)>,
}

impl ReadAhead {
    /// A batch was assembled, and waited for the disk or did not.
    pub(super) fn assembled(&mut self, waited: bool) {
        if waited {
            (self.is_on, self.quiet) = (true, 0);
        } else if self.is_on {
            self.quiet += 1;
            self.is_on = self.quiet < QUIET;
        }
        if !self.is_on {
            self.next = None;
        }
    }

    /// The steps to ask for now, each with its number, as the step `number` is begun, behind which the next one begins at
    /// `after`.
    pub(super) fn steps(
        &mut self,
        number: u64,
        after: Cursor,
        steps: &Steps,
        sampler: &dyn Sampler,
    ) -> Vec<(u64, Step)> {
        if !self.is_on {
            return Vec::new();
        }
        let (mut at, mut cursor) = self.next.filter(|(at, _)| *at > number).unwrap_or((number + 1, after));
        let mut asked = Vec::new();
        while at <= number.saturating_add(AHEAD) {
            let Some(step) = steps.next(sampler, cursor) else { break };
            cursor = step.after();
            asked.push((at, step));
            at += 1;
        }
        self.next = Some((at, cursor));
        asked
    }
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
    fn each_step_is_asked_for_once_and_only_while_batches_wait() {
        let mut ahead = ReadAhead::default();
        assert_eq!(numbers(&mut ahead, 0), [0; 0]);
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
