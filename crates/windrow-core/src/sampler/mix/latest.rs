//! Turns of consecutive positions: each part keeps the order of its latest pass, whose key is worth keeping.

use super::Mix;
use super::part::{Of, OfView, PassOrder};
use crate::sampler::Turn;

/// What is kept of the parts of a mixture.
pub(super) struct Latest<'m> {
    mix: &'m Mix,
    epoch: u64,
    /// By part: its place in `kept`, counted from 1; 0 where it had no turn yet.
    places: Vec<u16>,
    kept: Vec<Kept<'m>>,
    turns: usize,
}

#[expect(clippy::large_enum_variant, reason = "one beside the other, without an allocation for each")]
enum Kept<'m> {
    /// A view, a pass of it, and the order of that.
    View(&'m OfView, u64, PassOrder<'m>),
    Mix(Latest<'m>),
}

impl<'m> Latest<'m> {
    /// For about as many `turns`.
    pub(super) fn new(mix: &'m Mix, epoch: u64, turns: usize) -> Self {
        let n_parts = mix.parts.len();
        Latest { mix, epoch, places: vec![0; n_parts], kept: Vec::with_capacity(turns.min(n_parts)), turns }
    }

    /// Whose turn it is at a position.
    pub(super) fn turn(&mut self, position: u64) -> Turn {
        let (number, place) = self.mix.schedule.place(position);
        let part = self.mix.part(number);
        let kept = &mut self.places[usize::from(number)];
        if *kept == 0 {
            self.kept.push(match &part.of {
                Of::View(view) => {
                    let pass = place / part.n_samples;
                    Kept::View(view, pass, view.order(self.epoch, pass, part.n_samples))
                }
                Of::Mix(mix) => Kept::Mix(Latest::new(mix, self.epoch, self.turns)),
            });
            // At most 65,535 parts.
            *kept = self.kept.len() as u16;
        }
        let turn = match &mut self.kept[usize::from(*kept) - 1] {
            Kept::View(view, latest, order) => {
                let (pass, inner) = (place / part.n_samples, place % part.n_samples);
                if *latest != pass {
                    (*latest, *order) = (pass, view.order(self.epoch, pass, part.n_samples));
                }
                Turn { sample: order.sample(inner), pass }
            }
            Kept::Mix(latest) => latest.turn(place),
        };
        Turn { sample: part.offset + turn.sample, pass: turn.pass }
    }
}
