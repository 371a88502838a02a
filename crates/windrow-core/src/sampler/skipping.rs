//! An order of which some positions are left out: ranges of the run, counted over its epochs and over all ranks.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use super::{Batches, Described, Sampler, Turn};
use crate::error::{Error, Result};

/// Another order, without some positions of the run: position `p` of epoch `e` is number `e * len + p`.
///
/// Positions keep their numbers and turns; [`Steps`](crate::plan::Steps) goes past those that are skipped.
pub struct Skipping {
    inner: Arc<dyn Sampler>,
    skips: Vec<Range<u64>>,
}

impl Skipping {
    /// Leaves out these ranges.
    ///
    /// # Errors
    /// `Config` for a range without a position.
    pub fn new(inner: Arc<dyn Sampler>, skips: &[(u64, u64)]) -> Result<Skipping> {
        if let Some((from, to)) = skips.iter().find(|(from, to)| from >= to) {
            return Err(Error::config(format!("@skip=[({from}, {to})]@ skips nothing")).field("skip").hint(
                "(from, to) are positions of the run, from below to; to is the first that is not skipped",
            ));
        }
        let mut sorted = skips.to_vec();
        sorted.sort_unstable();
        let mut merged: Vec<Range<u64>> = Vec::new();
        for (from, to) in sorted {
            match merged.last_mut() {
                Some(last) if from <= last.end => last.end = last.end.max(to),
                _ => merged.push(from..to),
            }
        }
        Ok(Skipping { inner, skips: merged })
    }
}

impl Sampler for Skipping {
    fn len(&self, epoch: u64) -> Option<u64> {
        self.inner.len(epoch)
    }

    fn turn(&self, epoch: u64, position: u64) -> Turn {
        self.inner.turn(epoch, position)
    }

    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        self.inner.turns(epoch, positions, out);
    }

    fn position(&self, epoch: u64, turn: Turn) -> Option<u64> {
        self.inner.position(epoch, turn)
    }

    fn epochs(&self) -> Option<u64> {
        self.inner.epochs()
    }

    fn samples_of_views(&self, positions: u64) -> Vec<u64> {
        self.inner.samples_of_views(positions)
    }

    fn samples_of_views_in(&self, epoch: u64, positions: u64) -> Vec<u64> {
        self.inner.samples_of_views_in(epoch, positions)
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.inner.batches()
    }

    fn described(&self, before: u64) -> Described {
        self.inner.described(before)
    }

    fn blocks(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Range<u64>>) -> bool {
        self.inner.blocks(epoch, positions, out)
    }

    fn batch_rows(&self) -> Option<NonZeroU64> {
        self.inner.batch_rows()
    }

    fn views_of_batches(&self) -> Vec<Range<usize>> {
        self.inner.views_of_batches()
    }

    fn skips(&self) -> &[Range<u64>] {
        &self.skips
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::Sequential;

    #[test]
    fn ranges_are_put_in_order_and_joined() {
        let skips = |given: &[(u64, u64)]| {
            Skipping::new(Arc::new(Sequential::new(10)), given).map(|s| s.skips().to_vec())
        };
        assert_eq!(skips(&[(20, 30), (3, 5), (5, 7), (25, 26)]).unwrap(), [3..7, 20..30]);
        for empty in [(5, 5), (6, 2)] {
            assert!(skips(&[empty]).unwrap_err().message().contains("skips nothing"));
        }
    }
}
