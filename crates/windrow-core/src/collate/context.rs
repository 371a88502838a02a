//! Which positions of a row a rank of a context group holds: two chunks of each document, which together are as much work as those of any other rank.

use std::fmt;
use std::ops::Range;

use crate::error::{Error, Result};

/// A rank of a group whose ranks share each row.
///
/// What is one sequence is cut into `2 * size` equal chunks, and rank r holds chunks r and `2 * size - 1 - r`: with causal attention, which
/// is more work the later a position is, all ranks have the same. So attention kernels divide sequences that are packed into a row.
///
/// ```
/// use windrow_core::collate::Context;
///
/// let chunks = |rank| Context::new(rank, 2).map(|context| context.chunks(8).collect::<Vec<_>>());
/// assert_eq!(chunks(0)?, [0..2, 6..8]);
/// assert_eq!(chunks(1)?, [2..6]); // The two are neighbours.
/// # Ok::<(), windrow_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    rank: u64,
    size: u64,
}

impl Context {
    /// Rank `rank` of `size`.
    ///
    /// # Errors
    /// `Config` when `rank` is not below `size`.
    pub fn new(rank: u64, size: u64) -> Result<Context> {
        if rank < size && size <= u64::MAX / 2 {
            return Ok(Context { rank, size });
        }
        Err(Error::config(format!("@context=({rank}, {size})@: rank {rank} of {size}"))
            .field("context")
            .hint("ranks of a group are numbered from 0 to below its size"))
    }

    /// The rank.
    pub fn rank(self) -> u64 {
        self.rank
    }

    /// Ranks of the group.
    pub fn size(self) -> u64 {
        self.size
    }

    /// Whether it is the only rank, which holds all.
    pub fn is_alone(self) -> bool {
        self.size == 1
    }

    /// What the positions of a sequence have to be a multiple of.
    pub fn multiple(self) -> u64 {
        if self.is_alone() { 1 } else { 2 * self.size }
    }

    /// The positions that it holds of a sequence of `len`, a multiple of [`Context::multiple`]; chunks that are neighbours are one.
    pub fn chunks(self, len: u64) -> impl Iterator<Item = Range<u64>> {
        let Context { rank, size } = self;
        let (chunk, last) = (len / (2 * size), 2 * size - 1 - rank);
        let chunks = if self.is_alone() {
            [Some(0..len), None]
        } else if rank + 1 == last {
            [Some(rank * chunk..(last + 1) * chunk), None]
        } else {
            [rank, last].map(|number| Some(number * chunk..(number + 1) * chunk))
        };
        chunks.into_iter().flatten()
    }

    /// Its part of a number of positions.
    pub(super) fn part(self, positions: usize) -> usize {
        usize::try_from(self.size).map_or(0, |size| positions / size)
    }
}

/// As programs write it: `(0, 2)`.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.rank, self.size)
    }
}
