//! An order whose batches have a budget of tokens: rows of about the same length come together, as many as it holds.

mod lengths;
mod rule;

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::lengths::RowLengths;
pub use self::rule::{Budget, pool_of};
use super::{Batches, Change, Described, Sampler, Turn};
use crate::error::{Error, Result};
use crate::per_process::PerProcess;

/// Pools that are kept: of threads that assemble neighbouring batches, and of what is read ahead.
const POOLS: usize = 8;

/// Epochs whose batches are kept counted.
const EPOCHS: usize = 2;

/// Another order, cut into batches by the lengths of their rows: rows times the longest is within a [`Budget`], and the number of
/// rows a multiple of another number, so that ranks get equally many.
///
/// Of each `pool` positions of the other order the rows are sorted by length and cut into batches, which come in random order. What
/// the last pool has more than a multiple comes at the very end.
///
/// Memory: 4 bytes a sample, 16 bytes a position of some pools, and 8 bytes a pool where batches are counted.
pub struct Budgeted {
    inner: Arc<dyn Sampler>,
    lengths: Arc<RowLengths>,
    budget: Budget,
    seed: u64,
    // A child of a fork keeps its own, for somebody may have held these locks.
    pools: PerProcess<Mutex<Vec<Arc<Pool>>>>,
    counted: PerProcess<Mutex<Vec<Counted>>>,
}

/// The positions of a pool as they come.
#[derive(Debug)]
struct Pool {
    epoch: u64,
    number: u64,
    turns: Vec<Turn>,
    /// Where its batches end, in positions of the pool.
    ends: Vec<u32>,
}

/// The batches in the first pools of an epoch.
#[derive(Debug)]
struct Counted {
    epoch: u64,
    /// Of all pools up to each one.
    batches: Vec<u64>,
}

impl Budgeted {
    /// The order `inner` in batches of a budget, of rows with these lengths.
    ///
    /// # Errors
    /// `Config` for numbers of the budget that do not go together, a row that is longer than it allows, which is named by its sample as
    /// the record of the error, and for a pool of 2^32 positions.
    pub fn new(
        inner: Arc<dyn Sampler>,
        lengths: Arc<RowLengths>,
        budget: Budget,
        seed: u64,
    ) -> Result<Budgeted> {
        let Budget { tokens, multiple, pool } = budget;
        if pool == 0 || !pool.is_multiple_of(multiple.get()) {
            return Err(Error::config(format!(
                "a pool of {pool} rows, and batches of multiples of {multiple}"
            ))
            .field("pool")
            .hint(format!(
                "give a multiple of {multiple}, as @pool={}@",
                pool.max(1).checked_next_multiple_of(multiple.get()).unwrap_or(multiple.get())
            )));
        }
        if pool.min(inner.len(0).unwrap_or(u64::MAX)) > u64::from(u32::MAX) {
            return Err(Error::config(format!("a pool of {pool} rows, at most 2^32 are sorted together"))
                .field("pool")
                .hint("give a smaller @pool@, or a smaller @max_tokens@"));
        }
        if let Some((sample, longest)) = lengths.longest() {
            let needed = u128::from(longest) * u128::from(multiple.get());
            if needed > u128::from(tokens) {
                let rows = match multiple.get() {
                    1 => String::new(),
                    rows => format!("; a batch has {rows} rows at least"),
                };
                return Err(Error::config(format!(
                    "a row of length {longest} does not fit @max_tokens={tokens}@{rows}"
                ))
                .field("max_tokens")
                .record(sample)
                .hint(format!("give @max_tokens={needed}@ or more, or cut rows shorter")));
            }
        }
        let (pools, counted) = (PerProcess::default(), PerProcess::default());
        Ok(Budgeted { inner, lengths, budget, seed, pools, counted })
    }

    // The positions of a pool.
    fn positions(&self, epoch: u64, pool: u64) -> Range<u64> {
        let len = self.inner.len(epoch).unwrap_or(u64::MAX);
        let start = pool.saturating_mul(self.budget.pool).min(len);
        start..start.saturating_add(self.budget.pool).min(len)
    }

    // The other order's turns of a pool, and the lengths of their rows.
    fn rows(&self, epoch: u64, pool: u64) -> (Vec<Turn>, Vec<u32>) {
        let mut turns = Vec::new();
        self.inner.turns(epoch, self.positions(epoch, pool), &mut turns);
        let lengths = turns.iter().map(|turn| self.lengths.of(turn.sample)).collect();
        (turns, lengths)
    }

    fn pool(&self, epoch: u64, number: u64) -> Arc<Pool> {
        let is_it = |pool: &Arc<Pool>| (pool.epoch, pool.number) == (epoch, number);
        {
            let mut kept = held(self.pools.get());
            if let Some(at) = kept.iter().position(is_it) {
                kept[..=at].rotate_right(1);
                return kept[0].clone();
            }
        }
        let (turns, lengths) = self.rows(epoch, number);
        let cut = self.budget.cut(&lengths, self.seed, epoch, number);
        let turns = cut.places.iter().map(|place| turns[*place as usize]).collect();
        let made = Arc::new(Pool { epoch, number, turns, ends: cut.ends });
        let mut kept = held(self.pools.get());
        kept.retain(|pool| !is_it(pool));
        kept.truncate(POOLS - 1);
        kept.insert(0, made.clone());
        made
    }

    // Goes through what is counted of an epoch, from its first pool on, and counts more as long as `is_short` says so of the pools that
    // are counted and the batches in them.
    fn counted<T>(
        &self,
        epoch: u64,
        is_short: impl Fn(u64, u64) -> bool,
        ask: impl FnOnce(&[u64]) -> T,
    ) -> T {
        let mut all = held(self.counted.get());
        let mut counted = match all.iter().position(|counted| counted.epoch == epoch) {
            Some(at) => all.remove(at),
            None => Counted { epoch, batches: Vec::new() },
        };
        loop {
            let pool = counted.batches.len() as u64;
            let so_far = counted.batches.last().copied().unwrap_or(0);
            if !is_short(pool, so_far) || self.positions(epoch, pool).is_empty() {
                break;
            }
            let (_, lengths) = self.rows(epoch, pool);
            counted.batches.push(so_far + self.budget.count(&lengths));
        }
        let answer = ask(&counted.batches);
        all.truncate(EPOCHS - 1);
        all.insert(0, counted);
        answer
    }

    fn words(&self) -> String {
        let Budget { tokens, multiple, pool } = self.budget;
        format!("+budget-v1(tokens={tokens},multiple={multiple},pool={pool}{})", self.lengths.words())
    }
}

impl Sampler for Budgeted {
    fn len(&self, epoch: u64) -> Option<u64> {
        self.inner.len(epoch)
    }

    fn epochs(&self) -> Option<u64> {
        self.inner.epochs()
    }

    fn turn(&self, epoch: u64, position: u64) -> Turn {
        let pool = self.pool(epoch, position / self.budget.pool);
        pool.turns[(position % self.budget.pool) as usize]
    }

    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        let mut at = positions.start;
        while at < positions.end {
            let pool = self.pool(epoch, at / self.budget.pool);
            let first = (at % self.budget.pool) as usize;
            let n = (positions.end - at).min(pool.turns.len().saturating_sub(first) as u64);
            if n == 0 {
                return;
            }
            out.extend_from_slice(&pool.turns[first..first + n as usize]);
            at += n;
        }
    }

    fn position(&self, epoch: u64, turn: Turn) -> Option<u64> {
        let pool = self.inner.position(epoch, turn)? / self.budget.pool;
        let at = self.pool(epoch, pool).turns.iter().position(|other| *other == turn)?;
        Some(pool * self.budget.pool + at as u64)
    }

    fn blocks(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Range<u64>>) -> bool {
        if positions.is_empty() {
            return self.inner.blocks(epoch, positions, out);
        }
        let first = self.positions(epoch, positions.start / self.budget.pool);
        let last = self.positions(epoch, (positions.end - 1) / self.budget.pool);
        self.inner.blocks(epoch, first.start..last.end, out)
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    fn samples_of_views(&self, positions: u64) -> Vec<u64> {
        self.inner.samples_of_views(positions)
    }

    fn samples_of_views_in(&self, epoch: u64, positions: u64) -> Vec<u64> {
        let pool = self.budget.pool;
        let mut found = self.inner.samples_of_views_in(epoch, positions / pool * pool);
        let of_pool = (positions % pool) as usize;
        if of_pool > 0 && found.len() == self.lengths.n_views() {
            for turn in self.pool(epoch, positions / pool).turns.iter().take(of_pool) {
                found[self.lengths.view_of(turn.sample)] += 1;
            }
        }
        found
    }

    fn describe(&self) -> String {
        self.inner.describe() + &self.words()
    }

    fn described(&self, before: u64) -> Described {
        // Batches before a position are of rows of all its pool.
        let pool_end = before.checked_next_multiple_of(self.budget.pool).unwrap_or(u64::MAX);
        let mut described = self.inner.described(pool_end);
        // Where an order that changes ends within the pool, that decides it too.
        if let Some(len) = self.inner.len(0).filter(|len| before < u64::MAX && *len < pool_end)
            && !described.changes.is_empty()
        {
            described.changes.push(Change { start: len, hash: 0 });
        }
        let words = self.words();
        described.order += &words;
        described.unchanged = described.unchanged.map(|unchanged| unchanged + &words);
        described
    }
}

impl Batches for Budgeted {
    fn multiple(&self) -> NonZeroU64 {
        self.budget.multiple
    }

    fn around(&self, epoch: u64, position: u64) -> Range<u64> {
        let (pool, at) = (position / self.budget.pool, position % self.budget.pool);
        let ends = &self.pool(epoch, pool).ends;
        let batch = ends.partition_point(|end| u64::from(*end) <= at);
        let start = if batch == 0 { 0 } else { ends[batch - 1] };
        let end = ends.get(batch).copied().map_or(at + 1, u64::from);
        let first = pool * self.budget.pool;
        first + u64::from(start)..first + end
    }

    fn before(&self, epoch: u64, position: u64) -> u64 {
        let (pool, at) = (position / self.budget.pool, position % self.budget.pool);
        let of_pools = match pool {
            0 => 0,
            pool => self.counted(
                epoch,
                |counted, _| counted < pool,
                |batches| {
                    let of_pools = batches.get(..pool as usize).unwrap_or(batches);
                    of_pools.last().copied().unwrap_or(0)
                },
            ),
        };
        if at == 0 {
            return of_pools;
        }
        let ends = &self.pool(epoch, pool).ends;
        let begun = ends.partition_point(|end| u64::from(*end) < at) + 1;
        of_pools + begun.min(ends.len()) as u64
    }

    fn batch(&self, epoch: u64, number: u64) -> Option<Range<u64>> {
        let (pool, before) = self.counted(
            epoch,
            |_, batches| batches <= number,
            |batches| {
                let pool = batches.partition_point(|batches| *batches <= number);
                (pool < batches.len()).then(|| (pool as u64, if pool == 0 { 0 } else { batches[pool - 1] }))
            },
        )?;
        let ends = &self.pool(epoch, pool).ends;
        let at = usize::try_from(number - before).ok()?;
        let start = if at == 0 { 0 } else { *ends.get(at - 1)? };
        let first = pool * self.budget.pool;
        Some(first + u64::from(start)..first + u64::from(*ends.get(at)?))
    }
}

// What it guards is whole between statements.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
