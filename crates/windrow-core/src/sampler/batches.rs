//! Batches of an order that says itself where they end.

use std::num::NonZeroU64;
use std::ops::Range;

/// Where the batches of an order begin and end, in positions of an epoch and over all ranks.
///
/// They follow each other without a gap from the epoch's first position to its last.
pub trait Batches {
    /// Rows of each batch are a multiple of this, but for what an epoch has left at its end, which is fewer.
    fn multiple(&self) -> NonZeroU64;

    /// The batch that a position of the epoch is in.
    fn around(&self, epoch: u64, position: u64) -> Range<u64>;

    /// How many batches of an epoch begin before a position, which may be its end. The first time it takes a pass over the positions
    /// before it.
    fn before(&self, epoch: u64, position: u64) -> u64;

    /// The batch with this number in its epoch; `None` where the epoch has fewer. The first time it takes a pass over the positions
    /// before it.
    fn batch(&self, epoch: u64, number: u64) -> Option<Range<u64>>;
}
