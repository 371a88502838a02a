//! A part of a mixture: its samples' numbers, and their order in each pass.

use std::ops::Range;

use crate::error::Result;
use crate::sampler::blocks::{Blocks, Turns};
use crate::sampler::shuffle::order;
use crate::sampler::{Order, Permutation, Sampler};

/// A view of the mixture.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Number of its first sample.
    pub(super) offset: u64,
    pub(super) len: u64,
    order: OfPart,
}

#[derive(Clone, Debug)]
enum OfPart {
    Sequential,
    /// Under this seed.
    Shuffle(u64),
    Blocks(Box<Blocks>),
}

/// The order of one pass of a part.
pub(super) enum PassOrder<'p> {
    Sequential,
    Shuffle(Box<Permutation>),
    Blocks(Box<Turns<'p>>),
}

impl Part {
    /// # Errors
    /// As [`Blocks::new`].
    pub(super) fn new(offset: u64, len: u64, order: Order, seed: u64) -> Result<Part> {
        let order = match order {
            Order::Sequential => OfPart::Sequential,
            Order::Shuffle => OfPart::Shuffle(seed),
            Order::Blocks(shape) => OfPart::Blocks(Box::new(Blocks::new(len, seed, shape)?)),
        };
        Ok(Part { offset, len, order })
    }

    pub(super) fn order(&self, epoch: u64, pass: u64) -> PassOrder<'_> {
        match &self.order {
            OfPart::Sequential => PassOrder::Sequential,
            OfPart::Shuffle(seed) => PassOrder::Shuffle(Box::new(order(*seed, epoch, pass, self.len))),
            OfPart::Blocks(blocks) => PassOrder::Blocks(Box::new(Turns::new(blocks.pass(epoch, pass)))),
        }
    }

    /// Appends the samples of the blocks that places of a pass draw from, each with the first position that needs it, which
    /// `position_of` says of a place. False where the order has no blocks.
    pub(super) fn blocks(
        &self,
        epoch: u64,
        pass: u64,
        places: Range<u64>,
        position_of: &dyn Fn(u64) -> u64,
        out: &mut Vec<(u64, Range<u64>)>,
    ) -> bool {
        let OfPart::Blocks(blocks) = &self.order else { return false };
        let pass = blocks.pass(epoch, pass);
        for pool in pass.pools(places) {
            let position = position_of(pool.place);
            pass.blocks_of(&pool, |samples| {
                out.push((position, self.offset + samples.start..self.offset + samples.end));
            });
        }
        true
    }

    pub(super) fn describe(&self) -> String {
        match &self.order {
            OfPart::Sequential => "sequential".into(),
            OfPart::Shuffle(_) => "shuffle:feistel-v1".into(),
            OfPart::Blocks(blocks) => blocks.describe(),
        }
    }
}

impl PassOrder<'_> {
    /// The sample that has a place.
    pub(super) fn sample(&mut self, place: u64) -> u64 {
        match self {
            PassOrder::Sequential => place,
            PassOrder::Shuffle(order) => order.apply(place),
            PassOrder::Blocks(turns) => turns.sample(place),
        }
    }

    /// The inverse.
    pub(super) fn place(&self, sample: u64) -> u64 {
        match self {
            PassOrder::Sequential => sample,
            PassOrder::Shuffle(order) => order.invert(sample),
            PassOrder::Blocks(turns) => turns.place(sample),
        }
    }
}
