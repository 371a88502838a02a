//! The rule of token budgets: which rows of a pool make a batch, and in which order batches come. Whole numbers only, so that
//! all ranks agree.

use std::num::NonZeroU64;

use crate::permutation::Permutation;
use crate::record::keyed_hash;

/// Sets the key of the order of batches apart from every other use of the hash.
const BUDGET: u64 = 0x6275_6467_6574_3100;

/// About how many batches are sorted together where nobody says.
const BATCHES: u128 = 50;

/// How long batches are: rows times the longest of them is at most `tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Rows of a batch over all ranks times the longest of them, at most.
    pub tokens: u64,
    /// Rows of a batch are a multiple of this.
    pub multiple: NonZeroU64,
    /// Positions whose rows are sorted together: a multiple of `multiple`.
    pub pool: u64,
}

/// Positions that about fifty batches take, of `n` rows that are `total` long together: a multiple of `multiple`.
///
/// ```
/// use std::num::NonZeroU64;
/// use windrow_core::sampler::pool_of;
///
/// // Rows of 400 on average: about 20 of them make 8,192 tokens.
/// assert_eq!(pool_of(8192, NonZeroU64::new(8).unwrap(), 1000, 400_000), 1024);
/// ```
pub fn pool_of(tokens: u64, multiple: NonZeroU64, n: u64, total: u64) -> u64 {
    let each = u128::from(multiple.get());
    let wanted = BATCHES.saturating_mul(u128::from(tokens)).saturating_mul(u128::from(n));
    let times = wanted.div_ceil(each.saturating_mul(u128::from(total)).max(1)).max(1);
    // The largest multiple that there is, where that is less.
    let most = u128::from(u64::MAX) / each;
    u64::try_from(times.min(most) * each).unwrap_or(u64::MAX)
}

/// The batches of a pool.
#[derive(Debug)]
pub(super) struct Cut {
    /// Places of rows within the pool, in the order in which they come.
    pub(super) places: Vec<u32>,
    /// Where each batch ends.
    pub(super) ends: Vec<u32>,
}

impl Budget {
    /// Rows of a batch whose longest row is of this length: `multiple` at least.
    fn rows(&self, length: u32) -> u64 {
        let each = self.multiple.get();
        (self.tokens / u64::from(length.max(1)) / each).max(1).saturating_mul(each)
    }

    /// The batches of the rows of a pool, whose lengths are given in the order of the positions. What is more than a multiple of
    /// `multiple` is the last batch.
    pub(super) fn cut(&self, lengths: &[u32], seed: u64, epoch: u64, pool: u64) -> Cut {
        let whole = lengths.len() - lengths.len() % self.multiple_of_memory();
        let sorted = longest_first(&lengths[..whole]);
        let ends = self.ends(&sorted);
        let order = Permutation::new(keyed_hash(seed, [epoch, pool, BUDGET]), ends.len() as u64);
        let mut cut =
            Cut { places: Vec::with_capacity(lengths.len()), ends: Vec::with_capacity(ends.len() + 1) };
        for number in 0..ends.len() as u64 {
            let batch = order.apply(number) as usize;
            let start = if batch == 0 { 0 } else { ends[batch - 1] as usize };
            cut.places.extend(sorted[start..ends[batch] as usize].iter().map(|row| place(*row)));
            cut.ends.push(cut.places.len() as u32);
        }
        if whole < lengths.len() {
            cut.places.extend(whole as u32..lengths.len() as u32);
            cut.ends.push(lengths.len() as u32);
        }
        cut
    }

    /// How many batches the rows of a pool make, what is left at its end among them.
    pub(super) fn count(&self, lengths: &[u32]) -> u64 {
        let whole = lengths.len() - lengths.len() % self.multiple_of_memory();
        let n_whole = self.ends(&longest_first(&lengths[..whole])).len();
        n_whole as u64 + u64::from(whole < lengths.len())
    }

    fn multiple_of_memory(&self) -> usize {
        usize::try_from(self.multiple.get()).unwrap_or(usize::MAX)
    }

    // Where batches of sorted rows end, cut greedily.
    fn ends(&self, sorted: &[u64]) -> Vec<u32> {
        let mut ends = Vec::new();
        let mut at = 0;
        while let Some(longest) = sorted.get(at) {
            let rows = usize::try_from(self.rows(length(*longest))).unwrap_or(usize::MAX);
            at = at.saturating_add(rows).min(sorted.len());
            ends.push(at as u32);
        }
        ends
    }
}

// Rows as one number each, so that the longest comes first and equal ones stay in their order.
fn longest_first(lengths: &[u32]) -> Vec<u64> {
    let mut rows: Vec<u64> =
        lengths.iter().zip(0u64..).map(|(length, place)| u64::from(!length) << 32 | place).collect();
    rows.sort_unstable();
    rows
}

fn length(row: u64) -> u32 {
    !((row >> 32) as u32)
}

fn place(row: u64) -> u32 {
    row as u32
}
