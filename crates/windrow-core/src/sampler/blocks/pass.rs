//! One pass of an epoch: place in the order → sample, and back.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Blocks;
use crate::record::keyed_hash;
use crate::sampler::Permutation;

/// Sets the keys of epochs and passes apart from every other use of the hash.
const PASS: u64 = 0x626c_6f63_6b73_3100;

/// What a key of the pass is for, beside lane and pool.
const LANE_ORDER: u64 = 0;
const POOL_ORDER: u64 = 1;
const LEFT_ORDER: u64 = 2;

/// The order of one pass.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct Pass<'b> {
    pub(super) blocks: &'b Blocks,
    key: u64,
}

/// A lane's order of its blocks.
pub(super) struct Lane {
    pub(super) number: u64,
    order: Permutation,
    /// When the short block comes, if it is this lane's.
    short: Option<u64>,
}

/// The blocks of a lane that are mixed with each other.
pub(super) struct Pool {
    pub(super) number: u64,
    /// Its samples, as places in the lane.
    pub(super) places: Range<u64>,
    /// Which of its blocks is the short one, if it has it.
    short: Option<u64>,
}

impl<'b> Pass<'b> {
    pub(super) fn new(blocks: &'b Blocks, epoch: u64, pass: u64) -> Self {
        Pass { blocks, key: keyed_hash(blocks.seed, [epoch, pass, PASS]) }
    }

    /// The sample at a place below n. A number outside stays where it is.
    pub(in crate::sampler) fn sample(&self, place: u64) -> u64 {
        if place >= self.blocks.n {
            return place;
        }
        let (lane, inner) = self.in_lane(place, &mut None);
        let lane = self.lane(lane);
        let pool = self.pool_at(&lane, inner);
        self.sample_of(&lane, &pool, &self.order_of(&lane, &pool), inner)
    }

    /// The inverse: where a sample below n comes.
    pub(in crate::sampler) fn place(&self, sample: u64) -> u64 {
        let Blocks { shape, rounds, missing, .. } = self.blocks;
        let (block, inside) = (sample / shape.size, sample % shape.size);
        let (lane, dealt) = self.blocks.dealt(block);
        let lane = self.lane(lane);
        let turn = lane.order.invert(dealt);
        let (pool, slot) = (self.pool(&lane, turn / shape.pool), turn % shape.pool);
        let behind = if pool.short.is_some_and(|short| slot > short) { *missing } else { 0 };
        let number = slot * shape.size + inside - behind;
        let inner = pool.places.start + self.order_of(&lane, &pool).invert(number);
        if inner < rounds * shape.rows {
            (inner / shape.rows * shape.lanes + lane.number) * shape.rows + inner % shape.rows
        } else {
            let left = self.blocks.left_before(lane.number) + inner - rounds * shape.rows;
            self.blocks.in_rounds() + self.order_left().invert(left)
        }
    }

    /// The order of what lanes have left after all whole rounds.
    fn order_left(&self) -> Permutation {
        Permutation::new(keyed_hash(self.key, [0, 0, LEFT_ORDER]), self.blocks.n - self.blocks.in_rounds())
    }

    /// The lane of a place, and the place in that lane. The order of what is left is made when it is first needed.
    pub(super) fn in_lane(&self, place: u64, order_left: &mut Option<Permutation>) -> (u64, u64) {
        let Blocks { shape, rounds, .. } = self.blocks;
        let in_rounds = self.blocks.in_rounds();
        if place < in_rounds {
            let (turn, row) = (place / shape.rows, place % shape.rows);
            return (turn % shape.lanes, turn / shape.lanes * shape.rows + row);
        }
        let left = order_left.get_or_insert_with(|| self.order_left()).apply(place - in_rounds);
        let lane = self.blocks.lane_left(left);
        (lane, rounds * shape.rows + left - self.blocks.left_before(lane))
    }

    pub(super) fn lane(&self, number: u64) -> Lane {
        let key = keyed_hash(self.key, [number, 0, LANE_ORDER]);
        let order = Permutation::new(key, self.blocks.blocks_of(number));
        let (last_lane, last) = self.blocks.last;
        let has_short = number == last_lane && self.blocks.missing > 0;
        Lane { number, short: has_short.then(|| order.invert(last)), order }
    }

    pub(super) fn pool(&self, lane: &Lane, number: u64) -> Pool {
        let Blocks { shape, missing, .. } = self.blocks;
        let first = number * shape.pool;
        let n = shape.pool.min(self.blocks.blocks_of(lane.number).saturating_sub(first));
        let before = if lane.short.is_some_and(|short| short < first) { *missing } else { 0 };
        let short = lane.short.and_then(|short| short.checked_sub(first)).filter(|slot| *slot < n);
        let start = first * shape.size - before;
        let len = n * shape.size - if short.is_some() { *missing } else { 0 };
        Pool { number, places: start..start + len, short }
    }

    /// The pool of a place in a lane.
    pub(super) fn pool_at(&self, lane: &Lane, inner: u64) -> Pool {
        let shape = self.blocks.shape;
        let pool = self.pool(lane, inner / shape.pool.saturating_mul(shape.size));
        if inner < pool.places.end {
            pool
        } else {
            // The short block was in an earlier one.
            self.pool(lane, pool.number + 1)
        }
    }

    /// The number of that pool. A lane's order is asked only where the short block moves its pools.
    pub(super) fn pool_number(&self, lane: u64, inner: u64) -> u64 {
        let Blocks { shape, last, missing, .. } = self.blocks;
        if lane == last.0 && *missing > 0 {
            self.pool_at(&self.lane(lane), inner).number
        } else {
            inner / shape.pool.saturating_mul(shape.size)
        }
    }

    fn order_of(&self, lane: &Lane, pool: &Pool) -> Permutation {
        let key = keyed_hash(self.key, [lane.number, pool.number, POOL_ORDER]);
        Permutation::new(key, pool.places.end - pool.places.start)
    }

    /// The sample at a place of a lane, in the pool whose place it is.
    fn sample_of(&self, lane: &Lane, pool: &Pool, order: &Permutation, inner: u64) -> u64 {
        let Blocks { shape, missing, .. } = self.blocks;
        let mut number = order.apply(inner - pool.places.start);
        if pool.short.is_some_and(|slot| number >= slot * shape.size + (shape.size - missing)) {
            number += missing;
        }
        let (slot, inside) = (number / shape.size, number % shape.size);
        self.block(lane, pool.number * shape.pool + slot) * shape.size + inside
    }

    /// The block that a lane has as its `turn`-th.
    pub(super) fn block(&self, lane: &Lane, turn: u64) -> u64 {
        self.blocks.deal.apply(self.blocks.first(lane.number) + lane.order.apply(turn))
    }
}

/// Samples of many places: keeps the orders of the lanes and of their latest pools.
pub(in crate::sampler) struct Turns<'b> {
    pass: Pass<'b>,
    left: Option<Permutation>,
    lanes: BTreeMap<u64, Box<Open>>,
}

struct Open {
    lane: Lane,
    pool: Pool,
    order: Permutation,
}

impl<'b> Turns<'b> {
    pub(in crate::sampler) fn new(pass: Pass<'b>) -> Self {
        Turns { pass, left: None, lanes: BTreeMap::new() }
    }

    /// As [`Pass::sample`].
    pub(in crate::sampler) fn sample(&mut self, place: u64) -> u64 {
        let pass = self.pass;
        if place >= pass.blocks.n {
            return place;
        }
        let (number, inner) = pass.in_lane(place, &mut self.left);
        let open = self.lanes.entry(number).or_insert_with(|| {
            let lane = pass.lane(number);
            let pool = pass.pool_at(&lane, inner);
            Box::new(Open { order: pass.order_of(&lane, &pool), lane, pool })
        });
        if !open.pool.places.contains(&inner) {
            open.pool = pass.pool_at(&open.lane, inner);
            open.order = pass.order_of(&open.lane, &open.pool);
        }
        pass.sample_of(&open.lane, &open.pool, &open.order, inner)
    }

    /// As [`Pass::place`].
    pub(in crate::sampler) fn place(&self, sample: u64) -> u64 {
        self.pass.place(sample)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::sampler::BlockShape;

    /// Only a mixture has a second pass of its samples in an epoch; the tests of `Blocks` compare the first.
    #[test]
    fn the_second_pass_is_the_one_recorded() {
        let recorded = include_str!("../../../../../testdata/golden/orders/block_shuffle.json");
        let recorded: Value = serde_json::from_str(recorded).unwrap();
        for row in recorded["whole"].as_array().unwrap() {
            let number = |name: &str| row[name].as_u64().unwrap();
            let [size, lanes, rows, pool] = ["size", "lanes", "rows", "pool"].map(number);
            let seed = row["seed"].as_str().unwrap().parse().unwrap();
            let order = Blocks::new(number("n"), seed, BlockShape { size, lanes, rows, pool }).unwrap();
            let pass = order.pass(0, 1);
            let samples: Vec<u64> = (0..order.n).map(|place| pass.sample(place)).collect();
            let mut turns = Turns::new(pass);
            assert!((0..).zip(&samples).all(|(place, sample)| turns.sample(place) == *sample));
            assert!((0..).zip(&samples).all(|(place, sample)| pass.place(*sample) == place));
            let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            let expected = row["epoch0_pass1"]["xxh3_of_u64_le"].as_str().unwrap();
            assert_eq!(format!("{:016x}", xxh3_64(&bytes)), expected, "{row}");
        }
    }
}
