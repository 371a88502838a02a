//! Ten thousand ranks that read 10¹² tokens in samples of 4,096: each computes its own rows, and together they read each
//! sample once.

use windrow_core::plan::{LastBatch, Steps};
use windrow_core::sampler::{BlockShape, Blocks, Sampler, Shard, Shuffle, Turn};

use super::alone::{alone, most_memory};

const RANKS: u64 = 10_000;
const SAMPLES: u64 = 1_000_000_000_000 / 4096;
const STEPS: u64 = 24_414;
const LEFT: u64 = 625;

/// What one rank knows: its place among the ranks, the order, and the samples of its next batch.
struct Rank {
    steps: Steps,
    order: Box<dyn Sampler>,
    turns: Vec<Turn>,
}

impl Rank {
    fn new(rank: u64, order: impl Sampler + 'static) -> Rank {
        let shard = Shard::new(rank, RANKS).unwrap();
        let steps = Steps {
            global_batch_size: RANKS,
            shard,
            last: LastBatch::Drop,
            epochs: Some(1),
            micro_batches: 1,
            is_balanced: false,
        };
        Rank { steps, order: Box::new(order), turns: Vec::new() }
    }

    /// The samples of this step, each from its position in the order.
    fn read(&mut self, step: u64) -> &[Turn] {
        let step = self.steps.find(&*self.order, Some(0), step).unwrap();
        self.turns.clear();
        self.order.turns(0, step.in_order(), &mut self.turns);
        &self.turns
    }
}

fn all(order: impl Sampler + Clone + 'static) -> Vec<Rank> {
    (0..RANKS).map(|rank| Rank::new(rank, order.clone())).collect()
}

fn blocks() -> Blocks {
    Blocks::new(SAMPLES, 7, BlockShape { size: 512, lanes: 16, rows: 625, pool: 2500 }).unwrap()
}

/// That the ranks read all positions of these steps, each by one of them, and that no sample is at two positions.
fn check(order: impl Sampler + Clone + 'static, steps: impl IntoIterator<Item = u64>) {
    let mut ranks = all(order.clone());
    for step in steps {
        let mut position = step * RANKS;
        for rank in &mut ranks {
            for turn in rank.read(step) {
                // What has an inverse comes once.
                assert_eq!(order.position(0, *turn), Some(position));
                position += 1;
            }
        }
        assert_eq!(position, (step + 1) * RANKS, "the ranks read the whole batch of step {step}");
    }
}

#[test]
fn ten_thousand_ranks_read_each_sample_of_a_shuffle_once() {
    assert_eq!(SAMPLES, STEPS * RANKS + LEFT);
    let order = Shuffle::new(SAMPLES, 7);
    check(order, (0..STEPS).step_by(997).chain([1, STEPS - 1]));
    for number in [0, RANKS / 2, RANKS - 1] {
        let mut rank = Rank::new(number, order);
        let read = (0..STEPS).map(|step| order.position(0, rank.read(step)[0]).unwrap());
        assert!(read.eq((0..STEPS).map(|step| step * RANKS + number)));
        assert_eq!(rank.steps.in_epoch(&order, 0), Some(STEPS));
        assert!(rank.steps.find(&order, Some(0), STEPS).is_err(), "the {LEFT} left are no batch");
    }
}

#[test]
fn ten_thousand_ranks_read_each_sample_of_blocks_once() {
    check(blocks(), [0, 1, STEPS / 2, STEPS - 1]);
}

#[test]
fn the_order_takes_less_than_a_kilobyte_of_memory_a_rank() {
    alone("ranks::the_order_takes_less_than_a_kilobyte_of_memory_a_rank", |_| {
        let shuffled = || all(Shuffle::new(SAMPLES, 7));
        for (name, make) in [("shuffle", &shuffled as &dyn Fn() -> Vec<Rank>), ("blocks", &|| all(blocks()))]
        {
            let (ranks, most) = most_memory(|| {
                let mut ranks = make();
                for rank in &mut ranks {
                    // At the start, in the middle and at the end: what was read before leaves nothing behind.
                    for step in [0, STEPS / 2, STEPS - 1] {
                        assert_eq!(rank.read(step).len(), 1);
                    }
                }
                ranks
            });
            assert!(most < ranks.len() * 1000, "{name}: {} bytes a rank", most / ranks.len());
        }
    });
}
