//! The order by blocks: the recorded one, a bijection at every size, statistically random, and local for a rank.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use windrow_core::sampler::{BlockShape, Blocks, Mix, Order, Sampler, Shard, Stop, Turn};
use xxhash_rust::xxh3::xxh3_64;

use crate::sampler::chi_square;

/// Orders that a program of its own wrote, in plain Python.
fn recorded() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/orders/block_shuffle.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn shape(size: u64, lanes: u64, rows: u64, pool: u64) -> BlockShape {
    BlockShape { size, lanes, rows, pool }
}

fn blocks(n: u64, seed: u64, shape: BlockShape) -> Blocks {
    Blocks::new(n, seed, shape).unwrap()
}

/// The order of a row of the recorded ones.
fn of_row(row: &Value) -> Blocks {
    let number = |name: &str| row[name].as_u64().unwrap();
    let seed = row["seed"].as_str().unwrap().parse().unwrap();
    blocks(number("n"), seed, shape(number("size"), number("lanes"), number("rows"), number("pool")))
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn samples(order: &dyn Sampler, epoch: u64, positions: std::ops::Range<u64>) -> Vec<u64> {
    let mut turns = Vec::new();
    order.turns(epoch, positions, &mut turns);
    turns.into_iter().map(|turn| turn.sample).collect()
}

#[test]
fn whole_orders_are_those_recorded() {
    let recorded = recorded();
    let rows = recorded["whole"].as_array().unwrap();
    assert_eq!(rows.len(), 15);
    for row in rows {
        let order = of_row(row);
        let n = order.len(0).unwrap();
        assert_eq!(order.describe(), row["describe"].as_str().unwrap());
        let check = |name: &str, samples: Vec<u64>| {
            let expected = &row[name];
            assert_eq!(samples[..samples.len().min(48)], numbers(&expected["first"]), "{row} {name}");
            assert_eq!(
                samples[samples.len().saturating_sub(8)..],
                numbers(&expected["last"]),
                "{row} {name}"
            );
            let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            assert_eq!(format!("{:016x}", xxh3_64(&bytes)), expected["xxh3_of_u64_le"].as_str().unwrap());
        };
        check("epoch0_pass0", samples(&order, 0, 0..n));
        check("epoch1_pass0", samples(&order, 1, 0..n));
        check("epoch0_pass0", (0..n).map(|position| order.turn(0, position).sample).collect());
    }
}

#[test]
fn points_of_large_orders_are_those_recorded_both_ways() {
    let recorded = recorded();
    for row in recorded["points"].as_array().unwrap() {
        let order = of_row(row);
        for point in row["points"].as_array().unwrap() {
            let &[epoch, position, sample] = &numbers(point)[..] else { panic!("{point}") };
            assert_eq!(order.turn(epoch, position).sample, sample, "{row}");
            assert_eq!(samples(&order, epoch, position..position + 1), [sample], "{row}");
            assert_eq!(order.position(epoch, Turn { sample, pass: 0 }), Some(position), "{row}");
        }
    }
}

#[test]
fn ranks_have_the_rows_and_read_the_blocks_recorded() {
    let recorded = recorded();
    let order = blocks(4111, 123, shape(32, 8, 4, 4));
    for row in recorded["ranks"].as_array().unwrap() {
        let world_size = row["world"].as_u64().unwrap();
        let rows_of = |step: u64, rank: u64| {
            let rows = Shard::new(rank, world_size).unwrap().rows(32);
            samples(&order, 0, step * 32 + rows.start..step * 32 + rows.end)
        };
        let step = row["step"].as_u64().unwrap();
        for (rank, expected) in (0..).zip(row["rows"].as_array().unwrap()) {
            assert_eq!(rows_of(step, rank), numbers(expected));
        }
        let read: Vec<u64> = (0..world_size)
            .map(|rank| {
                let blocks: BTreeSet<u64> =
                    (0..123).flat_map(|step| rows_of(step, rank)).map(|sample| sample / 32).collect();
                blocks.len() as u64
            })
            .collect();
        assert_eq!(read, numbers(&row["blocks_read_in_whole_periods"]));
    }
}

#[test]
fn a_part_that_comes_again_has_another_order_each_time() {
    let order = Order::Blocks(shape(8, 3, 2, 2));
    let mix = Mix::in_orders(&[(100, 1.0, order)], 42, Stop::Never).unwrap();
    let passes: Vec<Vec<u64>> = (0..3).map(|pass| samples(&mix, 0, pass * 100..(pass + 1) * 100)).collect();
    for of_pass in &passes {
        assert_eq!(of_pass.iter().collect::<BTreeSet<_>>().len(), 100);
    }
    assert_ne!(passes[0], passes[1]);
    assert_ne!(passes[1], passes[2]);
    let onward: Vec<u64> = (0..300).map(|position| mix.onward(0, position).sample).collect();
    assert_eq!(onward, passes.concat());
}

#[test]
fn every_small_shape_has_every_sample_once() {
    for n in (0..40u64).chain([97, 128, 255]) {
        for size in [1, 2, 3, 7, 16, 50, u64::MAX] {
            for lanes in [1, 2, 3, 5].into_iter().filter(|lanes| *lanes <= n.div_ceil(size).max(1)) {
                for rows in [1, 2, 5, u64::MAX] {
                    for pool in [1, 2, 9, u64::MAX] {
                        let order = blocks(n, n * 31 + size % 100, shape(size, lanes, rows, pool));
                        let samples = samples(&order, 1, 0..n);
                        let mut seen = vec![false; n as usize];
                        for (position, &sample) in (0..).zip(&samples) {
                            let words = order.describe();
                            assert!(!std::mem::replace(&mut seen[sample as usize], true), "{n} {words}");
                            assert_eq!(order.turn(1, position).sample, sample, "{n} {words}");
                            let back = order.position(1, Turn { sample, pass: 0 });
                            assert_eq!(back, Some(position), "{n} {words}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn impossible_shapes_are_refused_by_name() {
    let refused = |n, shape| format!("{:#}", Blocks::new(n, 0, shape).unwrap_err());
    for (shape, name) in [
        (shape(0, 1, 1, 1), ".size(0)"),
        (shape(1, 0, 1, 1), ".lanes(0)"),
        (shape(1, 1, 0, 1), ".rows(0)"),
        (shape(1, 1, 1, 0), ".pool(0)"),
    ] {
        assert!(refused(10, shape).contains(name));
    }
    let message = refused(10, shape(4, 4, 1, 1));
    assert!(message.contains("4 lanes for 3 blocks") && message.contains("1 to 3"), "{message}");
    assert!(refused((1 << 63) + 1, shape(4, 4, 1, 1)).contains("2^63"));
    assert_eq!(blocks(1 << 63, 1, shape(4, 4, 1, 1)).len(0), Some(1 << 63));
}

#[test]
fn a_turn_that_never_comes_has_no_position_and_a_position_past_the_end_is_no_panic() {
    let order = blocks(10, 1, shape(4, 1, 1, 1));
    assert_eq!(order.position(0, Turn { sample: 10, pass: 0 }), None);
    assert_eq!(order.position(0, Turn { sample: 1, pass: 1 }), None);
    for n in [0, 10] {
        let order = blocks(n, 1, shape(4, 1, 1, u64::MAX));
        assert_eq!(order.turn(0, u64::MAX).sample, u64::MAX);
        assert_eq!(samples(&order, 0, n..n + 1), [n]);
        let mut read = Vec::new();
        assert!(order.blocks(0, n..u64::MAX, &mut read));
        assert!(read.is_empty());
    }
}

#[test]
fn a_sample_comes_anywhere() {
    // Over keys, where all blocks are full: each sample at each position, n × n cells with fixed margins.
    const KEYS: u64 = 100_000;
    for (n, shape) in [
        (24, shape(4, 2, 2, 2)),
        (24, shape(2, 3, 2, 2)),
        (20, shape(2, 3, 2, 1)),
        (12, shape(4, 1, 1, 2)),
        (24, shape(24, 1, 5, 1)),
        (8, shape(1, 2, 1, 3)),
        // A short block has no place of its own where all are mixed.
        (11, shape(3, 1, 4, 4)),
    ] {
        let mut cells = vec![0; (n * n) as usize];
        for key in 0..KEYS {
            for (position, sample) in (0..n).zip(samples(&blocks(n, key, shape), 0, 0..n)) {
                cells[(position * n + sample) as usize] += 1;
            }
        }
        let z = chi_square(&cells, ((n - 1) * (n - 1)) as usize);
        assert!(z.abs() < 5.0, "z = {z}, n = {n}, {shape:?}");
    }
}

#[test]
fn all_orders_that_can_be_are_equally_likely() {
    // 3 blocks of 2, two of them mixed, then the last: 3 · 4! · 2 orders.
    const KEYS: u64 = 100_000;
    for (n, shape, n_orders) in [
        (6, shape(2, 1, 1, 2), 144),
        (4, shape(2, 1, 1, 1), 8),
        // Two lanes of two blocks of 1 in turn: any order of four.
        (4, shape(1, 2, 1, 2), 24),
        // One block in each lane, row by row: either lane first, and either order within each.
        (4, shape(2, 2, 1, 1), 8),
        (5, shape(2, 1, 1, 3), 120),
    ] {
        let mut seen = std::collections::BTreeMap::new();
        for key in 0..KEYS {
            *seen.entry(samples(&blocks(n, key, shape), 0, 0..n)).or_insert(0u64) += 1;
        }
        assert_eq!(seen.len(), n_orders, "n = {n}, {shape:?}");
        let z = chi_square(&seen.into_values().collect::<Vec<_>>(), n_orders - 1);
        assert!(z.abs() < 5.0, "z = {z}, n = {n}, {shape:?}");
    }
}

/// Up to 400 samples in shapes that fit them.
fn small() -> impl Strategy<Value = (u64, BlockShape)> {
    (1..400u64, 1..40u64, 1..12u64, 1..9u64, 1..9u64)
        .prop_map(|(n, size, lanes, rows, pool)| (n, shape(size, lanes.min(n.div_ceil(size)), rows, pool)))
}

/// Up to 2^62 samples, each number over all its magnitudes.
fn large() -> impl Strategy<Value = (u64, BlockShape)> {
    let number = || (0..=62u32, any::<u64>()).prop_map(|(bits, number)| (number % (1 << bits)).max(1));
    (number(), number(), number(), number(), number())
        .prop_map(|(n, size, lanes, rows, pool)| (n, shape(size, lanes.min(n.div_ceil(size)), rows, pool)))
}

/// The blocks that positions need, by going through them: each pool whole, when a sample of it first comes.
fn needed(order: &Blocks, epoch: u64, positions: std::ops::Range<u64>) -> Vec<u64> {
    let mut read = Vec::new();
    for sample in samples(order, epoch, positions) {
        let block = sample / order.shape().size;
        if !read.contains(&block) {
            read.push(block);
        }
    }
    read
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn places_and_samples_are_each_others_inverse((n, shape) in large(), seed: u64, epoch in 0..5u64, at: u64) {
        let order = blocks(n, seed, shape);
        for position in [at % n, 0, n - 1, n / 2] {
            let turn = order.turn(epoch, position);
            prop_assert!(turn.sample < n);
            prop_assert_eq!(order.position(epoch, turn), Some(position));
        }
        let sample = at % n;
        let position = order.position(epoch, Turn { sample, pass: 0 }).unwrap();
        prop_assert!(position < n);
        prop_assert_eq!(order.turn(epoch, position).sample, sample);
    }

    #[test]
    fn turns_at_once_are_turns_one_by_one((n, shape) in small(), seed: u64, cut in 0..400u64) {
        let order = blocks(n, seed, shape);
        let cut = cut.min(n);
        let mut resumed = samples(&order, 3, 0..cut);
        resumed.extend(samples(&order, 3, cut..n));
        let one_by_one: Vec<u64> = (0..n).map(|position| order.turn(3, position).sample).collect();
        prop_assert_eq!(resumed, one_by_one);
    }

    #[test]
    fn the_blocks_of_a_stretch_are_those_it_draws_from(
        (n, shape) in small(), seed: u64, from in 0..400u64, rows in 1..100u64,
    ) {
        let order = blocks(n, seed, shape);
        let positions = from.min(n - 1)..(from.min(n - 1) + rows).min(n);
        let mut read = Vec::new();
        prop_assert!(order.blocks(2, positions.clone(), &mut read));
        let numbers: Vec<u64> = read.iter().map(|samples| samples.start / shape.size).collect();
        prop_assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), numbers.len(), "a block comes once");
        for samples in &read {
            prop_assert_eq!(samples.start % shape.size, 0);
            prop_assert_eq!(samples.end, (samples.start + shape.size).min(n));
        }
        // Each block that is drawn from is there, and pools come in the order in which they are first needed: no block comes
        // before one of a pool that is needed earlier.
        let drawn = needed(&order, 2, positions);
        let places: Vec<Option<usize>> =
            drawn.iter().map(|block| numbers.iter().position(|number| number == block)).collect();
        prop_assert!(places.iter().all(Option::is_some), "{:?} of {:?}", drawn, numbers);
        let pools_before = |place: usize| place as u64 / shape.pool;
        if (n.div_ceil(shape.size)).is_multiple_of(shape.lanes * shape.pool) {
            // All pools have the same number of blocks: runs of the list.
            let mut pools: Vec<u64> = places.iter().flatten().map(|place| pools_before(*place)).collect();
            let mut first_seen = Vec::new();
            pools.retain(|pool| !first_seen.contains(pool) && { first_seen.push(*pool); true });
            prop_assert!(pools.is_sorted());
            prop_assert_eq!(numbers.len() as u64, pools.len() as u64 * shape.pool);
        }
    }

    #[test]
    fn a_lane_has_the_same_blocks_in_every_epoch((n, shape) in small(), seed: u64) {
        let order = blocks(n, seed, shape);
        let round = shape.lanes * shape.rows;
        let of_first_lane = |epoch: u64| -> BTreeSet<u64> {
            let mut read = Vec::new();
            let rounds = n / round;
            for k in 0..rounds {
                order.blocks(epoch, k * round..k * round + shape.rows, &mut read);
            }
            read.into_iter().map(|samples| samples.start).collect()
        };
        if n.is_multiple_of(shape.size * shape.lanes * shape.rows) {
            prop_assert_eq!(of_first_lane(0), of_first_lane(1));
            prop_assert_eq!(of_first_lane(0).len() as u64, n / shape.size / shape.lanes);
        }
    }

    #[test]
    fn a_mixture_of_blocks_keeps_each_part_whole(
        (n, of_first) in small(), (m, of_second) in small(), seed: u64, from in 0..900u64, rows in 1..60u64,
    ) {
        let parts = [(n, 3.0, Order::Blocks(of_first)), (m, 1.0, Order::Blocks(of_second))];
        let mix = Mix::in_orders(&parts, seed, Stop::Never).unwrap();
        let mut turns = Vec::new();
        mix.turns(1, 0..1500, &mut turns);
        for (position, turn) in (0..).zip(&turns) {
            prop_assert_eq!(mix.turn(1, position), *turn);
            prop_assert_eq!(mix.position(1, *turn), Some(position));
        }
        let mut seen = HashSet::new();
        prop_assert!(turns.iter().all(|turn| seen.insert((turn.sample, turn.pass))));
        let mut read = Vec::new();
        prop_assert!(mix.blocks(1, from..from + rows, &mut read));
        for turn in &turns[from as usize..(from + rows) as usize] {
            prop_assert!(read.iter().any(|samples| samples.contains(&turn.sample)));
        }
        prop_assert!(read.iter().all(|samples| samples.end <= n || samples.start >= n));
    }
}

#[test]
fn the_words_of_a_mixture_name_each_order() {
    let order = |pool| Order::Blocks(shape(2, 1, 1, pool));
    let words = |orders: [Order; 2]| {
        let parts = [(5, 0.7, orders[0]), (9, 0.3, orders[1])];
        Mix::in_orders(&parts, 1, Stop::First).unwrap().describe()
    };
    let one = "shuffle:block-v1(size=2,lanes=1,rows=1,pool=3)";
    assert_eq!(
        words([order(3), order(3)]),
        format!("mix-v1:{one},stop=first,slots=1030,len*slots=5*721+9*309")
    );
    assert_eq!(
        words([order(3), Order::Shuffle]),
        format!("mix-v1:{one}+shuffle:feistel-v1,stop=first,slots=1030,len*slots=5*721+9*309")
    );
    let mix = Mix::in_orders(&[(5, 1.0, order(3)), (5, 1.0, Order::Shuffle)], 1, Stop::First).unwrap();
    assert!(!mix.blocks(0, 0..4, &mut Vec::new()), "a part that draws from everywhere has no blocks");
}
