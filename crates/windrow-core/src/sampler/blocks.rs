//! A shuffle by blocks: neighbours are read together, and mixed with those of other blocks. What a slow store wants.

mod pass;
mod reads;
mod shape;

use std::ops::Range;

pub(super) use self::pass::{Pass, Turns};
pub use self::shape::BlockShape;
use super::{Permutation, Sampler, Turn};
use crate::error::{Error, Result};
use crate::record::keyed_hash;

/// Sets the key that deals blocks to lanes apart from every other use of the hash.
const LANES: u64 = 0x6c61_6e65_7331_0000;

/// Most samples that can be in order.
const MOST: u64 = 1 << 63;

/// Every sample once per epoch, so that `size` neighbours are needed at about the same time: the order `block-v1`.
///
/// Blocks of `size` samples are dealt to `lanes` lanes, the same in every epoch. A lane goes through its blocks in a
/// random order and mixes `pool` of them at a time; `rows` rows of the first lane, then `rows` of the second and so on
/// make the order. So a rank that has the same rows of every batch reads the same lanes, and a node that keeps what it
/// read needs it again. What lanes have left after all whole rounds comes last, mixed.
///
/// O(1) memory and O(log lanes) time per position, and invertible: every step of it is a keyed [`Permutation`].
///
/// ```
/// use windrow_core::sampler::{BlockShape, Blocks, Sampler};
///
/// let order = Blocks::new(1000, 7, BlockShape { size: 50, lanes: 2, rows: 4, pool: 3 })?;
/// let turn = order.turn(0, 12);
/// assert_eq!(order.position(0, turn), Some(12));
/// # Ok::<(), windrow_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    n: u64,
    seed: u64,
    shape: BlockShape,
    n_blocks: u64,
    /// Blocks of a lane, and how many lanes have one more.
    each: u64,
    longer: u64,
    /// Samples that the last block lacks.
    missing: u64,
    /// Deals blocks to lanes.
    deal: Permutation,
    /// Whose the last block is: its lane, and its number there.
    last: (u64, u64),
    /// Rounds in which every lane has all its rows.
    rounds: u64,
}

impl Blocks {
    /// The orders of `n` samples under a seed, by blocks of this shape.
    ///
    /// # Errors
    /// `Config` when a number of the shape is 0, there are more lanes than blocks, or more than 2^63 samples.
    pub fn new(n: u64, seed: u64, shape: BlockShape) -> Result<Self> {
        let BlockShape { size, lanes, rows, .. } = shape;
        shape.check()?;
        if n > MOST {
            return Err(Error::config(format!("a shuffle of {n} samples: at most 2^63 can be in order")));
        }
        let n_blocks = n.div_ceil(size);
        if lanes > n_blocks.max(1) {
            return Err(Error::config(format!(
                "{lanes} lanes for {n_blocks} blocks of {size} samples: every lane needs a block"
            ))
            .field("lanes")
            .hint(format!("lanes can be 1 to {}, or choose a smaller size", n_blocks.max(1))));
        }
        let mut order = Blocks {
            n,
            seed,
            shape,
            n_blocks,
            each: n_blocks / lanes,
            longer: n_blocks % lanes,
            missing: if n == 0 { 0 } else { size - 1 - (n - 1) % size },
            deal: Permutation::new(keyed_hash(seed, [0, 0, LANES]), n_blocks),
            last: (0, 0),
            rounds: 0,
        };
        if n > 0 {
            order.last = order.dealt(n_blocks - 1);
            // The shortest lane is the one with the short block, or one of fewest blocks.
            order.rounds = order.lane_len(order.last.0).min(order.lane_len(lanes - 1)) / rows;
        }
        Ok(order)
    }

    /// The four numbers.
    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Number of blocks; the last one may be shorter than the others.
    pub fn n_blocks(&self) -> u64 {
        self.n_blocks
    }

    /// The samples of a block.
    fn samples_of(&self, block: u64) -> Range<u64> {
        let start = block * self.shape.size;
        start..start.saturating_add(self.shape.size).min(self.n)
    }

    /// How many blocks the lanes before this one have.
    fn first(&self, lane: u64) -> u64 {
        lane * self.each + lane.min(self.longer)
    }

    fn blocks_of(&self, lane: u64) -> u64 {
        self.each + u64::from(lane < self.longer)
    }

    fn lane_len(&self, lane: u64) -> u64 {
        // The samples before the next lane less those before this one: a lane of one huge block does not overflow.
        if lane == self.last.0 {
            (self.blocks_of(lane) - 1) * self.shape.size + (self.shape.size - self.missing)
        } else {
            self.blocks_of(lane) * self.shape.size
        }
    }

    /// The lane that has a block, and the block's number there.
    fn dealt(&self, block: u64) -> (u64, u64) {
        let dealt = self.deal.invert(block);
        let of_longer = self.longer * (self.each + 1);
        let lane = if dealt < of_longer {
            dealt / (self.each + 1)
        } else {
            self.longer + (dealt - of_longer) / self.each
        };
        (lane, dealt - self.first(lane))
    }

    /// Positions of all whole rounds: one of them has `lanes · rows`.
    fn in_rounds(&self) -> u64 {
        // Every lane has `rounds · rows` samples, so that this is at most n.
        self.rounds * self.shape.rows * self.shape.lanes
    }

    /// Samples that the lanes before this one have left after all whole rounds.
    fn left_before(&self, lane: u64) -> u64 {
        let (had, short) =
            (lane * self.rounds * self.shape.rows, if self.last.0 < lane { self.missing } else { 0 });
        (self.first(lane) * self.shape.size - short) - had
    }

    /// The lane of what is left, by its number there.
    fn lane_left(&self, number: u64) -> u64 {
        let (mut low, mut high) = (0, self.shape.lanes - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.left_before(middle) <= number { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// The order of one pass of an epoch.
    pub(super) fn pass(&self, epoch: u64, pass: u64) -> Pass<'_> {
        Pass::new(self, epoch, pass)
    }
}

impl Sampler for Blocks {
    fn len(&self, _epoch: u64) -> Option<u64> {
        Some(self.n)
    }

    fn turn(&self, epoch: u64, position: u64) -> Turn {
        Turn { sample: self.pass(epoch, 0).sample(position), pass: 0 }
    }

    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        let mut turns = Turns::new(self.pass(epoch, 0));
        out.extend(positions.map(|p| Turn { sample: turns.sample(p), pass: 0 }));
    }

    fn position(&self, epoch: u64, turn: Turn) -> Option<u64> {
        (turn.pass == 0 && turn.sample < self.n).then(|| self.pass(epoch, 0).place(turn.sample))
    }

    fn blocks(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Range<u64>>) -> bool {
        let pass = self.pass(epoch, 0);
        for pool in pass.pools(positions) {
            pass.blocks_of(&pool, |samples| out.push(samples));
        }
        true
    }

    fn describe(&self) -> String {
        self.shape.describe()
    }
}
