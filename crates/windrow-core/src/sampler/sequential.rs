//! Samples in the order of their numbers, the same each epoch.

use super::{Sampler, Turn};

/// `0, 1, …, n-1`, every epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequential {
    n: u64,
}

impl Sequential {
    /// The order of `n` samples by number.
    pub fn new(n: u64) -> Self {
        Sequential { n }
    }
}

impl Sampler for Sequential {
    fn len(&self, _epoch: u64) -> Option<u64> {
        Some(self.n)
    }

    fn turn(&self, _epoch: u64, position: u64) -> Turn {
        Turn { sample: position, pass: 0 }
    }

    fn position(&self, _epoch: u64, turn: Turn) -> Option<u64> {
        (turn.pass == 0 && turn.sample < self.n).then_some(turn.sample)
    }

    fn describe(&self) -> String {
        "sequential".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_by_number() {
        let order = Sequential::new(3);
        let mut turns = Vec::new();
        order.turns(5, 0..3, &mut turns);
        assert_eq!(turns.iter().map(|t| t.sample).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(order.position(5, turns[2]), Some(2));
        assert_eq!(order.position(5, Turn { sample: 3, pass: 0 }), None);
        assert_eq!(order.position(5, Turn { sample: 0, pass: 1 }), None);
    }
}
