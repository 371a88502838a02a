//! Where a run is, and where it continues past what is skipped.

use std::ops::Range;

use crate::sampler::Sampler;

/// How many samples were delivered to all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch, from 0.
    pub epoch: u64,
    /// Samples of this epoch.
    pub samples: u64,
    /// Micro-batches of the step that begins there which were delivered, too. No state has them: it is that of the step's beginning.
    pub micro_batches: u64,
}

impl Cursor {
    /// The beginning of the step that begins at this sample of an epoch.
    pub const fn at(epoch: u64, samples: u64) -> Cursor {
        Cursor { epoch, samples, micro_batches: 0 }
    }
}

/// Whether a position of an epoch is left out by a skip.
pub fn is_skipped(sampler: &dyn Sampler, epoch: u64, position: u64) -> bool {
    let at = in_run(sampler, Cursor::at(epoch, position));
    sampler.skips().iter().any(|skip| u128::from(skip.start) <= at && at < u128::from(skip.end))
}

/// The position of the run that a cursor is at, counted over its epochs.
pub(crate) fn in_run(sampler: &dyn Sampler, cursor: Cursor) -> u128 {
    let len = sampler.len(cursor.epoch).unwrap_or(0);
    u128::from(cursor.epoch) * u128::from(len) + u128::from(cursor.samples)
}

/// Where the run continues, if the cursor is at a position that is skipped.
pub(super) fn past_skip(sampler: &dyn Sampler, cursor: Cursor) -> Cursor {
    let at = in_run(sampler, cursor);
    let skip = sampler.skips().iter().find(|skip| u128::from(skip.start) <= at && at < u128::from(skip.end));
    match (skip, sampler.len(cursor.epoch)) {
        (None, _) => cursor,
        (Some(skip), None) => Cursor::at(cursor.epoch, skip.end),
        (Some(skip), Some(len)) => Cursor::at(skip.end / len.max(1), skip.end % len.max(1)),
    }
}

/// Up to which position of the cursor's epoch nothing is skipped.
pub(super) fn kept_until(sampler: &dyn Sampler, cursor: Cursor) -> u64 {
    let at = in_run(sampler, cursor);
    let next = sampler.skips().iter().find(|skip| u128::from(skip.start) >= at);
    let left = next.map_or(u64::MAX, |skip| u64::try_from(u128::from(skip.start) - at).unwrap_or(u64::MAX));
    cursor.samples.saturating_add(left)
}

/// The positions of an epoch that skips leave, those that follow each other as one range.
pub(super) fn kept(sampler: &dyn Sampler, epoch: u64) -> Vec<Range<u64>> {
    let len = sampler.len(epoch).unwrap_or(u64::MAX);
    let begins = in_run(sampler, Cursor::at(epoch, 0));
    let inside = |at: u64| u64::try_from(u128::from(at).saturating_sub(begins)).unwrap_or(u64::MAX).min(len);
    let mut kept = Vec::new();
    let mut at = 0;
    for skip in sampler.skips() {
        let (start, end) = (inside(skip.start), inside(skip.end));
        if start > at {
            kept.push(at..start);
        }
        at = at.max(end);
    }
    if at < len {
        kept.push(at..len);
    }
    kept
}
