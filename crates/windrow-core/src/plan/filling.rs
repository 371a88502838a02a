//! What fills a batch that is not full.

use std::ops::Range;

use super::cursor::kept;
use crate::sampler::Sampler;

/// What a batch that ends an epoch, or comes before a skip, is filled with: the epoch's first positions that are not skipped,
/// again and again.
pub(super) struct Filling {
    end: u64,
    kept: Vec<Range<u64>>,
    n_kept: u64,
}

impl Filling {
    /// Positions from `end` on stand for those before it.
    pub(super) fn new(sampler: &dyn Sampler, epoch: u64, end: u64) -> Filling {
        let kept = kept(sampler, epoch).into_iter().map(|range| range.start..range.end.min(end));
        let kept: Vec<_> = kept.filter(|range| !range.is_empty()).collect();
        let n_kept = kept.iter().map(|range| range.end - range.start).sum();
        Filling { end, kept, n_kept }
    }

    /// What positions from `end` on stand for: runs of positions, in order.
    pub(super) fn runs(&self, positions: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = positions.start.saturating_sub(self.end);
        let until = positions.end.saturating_sub(self.end);
        std::iter::from_fn(move || {
            let mut left = at.checked_rem(self.n_kept).filter(|_| at < until)?;
            let run = self.kept.iter().find_map(|range| {
                let len = range.end - range.start;
                let run = (left < len)
                    .then(|| range.start + left..range.end.min(range.start + left + (until - at)));
                left = left.saturating_sub(len);
                run
            })?;
            at += run.end - run.start;
            Some(run)
        })
    }

    /// The positions from `end` up to `until` that stand for this one.
    pub(super) fn places(&self, position: u64, until: u64) -> impl Iterator<Item = u64> + use<> {
        let before = self.kept.iter().map(|range| range.end.min(position).saturating_sub(range.start)).sum();
        let is_kept = self.kept.iter().any(|range| range.contains(&position));
        let first = is_kept.then(|| self.end.checked_add(before)).flatten();
        let n_kept = self.n_kept;
        std::iter::successors(first, move |at| at.checked_add(n_kept)).take_while(move |at| *at < until)
    }
}
