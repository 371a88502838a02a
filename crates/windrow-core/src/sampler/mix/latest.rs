//! Turns of consecutive positions: each part keeps the order of its latest pass, whose key is worth keeping.

use std::collections::BTreeMap;

use super::Mix;
use super::part::{Of, PassOrder};
use crate::sampler::Turn;

/// What is kept of the parts of a mixture.
pub(super) struct Latest<'m> {
    mix: &'m Mix,
    epoch: u64,
    /// Of views: a pass, and its order.
    orders: BTreeMap<u16, (u64, PassOrder<'m>)>,
    mixes: BTreeMap<u16, Latest<'m>>,
}

impl<'m> Latest<'m> {
    pub(super) fn new(mix: &'m Mix, epoch: u64) -> Self {
        Latest { mix, epoch, orders: BTreeMap::new(), mixes: BTreeMap::new() }
    }

    /// Whose turn it is at a position.
    pub(super) fn turn(&mut self, position: u64) -> Turn {
        let (number, place) = self.mix.schedule.place(position);
        let part = self.mix.part(number);
        let turn = match &part.of {
            Of::View(view) => {
                let (pass, inner) = (place / part.n_samples, place % part.n_samples);
                let new = || (pass, view.order(self.epoch, pass, part.n_samples));
                let latest = self.orders.entry(number).or_insert_with(new);
                if latest.0 != pass {
                    *latest = new();
                }
                Turn { sample: latest.1.sample(inner), pass }
            }
            Of::Mix(mix) => {
                self.mixes.entry(number).or_insert_with(|| Latest::new(mix, self.epoch)).turn(place)
            }
        };
        Turn { sample: part.offset + turn.sample, pass: turn.pass }
    }
}
