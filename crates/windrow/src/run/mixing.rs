//! How well an order mixes neighbours, from the order alone: no data is read.

use std::collections::BTreeMap;

use serde::Serialize;
use windrow_core::Result;
use windrow_core::sampler::{BlockShape, Order, Turn};

use crate::order::blocks::Blocks;
use crate::order::ordered::{bytes_of, once};
use crate::run::builder::LoaderBuilder;
use crate::run::padding::padding;
use crate::run::waiting::Waiting;

/// Batches that are looked at, spread over an epoch.
const BATCHES: u64 = 64;

/// Positions whose order is worked out for them at most, but for a few batches.
const POSITIONS: u64 = 1 << 19;

/// Pairs of neighbours that are looked at.
const PAIRS: u64 = 4096;

/// Blocks whose excess variance is above this are warned of.
const MOST_EXCESS: f64 = 4.0;

/// How well the order of a view, or of a part of a mixture, mixes neighbours. Blocks are those of the order; where it has none,
/// runs of samples of 8 MiB.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Mixing {
    /// The order.
    pub order: String,
    /// Rows of a batch, over all ranks, on average; where each batch is of one part, of those that are of it.
    pub rows: f64,
    /// Samples of a block.
    pub block_size: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// How many blocks of equal weight would give a batch as much variety: G² / E[Σ c²], of c rows of a block in a batch of G.
    /// At most G and the number of blocks.
    pub effective_blocks: f64,
    /// By what the variance of a batch's mean is multiplied, for a property that all samples of a block share; 1 is that of a
    /// global shuffle. For a property with share ρ between blocks: 1 + ρ · (this − 1).
    pub excess_variance: f64,
    /// Samples over which a block is spread.
    pub reach: u64,
    /// The mean distance in the order of samples i and i + 1 of a block, where 1 is that of a global shuffle.
    pub neighbours_apart: f64,
    /// With a budget of tokens: the part of the positions of the view's rows that is padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding_share: Option<f64>,
    /// What that would be in batches of random rows, as many as a batch has on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding_share_at_random: Option<f64>,
    /// How long ranks wait for the dearest of them, of the whole batch, where rows are dealt to ranks by what they cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
}

/// What was counted of one view.
#[derive(Default)]
struct Counted {
    rows: f64,
    rows_squared: f64,
    blocks_squared: f64,
    /// Batches that have rows of it.
    batches: u64,
}

impl LoaderBuilder {
    /// How well the order mixes, for each view in order: over 64 batches of the first epoch, fewer of large ones, or all if it has fewer.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.bin");
    /// # windrow::prepare::dummy(&path, 1000, 100_001, 0, false)?;
    /// use windrow::Blocks;
    ///
    /// let loader = windrow::open(&path)?.pack(10)?.loader().global_batch_size(64).rank(0, 1);
    /// let near = &loader.clone().shuffle(Blocks::new().size(10)).mixing()?[0];
    /// assert!(near.effective_blocks > 40.0 && near.effective_blocks < 64.0);
    /// assert!(loader.shuffle(false).mixing()?[0].effective_blocks < near.effective_blocks);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`LoaderBuilder::plan`]; what says how much rows cost.
    pub fn mixing(&self) -> Result<Vec<Mixing>> {
        let mut found = self.mixing_of_order()?;
        let waiting = self.waiting()?;
        found.iter_mut().for_each(|of| of.waiting = waiting.clone());
        Ok(found)
    }

    fn mixing_of_order(&self) -> Result<Vec<Mixing>> {
        let (orders, global_batch) = (self.orders()?, self.global_batch()?.max(1));
        let plan = self.plan()?;
        let starts: Vec<u64> = (self.parts().iter())
            .scan(0, |start, samples| Some(std::mem::replace(start, *start + samples.len())))
            .collect();
        let sizes: Vec<u64> = (orders.iter().zip(self.parts()))
            .map(|(order, samples)| match order {
                Order::Blocks(shape) => shape.size,
                _ => Blocks::new().shape(samples.len(), bytes_of(samples), global_batch).size,
            })
            .collect();
        let part_of = |sample: u64| starts.partition_point(|start| *start <= sample) - 1;

        let sampler = plan.sampler();
        let len = sampler.len(0).unwrap_or(u64::MAX);
        let in_epoch = (len / global_batch).max(1);
        let budget = self.budget()?;
        // Within a budget a batch is known when all rows are sorted that are sorted with it.
        let together = budget.as_ref().map_or(global_batch, |(budget, _)| budget.pool).max(1);
        let n_batches = in_epoch.min(BATCHES).min((POSITIONS / together).max(4));
        let mut counted: Vec<Counted> = starts.iter().map(|_| Counted::default()).collect();
        let mut turns = Vec::new();
        for batch in 0..n_batches {
            let start =
                (u128::from(batch) * u128::from(in_epoch) / u128::from(n_batches)) as u64 * global_batch;
            turns.clear();
            let positions = match sampler.batches() {
                Some(batches) => batches.around(0, start),
                None => start..start.saturating_add(global_batch).min(len),
            };
            sampler.turns(0, positions, &mut turns);
            let mut rows: BTreeMap<(usize, u64), u64> = BTreeMap::new();
            for turn in &turns {
                let part = part_of(turn.sample);
                *rows.entry((part, (turn.sample - starts[part]) / sizes[part])).or_default() += 1;
            }
            let mut of_parts = vec![0u64; starts.len()];
            for ((part, _), n) in rows {
                of_parts[part] += n;
                counted[part].blocks_squared += (n as f64).powi(2);
            }
            for (counted, n) in counted.iter_mut().zip(of_parts) {
                counted.rows += n as f64;
                counted.rows_squared += (n as f64).powi(2);
                counted.batches += u64::from(n > 0);
            }
        }
        let padding = match budget {
            Some((_, lengths)) => padding(&plan, &lengths, global_batch)?,
            None => None,
        };
        let padding = |number: usize| padding.as_ref().and_then(|all| all.get(number));
        let mixing = orders.iter().zip(self.parts()).zip(counted).enumerate();
        let mixing = mixing.map(|(number, ((order, samples), counted))| {
            let (n, size) = (samples.len(), sizes[number]);
            let position = |sample| sampler.position(0, Turn { sample: starts[number] + sample, pass: 0 });
            let of_all = if self.is_by_part() { counted.batches.max(1) } else { n_batches };
            let rows = counted.rows / of_all as f64;
            let share = counted.rows / n_batches as f64 / global_batch as f64;
            let apart = apart(n, size, &position) * share;
            Ok(Mixing {
                order: order.of(n, 0)?.describe(),
                rows,
                block_size: size,
                blocks: n.div_ceil(size),
                effective_blocks: counted.rows_squared / counted.blocks_squared.max(1.0),
                excess_variance: excess(&counted, n, size, of_all),
                reach: match order {
                    Order::Blocks(shape) => {
                        shape.lanes.saturating_mul(shape.pool).saturating_mul(shape.size).min(n)
                    }
                    Order::Shuffle => n,
                    Order::Sequential => size.min(n),
                },
                neighbours_apart: apart / (n as f64 / 3.0),
                padding_share: padding(number).map(|padding| padding.share),
                padding_share_at_random: padding(number).map(|padding| padding.at_random),
                waiting: None,
            })
        });
        mixing.collect()
    }
}

impl LoaderBuilder {
    /// Warns, once, of blocks that mix so badly that a model may learn less from each batch, and names what halves that.
    pub(crate) fn tell_of_mixing(&self, orders: &[Order]) -> Result<()> {
        let rows = self.global_batch()?;
        // By its formula, which is near enough to leave most orders uncounted.
        let may_excess = |order: &Order| match order {
            Order::Blocks(shape) => rows / shape.lanes.saturating_mul(shape.pool).max(1) >= 2,
            Order::Sequential | Order::Shuffle => false,
        };
        if !orders.iter().any(may_excess) {
            return Ok(());
        }
        let is_one = orders.len() == 1;
        for (order, found) in orders.iter().zip(self.mixing_of_order()?) {
            let (Order::Blocks(shape), true) = (order, found.excess_variance > MOST_EXCESS) else { continue };
            let halved = if is_one { self.halved(shape, found.excess_variance)? } else { None };
            let hint =
                halved.unwrap_or_else(|| "smaller blocks (@size@) or a larger @pool@ mix better".to_string());
            let text = format!(
                "blocks of {} samples, {} of which are mixed at a time, mix badly: the mean of a batch varies by {:.1} times what it does in a \
                 global shuffle (excess variance); {hint}",
                shape.size,
                shape.lanes.saturating_mul(shape.pool).min(found.blocks),
                found.excess_variance
            );
            once(log::Level::Warn, text);
        }
        Ok(())
    }

    // What about halves the excess: smaller blocks, or where their pool was given, a larger one.
    fn halved(&self, shape: &BlockShape, excess: f64) -> Result<Option<String>> {
        let Some(&given) = self.given_blocks() else { return Ok(None) };
        let (size, pool) = ((shape.size / 2).max(1), shape.pool.saturating_mul(2));
        let smaller = (given.size(size), format!("@size={size}@"));
        let larger = (given.size(shape.size).pool(pool), format!("@pool={pool}@"));
        for (blocks, name) in [smaller, larger] {
            let other = self.clone().shuffle(blocks).mixing_of_order()?;
            let other = other.first().map_or(excess, |found| found.excess_variance);
            if other - 1.0 <= 0.6 * (excess - 1.0) {
                return Ok(Some(format!("{name} makes that {other:.1}")));
            }
        }
        Ok(None)
    }
}

// Two rows of a batch share a block more often than two samples do.
fn excess(counted: &Counted, n: u64, size: u64, n_batches: u64) -> f64 {
    let pairs = counted.rows_squared - counted.rows;
    let (whole, rest) = ((n / size) as f64, (n % size) as f64);
    let pairs_of = |samples: f64| samples * (samples - 1.0);
    let usual = (whole * pairs_of(size as f64) + pairs_of(rest).max(0.0)) / pairs_of(n as f64).max(1.0);
    if pairs <= 0.0 || usual >= 1.0 {
        return 1.0;
    }
    let shared = (counted.blocks_squared - counted.rows) / pairs;
    let rows = counted.rows / n_batches as f64;
    (1.0 + (rows - 1.0) * (shared - usual) / (1.0 - usual)).max(0.0)
}

// The mean distance of neighbours of a block, in positions.
fn apart(n: u64, size: u64, position: &dyn Fn(u64) -> Option<u64>) -> f64 {
    let n_pairs = n.saturating_sub(1).min(PAIRS);
    let (mut sum, mut found) = (0.0, 0.0);
    for pair in 0..n_pairs {
        let sample = (u128::from(pair) * u128::from(n - 1) / u128::from(n_pairs)) as u64;
        if (sample + 1).is_multiple_of(size) {
            continue;
        }
        // A mixture may end before they come.
        if let (Some(one), Some(next)) = (position(sample), position(sample + 1)) {
            sum += one.abs_diff(next) as f64;
            found += 1.0;
        }
    }
    if found > 0.0 { sum / found } else { 0.0 }
}
