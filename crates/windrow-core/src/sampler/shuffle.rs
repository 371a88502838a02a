//! A true global shuffle, another one each epoch, without a buffer.

use std::ops::Range;

use super::{Permutation, Sampler, Turn};
use crate::record::keyed_hash;

/// Sets the keys of an order apart from every other use of the hash.
const ORDER: u64 = 0x6f72_6465_7231_0000;

/// Every sample once per epoch, in an order drawn from all orders by (seed, epoch).
///
/// O(1) memory and time per position, and invertible: see [`Permutation`].
///
/// ```
/// use windrow_core::sampler::{Sampler, Shuffle};
///
/// let order = Shuffle::new(1000, 7);
/// let turn = order.turn(0, 12);
/// assert_eq!(order.position(0, turn), Some(12));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    n: u64,
    seed: u64,
}

impl Shuffle {
    /// The shuffled orders of `n` samples under a seed.
    pub fn new(n: u64, seed: u64) -> Self {
        Shuffle { n, seed }
    }
}

/// The order of `n` samples in one pass of one epoch.
pub(super) fn order(seed: u64, epoch: u64, pass: u64, n: u64) -> Permutation {
    Permutation::new(keyed_hash(seed, [epoch, pass, ORDER]), n)
}

impl Sampler for Shuffle {
    fn len(&self, _epoch: u64) -> Option<u64> {
        Some(self.n)
    }

    fn turn(&self, epoch: u64, position: u64) -> Turn {
        Turn { sample: order(self.seed, epoch, 0, self.n).apply(position), pass: 0 }
    }

    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        let order = order(self.seed, epoch, 0, self.n);
        out.extend(positions.map(|p| Turn { sample: order.apply(p), pass: 0 }));
    }

    fn position(&self, epoch: u64, turn: Turn) -> Option<u64> {
        (turn.pass == 0 && turn.sample < self.n)
            .then(|| order(self.seed, epoch, 0, self.n).invert(turn.sample))
    }

    fn describe(&self) -> String {
        "shuffle:feistel-v1".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_every_sample_once_and_its_own_order() {
        let order = Shuffle::new(100, 1);
        let [mut first, mut second] = [Vec::new(), Vec::new()];
        order.turns(0, 0..100, &mut first);
        order.turns(1, 0..100, &mut second);
        assert_ne!(first, second);
        for (epoch, turns) in [(0, &first), (1, &second)] {
            let mut samples: Vec<u64> = turns.iter().map(|t| t.sample).collect();
            samples.sort_unstable();
            assert_eq!(samples, (0..100).collect::<Vec<_>>());
            for (position, turn) in (0..).zip(turns) {
                assert_eq!(order.turn(epoch, position), *turn);
                assert_eq!(order.position(epoch, *turn), Some(position));
            }
        }
    }

    #[test]
    fn a_turn_that_never_comes_has_no_position() {
        let order = Shuffle::new(10, 1);
        assert_eq!(order.position(0, Turn { sample: 10, pass: 0 }), None);
        assert_eq!(order.position(0, Turn { sample: 1, pass: 1 }), None);
        assert_eq!(Shuffle::new(0, 1).position(0, Turn { sample: 0, pass: 0 }), None);
    }
}
