//! A part of a mixture: its samples' numbers, and their order in each pass.

use std::ops::Range;

use super::{Mix, MixPart, PartOf};
use crate::error::{Error, Result};
use crate::sampler::blocks::{Blocks, Turns};
use crate::sampler::shuffle::order;
use crate::sampler::{Order, Permutation, Sampler, Turn};

/// A view of the mixture, or a mixture in it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Number of its first sample.
    pub(super) offset: u64,
    /// Samples of all its views.
    pub(super) n_samples: u64,
    pub(super) of: Of,
}

#[derive(Clone, Debug)]
pub(super) enum Of {
    View(OfView),
    Mix(Box<Mix>),
}

#[derive(Clone, Debug)]
pub(super) enum OfView {
    Sequential,
    /// Under this seed.
    Shuffle(u64),
    Blocks(Box<Blocks>),
}

/// The order of one pass of a view.
#[expect(
    clippy::large_enum_variant,
    reason = "a mixture makes one for each row of a batch: an allocation would cost as much"
)]
pub(super) enum PassOrder<'p> {
    Sequential,
    Shuffle(Permutation),
    Blocks(Box<Turns<'p>>),
}

impl Part {
    /// # Errors
    /// As [`Blocks::new`] and [`Mix::of`]; `Config` for a view without samples.
    pub(super) fn new(offset: u64, number: usize, part: &MixPart, seed: u64) -> Result<Part> {
        let (n_samples, of) = match &part.of {
            PartOf::Samples { len: 0, .. } => {
                return Err(Error::config(format!("part {number} of the mixture has no samples"))
                    .hint("leave it out, or cut shorter samples"));
            }
            PartOf::Samples { len, order } => (*len, Of::View(OfView::new(*len, *order, seed)?)),
            PartOf::Mix(options) => {
                let mix = Mix::of(options, seed)?;
                (mix.n_samples(), Of::Mix(Box::new(mix)))
            }
        };
        Ok(Part { offset, n_samples, of })
    }

    /// The first sample of each of its views.
    pub(super) fn views(&self) -> Vec<u64> {
        match &self.of {
            Of::View(_) => vec![self.offset],
            Of::Mix(mix) => mix.views.iter().map(|start| self.offset + start).collect(),
        }
    }

    /// Turns of one pass; `None` for a mixture that never ends.
    pub(super) fn pass_len(&self) -> Option<u64> {
        match &self.of {
            Of::View(_) => Some(self.n_samples),
            Of::Mix(mix) => mix.len(0),
        }
    }

    /// Passes that there are; `None` where it is gone through again and again.
    pub(super) fn passes(&self) -> Option<u64> {
        match &self.of {
            Of::View(_) => None,
            Of::Mix(mix) => mix.epochs(),
        }
    }

    /// Its turn number `place` in an epoch.
    pub(super) fn turn(&self, epoch: u64, place: u128) -> Turn {
        let turn = match &self.of {
            Of::View(view) => {
                let len = u128::from(self.n_samples);
                let (pass, inner) = ((place / len) as u64, (place % len) as u64);
                Turn { sample: view.order(epoch, pass, self.n_samples).sample(inner), pass }
            }
            Of::Mix(mix) => mix.turn(epoch, place as u64),
        };
        Turn { sample: self.offset + turn.sample, pass: turn.pass }
    }

    /// The inverse, of a turn whose sample is one of the part's.
    pub(super) fn place(&self, epoch: u64, turn: Turn) -> Option<u64> {
        let turn = Turn { sample: turn.sample.checked_sub(self.offset)?, pass: turn.pass };
        match &self.of {
            Of::View(_) if turn.sample >= self.n_samples => None,
            Of::View(view) => {
                let inner = view.order(epoch, turn.pass, self.n_samples).place(turn.sample);
                turn.pass.checked_mul(self.n_samples)?.checked_add(inner)
            }
            Of::Mix(mix) => mix.place(epoch, turn),
        }
    }

    /// Appends the samples of the blocks that places draw from, each with the first position that needs it, which `position_of`
    /// says of a place. False where the order has no blocks.
    pub(super) fn blocks(
        &self,
        epoch: u64,
        places: Range<u64>,
        position_of: &dyn Fn(u64) -> u64,
        out: &mut Vec<(u64, Range<u64>)>,
    ) -> bool {
        let mut add = |position: u64, samples: Range<u64>| {
            out.push((position, self.offset + samples.start..self.offset + samples.end));
        };
        let blocks = match &self.of {
            Of::View(OfView::Blocks(blocks)) => blocks,
            Of::View(_) => return false,
            Of::Mix(mix) => {
                let mut needed = Vec::new();
                let has_blocks = mix.needed(epoch, places, position_of, &mut needed);
                needed.into_iter().for_each(|(position, samples)| add(position, samples));
                return has_blocks;
            }
        };
        let mut place = places.start;
        while place < places.end {
            let (number, inner) = (place / self.n_samples, place % self.n_samples);
            let n = (places.end - place).min(self.n_samples - inner);
            let pass = blocks.pass(epoch, number);
            for pool in pass.pools(inner..inner + n) {
                let position = position_of(number * self.n_samples + pool.place);
                pass.blocks_of(&pool, |samples| add(position, samples));
            }
            place += n;
        }
        true
    }

    /// The words of its order.
    pub(super) fn describe(&self) -> String {
        match &self.of {
            Of::View(view) => view.describe(),
            Of::Mix(mix) => format!("[{}]", mix.words()),
        }
    }
}

impl OfView {
    fn new(len: u64, order: Order, seed: u64) -> Result<OfView> {
        Ok(match order {
            Order::Sequential => OfView::Sequential,
            Order::Shuffle => OfView::Shuffle(seed),
            Order::Blocks(shape) => OfView::Blocks(Box::new(Blocks::new(len, seed, shape)?)),
        })
    }

    pub(super) fn order(&self, epoch: u64, pass: u64, len: u64) -> PassOrder<'_> {
        match self {
            OfView::Sequential => PassOrder::Sequential,
            OfView::Shuffle(seed) => PassOrder::Shuffle(order(*seed, epoch, pass, len)),
            OfView::Blocks(blocks) => PassOrder::Blocks(Box::new(Turns::new(blocks.pass(epoch, pass)))),
        }
    }

    fn describe(&self) -> String {
        match self {
            OfView::Sequential => "sequential".into(),
            OfView::Shuffle(_) => "shuffle:feistel-v1".into(),
            OfView::Blocks(blocks) => blocks.describe(),
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
