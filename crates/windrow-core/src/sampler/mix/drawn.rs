//! Orders of parts that were drawn for a batch and are used again for the next: drawing one is two dozen hashes.

use std::sync::Mutex;

use crate::sampler::Permutation;

/// How many orders are kept: about half a megabyte for each thread that assembles batches.
const MOST: usize = 1024;

/// More threads than this draw their orders again.
const MOST_THREADS: usize = 64;

/// The latest orders of the shuffled parts of a mixture, in one epoch.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    epoch: u64,
    /// By part: its place in `orders`, counted from 1; 0 where it has none.
    places: Vec<u16>,
    /// Each with its pass.
    orders: Vec<(u64, Permutation)>,
}

impl Drawn {
    /// Ready for the parts of a mixture in an epoch.
    fn begin(&mut self, epoch: u64, n_parts: usize) {
        if self.epoch != epoch || self.places.len() != n_parts || self.orders.len() >= MOST {
            self.epoch = epoch;
            self.orders.clear();
            self.places.clear();
            self.places.resize(n_parts, 0);
        }
    }

    /// The order of a part in a pass, which `draw` makes where it is not here.
    pub(super) fn order(&mut self, part: u16, pass: u64, draw: impl Fn() -> Permutation) -> &Permutation {
        let place = &mut self.places[usize::from(part)];
        if *place == 0 {
            self.orders.push((pass, draw()));
            // At most 65,535 parts have one.
            *place = self.orders.len() as u16;
        }
        let (latest, order) = &mut self.orders[usize::from(*place) - 1];
        if *latest != pass {
            (*latest, *order) = (pass, draw());
        }
        order
    }
}

/// What no thread uses at the moment. A fork may leave the lock held, so nobody waits for it.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Drawn>>);

impl Spare {
    pub(super) fn take(&self, epoch: u64, n_parts: usize) -> Drawn {
        let mut drawn = self.0.try_lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
        drawn.begin(epoch, n_parts);
        drawn
    }

    pub(super) fn give(&self, drawn: Drawn) {
        if let Ok(mut spare) = self.0.try_lock()
            && spare.len() < MOST_THREADS
        {
            spare.push(drawn);
        }
    }
}

/// A copy of a mixture draws for itself.
impl Clone for Spare {
    fn clone(&self) -> Spare {
        Spare::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_drawn_once_for_a_pass_of_an_epoch() {
        let spare = Spare::default();
        let draw = |key| move || Permutation::new(key, 1000);
        let mut drawn = spare.take(0, 3);
        assert_eq!(drawn.order(2, 0, draw(1)), &draw(1)());
        assert_eq!(drawn.order(2, 0, || unreachable!()), &draw(1)());
        assert_eq!(drawn.order(2, 1, draw(2)), &draw(2)());
        assert_eq!(drawn.order(0, 1, draw(3)), &draw(3)());
        spare.give(drawn);
        let mut again = spare.take(0, 3);
        assert_eq!(again.order(2, 1, || unreachable!()), &draw(2)());
        spare.give(again);
        // Another epoch, and a mixture of other parts, find nothing.
        assert_eq!(spare.take(1, 3).order(2, 1, draw(4)), &draw(4)());
        assert_eq!(spare.take(1, 9).order(2, 1, draw(5)), &draw(5)());
    }

    #[test]
    fn no_more_are_kept_than_fit() {
        let spare = Spare::default();
        let mut drawn = spare.take(0, MOST + 1);
        (0..=MOST as u16).for_each(|part| {
            drawn.order(part, 0, || Permutation::new(u64::from(part), 9));
        });
        spare.give(drawn);
        assert!(spare.take(0, MOST + 1).orders.is_empty());
    }
}
