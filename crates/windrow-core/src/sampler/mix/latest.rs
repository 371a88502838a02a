//! Turns of consecutive positions: each part keeps the order of its latest pass, whose key is worth keeping.

use super::Mix;
use super::drawn::Drawn;
use super::part::{Of, OfView, PassOrder};
use crate::sampler::Turn;
use crate::sampler::shuffle::order;

/// What is kept of the parts of a mixture.
pub(super) struct Latest<'m> {
    mix: &'m Mix,
    epoch: u64,
    /// Of shuffled views, which it gives back for the next positions.
    drawn: Drawn,
    /// Of the others, by part: its place in `kept`, counted from 1; 0 where it had no turn yet.
    places: Vec<u16>,
    kept: Vec<Kept<'m>>,
}

enum Kept<'m> {
    /// A view, a pass of it, and the order of that.
    View(&'m OfView, u64, Box<PassOrder<'m>>),
    Mix(Latest<'m>),
}

impl<'m> Latest<'m> {
    pub(super) fn new(mix: &'m Mix, epoch: u64) -> Self {
        let drawn = mix.spare.take(epoch, mix.parts.len());
        Latest { mix, epoch, drawn, places: Vec::new(), kept: Vec::new() }
    }

    /// Whose turn it is at a position.
    pub(super) fn turn(&mut self, position: u64) -> Turn {
        let (mix, epoch) = (self.mix, self.epoch);
        let (number, place) = mix.schedule.place(position);
        let part = mix.part(number);
        let (pass, inner) = (place / part.n_samples, place % part.n_samples);
        let turn = match &part.of {
            Of::View(OfView::Sequential) => Turn { sample: inner, pass },
            Of::View(OfView::Shuffle(seed)) => {
                let draw = || order(*seed, epoch, pass, part.n_samples);
                Turn { sample: self.drawn.order(number, pass, draw).apply(inner), pass }
            }
            other => match self.kept(number, other, pass, part.n_samples) {
                Kept::View(view, latest, order) => {
                    if *latest != pass {
                        (*latest, **order) = (pass, view.order(epoch, pass, part.n_samples));
                    }
                    Turn { sample: order.sample(inner), pass }
                }
                Kept::Mix(latest) => latest.turn(place),
            },
        };
        Turn { sample: part.offset + turn.sample, pass: turn.pass }
    }

    // What is kept of a part, which is made where it has its first turn.
    fn kept(&mut self, number: u16, of: &'m Of, pass: u64, n_samples: u64) -> &mut Kept<'m> {
        self.places.resize(self.mix.parts.len(), 0);
        let place = &mut self.places[usize::from(number)];
        if *place == 0 {
            self.kept.push(match of {
                Of::View(view) => Kept::View(view, pass, Box::new(view.order(self.epoch, pass, n_samples))),
                Of::Mix(mix) => Kept::Mix(Latest::new(mix, self.epoch)),
            });
            // At most 65,535 parts.
            *place = self.kept.len() as u16;
        }
        &mut self.kept[usize::from(*place) - 1]
    }
}

impl Drop for Latest<'_> {
    fn drop(&mut self) {
        self.mix.spare.give(std::mem::take(&mut self.drawn));
    }
}
