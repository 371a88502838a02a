//! In which order samples come: (epoch, position) → sample, by arithmetic. No IO, no clock, no generator state.

mod balance;
mod batches;
mod blocks;
mod budget;
mod described;
mod grouped;
mod mix;
mod order;
mod sequential;
mod shard;
mod shuffle;
mod skipping;

use std::num::NonZeroU64;
use std::ops::Range;

pub use crate::permutation::Permutation;
pub use balance::{balanced, micro_batches};
pub use batches::Batches;
pub use blocks::{BlockShape, Blocks};
pub use budget::{Budget, Budgeted, RowLengths, pool_of};
pub use described::{Change, Described};
pub use grouped::Grouped;
pub(crate) use mix::ROWS;
pub use mix::{Mix, MixOptions, MixPart, PartOf, Phase, Stop};
pub use order::Order;
pub use sequential::Sequential;
pub use shard::Shard;
pub use shuffle::Shuffle;
pub use skipping::Skipping;

/// A sample's turn: which sample, and how many times its view was gone through before in this epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Sample number. For several views: numbers run through the first view, then the second, and so on.
    pub sample: u64,
    /// 0, but in a mixture whose smaller part is gone through again within the epoch.
    pub pass: u64,
}

/// An order of samples, another one each epoch.
pub trait Sampler: Send + Sync {
    /// Positions in this epoch, the same number in each; `None` when it never ends.
    fn len(&self, epoch: u64) -> Option<u64>;

    /// Epochs that there are; `None`: any number.
    fn epochs(&self) -> Option<u64> {
        None
    }

    /// Whose turn it is at `position < len(epoch)`. O(1) or O(log n).
    fn turn(&self, epoch: u64, position: u64) -> Turn;

    /// Appends the turns of consecutive positions. Overridden where the epoch's key is worth keeping.
    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        out.extend(positions.map(|p| self.turn(epoch, p)));
    }

    /// The inverse: the position of a turn in this epoch, if it comes at all.
    fn position(&self, epoch: u64, turn: Turn) -> Option<u64>;

    /// Appends the samples of the blocks that positions of an epoch draw from, each as one run of sample numbers, in the order
    /// in which the positions first need them; a pool of blocks that are mixed with each other comes whole. False for an order
    /// that draws from everywhere: then nothing is appended.
    ///
    /// A hint of what is worth reading whole, and before it is needed. Each block comes once at most in a pass.
    fn blocks(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Range<u64>>) -> bool {
        let _ = (epoch, positions, out);
        false
    }

    /// How many of an epoch's first positions are of each view.
    fn samples_of_views(&self, positions: u64) -> Vec<u64> {
        vec![positions]
    }

    /// How many of one epoch's first positions are of each view, which may depend on the epoch.
    fn samples_of_views_in(&self, epoch: u64, positions: u64) -> Vec<u64> {
        let _ = epoch;
        self.samples_of_views(positions)
    }

    /// Where batches begin and end, in an order that says so itself: nobody else cuts it then.
    fn batches(&self) -> Option<&dyn Batches> {
        None
    }

    /// Positions of the run that are left out, counted over its epochs: ascending, apart from each other.
    fn skips(&self) -> &[Range<u64>] {
        &[]
    }

    /// Rows of a batch over all ranks, where the order is made for one number of them: each this many positions are a batch. `None`
    /// where batches may have any number of rows.
    fn batch_rows(&self) -> Option<NonZeroU64> {
        None
    }

    /// Which views, by number, a batch takes its rows from, where the views fall into parts of which a batch is one: the views of each
    /// part. None where a batch takes rows of all.
    fn views_of_batches(&self) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// What decides the order besides the seed, in words that never change for the same order.
    fn describe(&self) -> String;

    /// What decides the order of the positions before one in the first epoch alone, where later ones may be decided otherwise: orders
    /// that agree in it agree up to there.
    fn described(&self, before: u64) -> Described {
        let _ = before;
        Described { order: self.describe(), ..Described::default() }
    }
}
