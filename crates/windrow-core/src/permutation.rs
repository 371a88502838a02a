//! A keyed bijection on `0..n` and its inverse, for any n, in constant memory: what makes a shuffle arithmetic.

use crate::record::keyed_hash;

/// Full rounds, two half rounds each, of a domain of `FEW` numbers or more. Over 20 million values, 3 rounds look random
/// from n = 10,000 on, 4 from n = 1,000, 6 from n = 25.
const ROUNDS: usize = 6;

/// A smaller domain has halves of a few values, too few functions to mix in 6 rounds: over 4 million keys the orders of
/// 5 numbers are visibly unequal after 8. Each round divides the excess of chi-square by three; 16 hide it for good.
const ROUNDS_OF_FEW: usize = 16;

/// Where a domain stops being tiny.
const FEW: u64 = 256;

/// Longest domain that is permuted; a·b stays below 2^64.
const MOST: u64 = 1 << 63;

/// Sets the round words apart from every other use of the hash.
const ROUND_WORD: u64 = 0x726f_756e_6477_6f72;

/// A keyed bijection on `0..n`, in O(1) memory, with its inverse.
///
/// An unbalanced Feistel network over `Z_a × Z_b` with modular addition: `i = y·a + x`, and half rounds alternate
/// `x += F(y) mod a` and `y += F(x) mod b`. Here a is √n rounded up to an even number and b = ⌈n/a⌉, so the domain a·b
/// is barely above n; a result outside `0..n` goes through the network again until it falls inside (cycle walking),
/// which keeps it a bijection. That is the generalised Feistel cipher of Black and Rogaway, "Ciphers with Arbitrary
/// Finite Domains" (CT-RSA 2002). An even a makes odd permutations as likely as even ones: adding d to a number mod a
/// is a permutation of the sign of d.
///
/// It is an order, not a cipher: statistically random, not secret.
///
/// ```
/// use windrow_core::sampler::Permutation;
///
/// let order = Permutation::new(7, 1000);
/// let there = order.apply(3);
/// assert!(there < 1000);
/// assert_eq!(order.invert(there), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    a: u64,
    b: u64,
    n_rounds: usize,
    rounds: [Round; ROUNDS_OF_FEW],
}

/// The words of two half rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Round {
    x: [u64; 2],
    y: [u64; 2],
}

impl Permutation {
    /// The permutation of `0..n` that `key` names; the key may be any number, close ones give unrelated orders.
    ///
    /// `n` may be up to 2^63; numbers beyond that stay where they are.
    pub fn new(key: u64, n: u64) -> Self {
        let n = n.min(MOST);
        let floor = n.isqrt();
        let ceil = floor + u64::from(floor * floor < n);
        let a = ceil.next_multiple_of(2).max(2);
        let word = |round: usize, which: u64| keyed_hash(key, [round as u64, which, ROUND_WORD]);
        let n_rounds = if n < FEW { ROUNDS_OF_FEW } else { ROUNDS };
        let mut rounds = [Round::default(); ROUNDS_OF_FEW];
        for (r, round) in rounds[..n_rounds].iter_mut().enumerate() {
            *round = Round { x: [word(r, 0), word(r, 1)], y: [word(r, 2), word(r, 3)] };
        }
        Permutation { n, a, b: n.div_ceil(a), n_rounds, rounds }
    }

    /// Where `i` goes. A number outside `0..n` stays where it is.
    #[inline]
    pub fn apply(&self, i: u64) -> u64 {
        if i >= self.n {
            return i;
        }
        let (mut x, mut y) = (i % self.a, i / self.a);
        loop {
            for round in &self.rounds[..self.n_rounds] {
                x = add(x, below(self.a, y, round.x), self.a);
                y = add(y, below(self.b, x, round.y), self.b);
            }
            let j = y * self.a + x;
            if j < self.n {
                return j;
            }
        }
    }

    /// Where `j` came from: `invert(apply(i)) == i`.
    #[inline]
    pub fn invert(&self, j: u64) -> u64 {
        if j >= self.n {
            return j;
        }
        let (mut x, mut y) = (j % self.a, j / self.a);
        loop {
            for round in self.rounds[..self.n_rounds].iter().rev() {
                y = subtract(y, below(self.b, x, round.y), self.b);
                x = subtract(x, below(self.a, y, round.x), self.a);
            }
            let i = y * self.a + x;
            if i < self.n {
                return i;
            }
        }
    }
}

/// The round function: a number in `0..m` from the other half and two secret words.
///
/// The half enters both factors, so the product is quadratic in it; with one factor alone, neighbouring halves would
/// give nearly an arithmetic progression.
#[inline(always)]
fn below(m: u64, half: u64, words: [u64; 2]) -> u64 {
    let product = u128::from(half ^ words[0]) * u128::from(half.rotate_left(32) ^ words[1]);
    let mixed = (product >> 64) as u64 ^ product as u64;
    ((u128::from(mixed) * u128::from(m)) >> 64) as u64
}

/// `u + v mod m` for `u, v < m ≤ 2^63`, without a branch: the wrong one of the two wraps to a huge number.
#[inline(always)]
fn add(u: u64, v: u64, m: u64) -> u64 {
    let sum = u + v;
    sum.min(sum.wrapping_sub(m))
}

/// `u - v mod m` for `u, v < m ≤ 2^63`.
#[inline(always)]
fn subtract(u: u64, v: u64, m: u64) -> u64 {
    let difference = u.wrapping_sub(v);
    difference.min(difference.wrapping_add(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_domains_work() {
        for key in 0..50 {
            assert_eq!(Permutation::new(key, 0).apply(0), 0);
            assert_eq!(Permutation::new(key, 1).apply(0), 0);
            for n in 2..=4 {
                let p = Permutation::new(key, n);
                let mut all: Vec<u64> = (0..n).map(|i| p.apply(i)).collect();
                assert!((0..n).all(|i| p.invert(p.apply(i)) == i));
                all.sort_unstable();
                assert_eq!(all, (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_largest_domains_work() {
        for n in [1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX] {
            let p = Permutation::new(3, n);
            for i in [0, 1, n / 2, n - 2, n - 1] {
                assert!(p.apply(i) < n);
                assert_eq!(p.invert(p.apply(i)), i);
            }
        }
    }

    #[test]
    fn numbers_outside_stay() {
        let p = Permutation::new(1, 10);
        assert_eq!((p.apply(10), p.invert(11), p.apply(u64::MAX)), (10, 11, u64::MAX));
    }

    /// Plans name this order "feistel-v1": a changed order needs a new name.
    #[test]
    fn the_order_of_version_1_stays() {
        let p = Permutation::new(42, 10);
        assert_eq!((0..10).map(|i| p.apply(i)).collect::<Vec<_>>(), [2, 6, 5, 8, 1, 3, 9, 7, 4, 0]);
        assert_eq!(Permutation::new(42, 1_000_000).apply(123_456), 430_204);
    }
}
