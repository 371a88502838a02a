//! In which pass of a view a position is, and which pass comes next: what has to be prepared for it is prepared before.

use super::{Cursor, Plan};
use crate::error::Result;
use crate::record::{Draw, Pass};
use crate::sampler::Turn;
use crate::source::whole;

/// The part of an epoch, or of a pass, after which the next one is prepared: who stops soon has not paid for it.
const PART: u64 = 8;

impl Plan {
    /// The draws of a turn of a view.
    pub(super) fn draw(&self, epoch: u64, turn: Turn, feed: usize) -> Draw {
        self.pass(epoch, turn.pass, feed).draw(turn.sample)
    }

    /// A pass of a view.
    pub(super) fn pass(&self, epoch: u64, pass: u64, feed: usize) -> Pass {
        Pass { seed: self.seed(), epoch, pass, view: feed as u64 }
    }

    /// The pass that each view is in at a place of the run.
    pub(super) fn passes_at(&self, at: Cursor) -> Vec<Pass> {
        let had = self.sampler().samples_of_views(at.samples);
        let pass = |(feed, had): (usize, &u64)| {
            let len = self.feeds().get(feed).map_or(1, |feed| feed.len().max(1));
            self.pass(at.epoch, had / len, feed)
        };
        had.iter().enumerate().map(pass).collect()
    }

    /// Whether passes of a view begin with work that [`Plan::prepare`] does before.
    pub fn has_preparation(&self) -> bool {
        self.feeds().iter().any(|feed| feed.view().has_preparation())
    }

    /// The passes that a run of `epochs` epochs should prepare at this place: of each view the one after that it is in, once an eighth of
    /// it is over.
    pub fn passes_to_prepare(&self, at: Cursor, epochs: Option<u64>) -> Vec<Pass> {
        let in_epoch = self.sampler().len(at.epoch);
        let had = self.sampler().samples_of_views(at.samples);
        let has = in_epoch.map(|len| self.sampler().samples_of_views(len));
        let next = |(feed, had): (usize, &u64)| {
            let len = self.feeds().get(feed).filter(|feed| feed.view().has_preparation())?.len().max(1);
            let (pass, of_pass) = (had / len, had % len);
            let begins_in_epoch = |pass: u64| {
                let has = has.as_ref().and_then(|has| has.get(feed));
                has.is_none_or(|has| pass.checked_mul(len).is_some_and(|start| start < *has))
            };
            if begins_in_epoch(pass + 1) {
                return (of_pass >= len / PART).then(|| self.pass(at.epoch, pass + 1, feed));
            }
            let comes = epochs.into_iter().chain(self.sampler().epochs()).min();
            let is_late = in_epoch.is_some_and(|len| at.samples >= len / PART);
            (is_late && comes.is_none_or(|epochs| at.epoch + 1 < epochs))
                .then(|| self.pass(at.epoch + 1, 0, feed))
        };
        had.iter().enumerate().filter_map(next).collect()
    }

    /// Does before a pass what its first sample would wait for, as long as it is wanted.
    ///
    /// # Errors
    /// What reading an index says.
    pub fn prepare(&self, pass: Pass, is_wanted: &dyn Fn() -> bool) -> Result<()> {
        let feed = usize::try_from(pass.view).ok().and_then(|feed| self.feeds().get(feed));
        feed.map_or(Ok(()), |feed| whole(|| feed.view().prepare(pass, is_wanted)))
    }
}
