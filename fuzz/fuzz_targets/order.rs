//! Orders of any size at any position: every turn leads back to its position, and ranks share a step without a gap.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::plan::{Cursor, LastBatch, Steps};
use windrow_core::sampler::{BlockShape, Blocks, Mix, Sampler, Sequential, Shard, Shuffle, Stop};

#[derive(Arbitrary, Debug)]
struct Input {
    seed: u64,
    order: Order,
    epoch: u64,
    positions: [u64; 3],
    global_batch_size: u64,
    world_size: u64,
    rank: u64,
    last: u8,
    epochs: Option<u64>,
}

#[derive(Arbitrary, Debug)]
enum Order {
    Sequential(u64),
    Shuffle(u64),
    Blocks { len: u64, shape: [u64; 4] },
    SmallBlocks { len: u16, shape: [u8; 4] },
    Mix { parts: Vec<(u64, f64)>, shuffle: bool, stop: u8 },
    SmallMix { parts: Vec<(u8, u8)>, shuffle: bool, stop: u8 },
}

fuzz_target!(|input: Input| {
    let stop = |n: u8| [Stop::First, Stop::All, Stop::Never][usize::from(n) % 3];
    let mix = |parts: Vec<(u64, f64)>, shuffle, n| {
        Mix::new(&parts[..parts.len().min(20)], shuffle, input.seed, stop(n)).ok()
    };
    let blocks = |len, [size, lanes, rows, pool]: [u64; 4]| {
        let order = Blocks::new(len, input.seed, BlockShape { size, lanes, rows, pool }).ok()?;
        Some(Arc::new(order) as Arc<dyn Sampler>)
    };
    let sampler: Option<Arc<dyn Sampler>> = match input.order {
        Order::Sequential(len) => Some(Arc::new(Sequential::new(len))),
        Order::Shuffle(len) => Some(Arc::new(Shuffle::new(len, input.seed))),
        Order::Blocks { len, shape } => blocks(len, shape),
        Order::SmallBlocks { len, shape } => blocks(len.into(), shape.map(u64::from)),
        Order::Mix { parts, shuffle, stop } => mix(parts, shuffle, stop).map(|mix| Arc::new(mix) as _),
        Order::SmallMix { parts, shuffle, stop } => {
            let parts = parts.into_iter().map(|(len, weight)| (len.into(), weight.into())).collect();
            mix(parts, shuffle, stop).map(|mix| Arc::new(mix) as _)
        }
    };
    let Some(sampler) = sampler else { return };
    check(sampler.as_ref(), input.epoch, &input.positions);
    let Ok(shard) = Shard::new(input.rank, input.world_size) else { return };
    let last = [LastBatch::Drop, LastBatch::Keep, LastBatch::Repeat][usize::from(input.last) % 3];
    let (global_batch_size, epochs) = (input.global_batch_size, input.epochs);
    let steps = Steps { global_batch_size, shard, last, epochs, micro_batches: 1, is_balanced: false };
    let mut cursor = Cursor::at(input.epoch, input.positions[0]);
    if steps.check(sampler.as_ref(), cursor).is_err() {
        return;
    }
    for _ in 0..4 {
        let Some(step) = steps.next(sampler.as_ref(), cursor) else { return };
        let own = step.in_order();
        assert!(step.all.start <= own.start && own.start <= own.end && own.end <= step.all.end);
        assert!(sampler.len(step.epoch).is_none_or(|len| step.after().samples <= len));
        assert!(shard.world_size() > 1 || own == step.all);
        cursor = step.after();
    }
});

fn check(sampler: &dyn Sampler, epoch: u64, positions: &[u64]) {
    let len = sampler.len(epoch);
    if len == Some(0) {
        return;
    }
    for position in positions.iter().flat_map(|p| [*p, p % 100, u64::MAX - p % 100]) {
        let position = len.map_or(position, |len| position % len);
        let turn = sampler.turn(epoch, position);
        let back = sampler.position(epoch, turn);
        assert_eq!(back, Some(position), "{turn:?} of {}", sampler.describe());
        let mut turns = Vec::new();
        let end = position.saturating_add(3).min(len.unwrap_or(u64::MAX));
        sampler.turns(epoch, position..end, &mut turns);
        assert!(turns.first().is_none_or(|first| *first == turn));
        assert_eq!(turns.len() as u64, end - position);
    }
}
