//! An order in which samples of about the same length come together.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::{Permutation, Sampler, Turn};
use crate::record::keyed_hash;

/// How many groups are sorted together: a group's lengths differ by about this part of all lengths. As in the sampler by length
/// of transformers.
const GROUPS: u64 = 50;

/// Sets the key of the order of groups apart from every other use of the hash.
const GROUP_ORDER: u64 = 0x6772_6f75_7065_6431;

/// Another order, in which each `rows` consecutive positions are samples of about the same length.
///
/// Of every `50 * rows` positions of the other order, a pool, the samples are sorted by length and cut into groups, and the
/// groups come in random order. What an epoch has more than whole groups stays where it was.
///
/// Memory: 4 bytes a sample, and two pools.
pub struct Grouped {
    inner: Arc<dyn Sampler>,
    lengths: Arc<[u32]>,
    rows: NonZeroU64,
    seed: u64,
    /// The pools of late. A fork may leave the lock held, so nobody waits for it.
    sorted: Mutex<Vec<Sorted>>,
}

#[derive(Clone)]
struct Sorted {
    epoch: u64,
    pool: u64,
    turns: Arc<[Turn]>,
}

/// Threads that assemble neighbouring batches are in two pools at most.
const KEPT: usize = 2;

impl Grouped {
    /// Brings `rows` samples of about the same length together: `lengths` has one of each sample.
    pub fn new(inner: Arc<dyn Sampler>, lengths: Arc<[u32]>, rows: NonZeroU64, seed: u64) -> Grouped {
        Grouped { inner, lengths, rows, seed, sorted: Mutex::new(Vec::new()) }
    }

    fn pool_size(&self) -> u64 {
        self.rows.get().saturating_mul(GROUPS)
    }

    // The positions of a pool.
    fn positions(&self, epoch: u64, pool: u64) -> Range<u64> {
        let len = self.inner.len(epoch).unwrap_or(u64::MAX);
        let start = pool.saturating_mul(self.pool_size()).min(len);
        start..start.saturating_add(self.pool_size()).min(len)
    }

    // The turns of a pool, in their order.
    fn pool(&self, epoch: u64, pool: u64) -> Arc<[Turn]> {
        let is_it = |sorted: &&Sorted| sorted.epoch == epoch && sorted.pool == pool;
        if let Ok(sorted) = self.sorted.try_lock()
            && let Some(found) = sorted.iter().find(is_it)
        {
            return found.turns.clone();
        }
        let turns: Arc<[Turn]> = self.sort(epoch, pool).into();
        if let Ok(mut sorted) = self.sorted.try_lock() {
            sorted.truncate(KEPT - 1);
            sorted.insert(0, Sorted { epoch, pool, turns: turns.clone() });
        }
        turns
    }

    fn sort(&self, epoch: u64, pool: u64) -> Vec<Turn> {
        let mut turns = Vec::new();
        self.inner.turns(epoch, self.positions(epoch, pool), &mut turns);
        let groups = turns.len() as u64 / self.rows;
        let rows = self.rows.get() as usize;
        let whole = groups as usize * rows;
        let length = |turn: &Turn| self.lengths.get(turn.sample as usize).copied().unwrap_or(0);
        // Stable: equal lengths stay in random order.
        turns[..whole].sort_by_key(length);
        let order = Permutation::new(keyed_hash(self.seed, [epoch, pool, GROUP_ORDER]), groups);
        let grouped = (0..groups).flat_map(|group| {
            let start = order.apply(group) as usize * rows;
            turns[start..start + rows].iter().copied()
        });
        grouped.chain(turns[whole..].iter().copied()).collect()
    }
}

impl Sampler for Grouped {
    fn len(&self, epoch: u64) -> Option<u64> {
        self.inner.len(epoch)
    }

    fn turn(&self, epoch: u64, position: u64) -> Turn {
        let pool = self.pool(epoch, position / self.pool_size());
        pool[(position % self.pool_size()) as usize]
    }

    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        let size = self.pool_size();
        let mut at = positions.start;
        while at < positions.end {
            let turns = self.pool(epoch, at / size);
            let first = (at % size) as usize;
            let n = (positions.end - at).min(turns.len().saturating_sub(first) as u64);
            if n == 0 {
                return;
            }
            out.extend_from_slice(&turns[first..first + n as usize]);
            at += n;
        }
    }

    fn position(&self, epoch: u64, turn: Turn) -> Option<u64> {
        let pool = self.inner.position(epoch, turn)? / self.pool_size();
        let at = self.pool(epoch, pool).iter().position(|other| *other == turn)?;
        Some(pool * self.pool_size() + at as u64)
    }

    fn blocks(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Range<u64>>) -> bool {
        if positions.is_empty() {
            return self.inner.blocks(epoch, positions, out);
        }
        let first = self.positions(epoch, positions.start / self.pool_size());
        let last = self.positions(epoch, (positions.end - 1) / self.pool_size());
        self.inner.blocks(epoch, first.start..last.end, out)
    }

    fn describe(&self) -> String {
        format!("{}+grouped(rows={})", self.inner.describe(), self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::{Order, Shuffle};

    fn group(rows: u64) -> NonZeroU64 {
        NonZeroU64::new(rows).unwrap()
    }

    #[test]
    fn groups_hold_like_lengths_and_every_sample_comes_once() {
        for (n, rows) in [(1, 1), (7, 8), (1000, 8), (3217, 32), (800, 16), (53, 1)] {
            let lengths: Arc<[u32]> = (0..n).map(|i| keyed_hash(3, [i, 0, 0]) as u32 % 1000).collect();
            let grouped = Grouped::new(Arc::new(Shuffle::new(n, 5)), lengths.clone(), group(rows), 5);
            for epoch in 0..2 {
                let mut turns = Vec::new();
                grouped.turns(epoch, 0..n, &mut turns);
                for (position, turn) in (0..n).zip(&turns) {
                    assert_eq!(grouped.turn(epoch, position), *turn);
                    assert_eq!(grouped.position(epoch, *turn), Some(position));
                }
                let mut seen: Vec<u64> = turns.iter().map(|turn| turn.sample).collect();
                // Within a pool, no group reaches into another's lengths.
                let pool = (rows * GROUPS) as usize;
                for pool in turns.chunks(pool) {
                    let mut ranges: Vec<(u32, u32)> = pool
                        .chunks_exact(rows as usize)
                        .map(|group| {
                            let of = |turn: &Turn| lengths[turn.sample as usize];
                            (group.iter().map(of).min().unwrap(), group.iter().map(of).max().unwrap())
                        })
                        .collect();
                    ranges.sort_unstable();
                    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
                }
                seen.sort_unstable();
                assert_eq!(seen, (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn groups_come_in_random_order() {
        let lengths: Arc<[u32]> = (0..4000).collect();
        let grouped = Grouped::new(Order::Shuffle.of(4000, 1).unwrap(), lengths, group(8), 1);
        let first = |pool: u64| (0..50).map(|group| grouped.turn(0, pool * 400 + group * 8).sample).collect();
        let pools: Vec<Vec<u64>> = (0..10).map(first).collect();
        assert!(pools.iter().all(|starts| !starts.is_sorted()));
        // The longest group is not at one place of all pools.
        let longest = |starts: &Vec<u64>| starts.iter().enumerate().max_by_key(|(_, s)| **s).unwrap().0;
        let mut places: Vec<usize> = pools.iter().map(longest).collect();
        places.sort_unstable();
        places.dedup();
        assert!(places.len() >= 5, "{places:?}");
        assert_eq!(grouped.describe(), "shuffle:feistel-v1+grouped(rows=8)");
    }

    #[test]
    fn blocks_are_told_for_whole_pools() {
        let shape = crate::sampler::BlockShape { size: 64, lanes: 1, rows: 1, pool: 2 };
        let inner = Order::Blocks(shape).of(1000, 1).unwrap();
        let grouped = Grouped::new(inner.clone(), vec![1; 1000].into(), group(2), 1);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        assert!(grouped.blocks(0, 150..152, &mut ours) && inner.blocks(0, 100..200, &mut theirs));
        assert_eq!(ours, theirs);
    }
}
