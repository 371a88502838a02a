//! Which rows of a global batch belong to one rank. The order knows nothing of ranks, so their number may change.

use std::ops::Range;

use crate::error::{Error, Result};

/// One rank among `world_size`.
///
/// ```
/// use windrow_core::sampler::Shard;
///
/// assert_eq!(Shard::new(0, 3)?.rows(8), 0..3);
/// assert_eq!(Shard::new(1, 3)?.rows(8), 3..6);
/// assert_eq!(Shard::new(2, 3)?.rows(8), 6..8);
/// # Ok::<(), windrow_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    rank: u64,
    world_size: u64,
}

impl Shard {
    /// A single process.
    pub const ALONE: Shard = Shard { rank: 0, world_size: 1 };

    /// Rank `rank` of `world_size`.
    ///
    /// # Errors
    /// `Config` when `world_size` is 0 or `rank` is not below it.
    pub fn new(rank: u64, world_size: u64) -> Result<Self> {
        if world_size == 0 {
            return Err(Error::config(format!("rank {rank} of world_size 0: at least one rank is needed"))
                .field("world_size")
                .hint("@one_rank@ is a single process"));
        }
        if rank >= world_size {
            return Err(Error::config(format!(
                "rank {rank} of world_size {world_size}: expected a rank in 0..{world_size}"
            ))
            .field("rank")
            .hint("ranks count from 0"));
        }
        Ok(Shard { rank, world_size })
    }

    /// This rank, from 0.
    pub fn rank(&self) -> u64 {
        self.rank
    }

    /// Number of ranks.
    pub fn world_size(&self) -> u64 {
        self.world_size
    }

    /// The rows of a global batch of `batch_rows` rows that belong to this rank.
    ///
    /// Over all ranks: every row once, in rank order, sizes at most one apart, the longer ones first.
    pub fn rows(&self, batch_rows: u64) -> Range<u64> {
        let each = batch_rows / self.world_size;
        let longer = batch_rows % self.world_size;
        let start = self.rank * each + self.rank.min(longer);
        start..start + each + u64::from(self.rank < longer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn impossible_ranks_are_refused_with_both_numbers() {
        for (rank, world_size) in [(0, 0), (3, 3), (u64::MAX, 8)] {
            let error = Shard::new(rank, world_size).unwrap_err();
            assert_eq!(error.kind(), Kind::Config);
            assert!(error.message().contains(&format!("rank {rank} of world_size {world_size}")), "{error}");
        }
    }

    #[test]
    fn huge_numbers_do_not_overflow() {
        let last = Shard::new(u64::MAX - 1, u64::MAX).unwrap();
        assert_eq!(last.rows(u64::MAX), u64::MAX - 1..u64::MAX);
        assert_eq!(last.rows(5), 5..5);
    }
}
