//! Which rows of a batch each rank gets so that all get the same number of rows at nearly the same cost.
//!
//! Whole numbers only: each rank works out the rows of all, and they have to agree to the last bit.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::error::{Error, Result};

/// Once the dearest rank costs no more above the mean than one part in this number, no more rows change places.
const TOLERANCE: u128 = 1000;

/// A row: what it costs, and its number in the batch.
type Row = (u128, usize);

/// The rows of a batch for each of `ranks` ranks, in ascending order: the same number for each.
///
/// Rows are dealt from the dearest down, to the ranks in order and back. Then the dearest rank trades a row for a cheaper one of
/// the cheapest rank that has a fitting one, again and again, until it costs at most 0.1 % more than the mean or no trade helps.
///
/// ```
/// use windrow_core::sampler::balanced;
///
/// assert_eq!(balanced(&[9, 1, 2, 8, 5, 5], 3)?, [[0, 1], [2, 3], [4, 5]]);
/// # Ok::<(), windrow_core::Error>(())
/// ```
///
/// # Errors
/// `Config` where the ranks do not divide the rows, or 128 bits cannot count what they cost.
pub fn balanced(costs: &[u128], ranks: usize) -> Result<Vec<Vec<usize>>> {
    let total = costs.iter().try_fold(0u128, |sum, cost| sum.checked_add(*cost));
    // No number below is larger than this one.
    let most = total.and_then(|total| total.checked_mul(TOLERANCE)?.checked_mul(ranks as u128));
    let (Some(total), Some(_)) = (total, most) else {
        return Err(Error::config("the rows of a batch cost more than 128 bits can count")
            .field("balance")
            .hint("choose a smaller unit for what a row costs"));
    };
    if costs.len().checked_rem(ranks).is_none_or(|rest| rest != 0) {
        return Err(
            Error::config(format!("{ranks} ranks do not divide {} rows", costs.len())).field("balance")
        );
    }
    let mut ranks = Ranks::dealt(costs, ranks);
    for _ in costs {
        if !ranks.trade(total) {
            break;
        }
    }
    Ok(ranks.rows.into_iter().map(ascending).collect())
}

/// The rows of one rank in `n` micro-batches of the same size, the dearest first, each in ascending order.
///
/// ```
/// use windrow_core::sampler::micro_batches;
///
/// assert_eq!(micro_batches(&[9, 1, 2, 8, 5, 5], &[0, 1, 2, 3], 2), [[0, 3], [1, 2]]);
/// ```
pub fn micro_batches(costs: &[u128], rows: &[usize], n: usize) -> Vec<Vec<usize>> {
    let mut rows: Vec<Row> = rows.iter().map(|row| (costs[*row], *row)).collect();
    rows.sort_unstable_by_key(dearest_first);
    let size = rows.len().checked_div(n).unwrap_or_default().max(1);
    rows.chunks(size).map(|some| ascending(some.to_vec())).collect()
}

fn dearest_first(&(cost, row): &Row) -> (Reverse<u128>, usize) {
    (Reverse(cost), row)
}

fn ascending(rows: Vec<Row>) -> Vec<usize> {
    let mut numbers: Vec<usize> = rows.into_iter().map(|(_, row)| row).collect();
    numbers.sort_unstable();
    numbers
}

/// What each rank has.
struct Ranks {
    /// The rows of each, the cheapest first.
    rows: Vec<Vec<Row>>,
    loads: Vec<u128>,
    /// What each costs, the cheapest first.
    by_load: BTreeSet<(u128, usize)>,
    /// All rows, the cheapest first, and of each row by number the rank that has it.
    by_cost: Vec<Row>,
    owners: Vec<usize>,
}

impl Ranks {
    /// Dealt from the dearest row down, to the ranks in order and back.
    fn dealt(costs: &[u128], ranks: usize) -> Ranks {
        let mut by_cost: Vec<Row> = costs.iter().copied().zip(0..).collect();
        by_cost.sort_unstable_by_key(dearest_first);
        let mut rows = vec![Vec::with_capacity(costs.len() / ranks); ranks];
        let mut owners = vec![0; costs.len()];
        for (place, row) in by_cost.iter().enumerate() {
            let (round, at) = (place / ranks, place % ranks);
            let rank = if round % 2 == 0 { at } else { ranks - 1 - at };
            rows[rank].push(*row);
            owners[row.1] = rank;
        }
        by_cost.sort_unstable();
        rows.iter_mut().for_each(|rows| rows.sort_unstable());
        let loads: Vec<u128> = rows.iter().map(|rows| rows.iter().map(|(cost, _)| cost).sum()).collect();
        let by_load = loads.iter().copied().zip(0..).collect();
        Ranks { rows, loads, by_load, by_cost, owners }
    }

    /// Trades a row of the dearest rank, the first of such. False where it is near enough to the mean, and where no trade helps.
    fn trade(&mut self, total: u128) -> bool {
        let Some(&(most, _)) = self.by_load.last() else { return false };
        let Some(&(_, high)) = self.by_load.range((most, 0)..).next() else { return false };
        if TOLERANCE * (most * self.rows.len() as u128 - total) <= total {
            return false;
        }
        let pair = |low: usize| {
            let pair = best_pair(&self.rows[high], &self.rows[low], most - self.loads[low])?;
            Some((low, pair))
        };
        // Most often the cheapest rank has a fitting row. Where it has none, few have, and those are found by the costs of rows.
        let cheapest = self.by_load.first().filter(|(_, low)| *low != high).and_then(|(_, low)| pair(*low));
        let Some((low, (given, taken))) = cheapest.or_else(|| pair(self.partner(high, most)?)) else {
            return false;
        };
        let less = given.0 - taken.0;
        for (rank, old, new, load) in
            [(high, given, taken, most - less), (low, taken, given, self.loads[low] + less)]
        {
            replace(&mut self.rows[rank], old, new);
            self.owners[new.1] = rank;
            self.by_load.remove(&(self.loads[rank], rank));
            self.by_load.insert((load, rank));
            self.loads[rank] = load;
        }
        true
    }

    // The cheapest rank that has a row whose trade brings `high` down and itself not as far up.
    fn partner(&self, high: usize, most: u128) -> Option<usize> {
        let widest = most - self.by_load.first()?.0;
        let mut found: Option<(u128, usize)> = None;
        for (given, _) in &self.rows[high] {
            let end = self.by_cost.partition_point(|(cost, _)| cost < given);
            for (taken, row) in self.by_cost[..end].iter().rev().take_while(|(cost, _)| given - cost < widest)
            {
                let low = self.owners[*row];
                let load = self.loads[low];
                if given - taken < most - load && found.is_none_or(|found| (load, low) < found) {
                    found = Some((load, low));
                }
            }
        }
        found.map(|(_, low)| low)
    }
}

// Of all pairs of a row of each, the cheaper one of `low`, the one whose trade leaves the least of the gap between the two ranks;
// of several the one of the first row, then of the first other. None where every trade leaves as much as there is.
fn best_pair(high: &[Row], low: &[Row], gap: u128) -> Option<(Row, Row)> {
    let mut best: Option<(u128, usize, usize, Row, Row)> = None;
    // The first of `low` that leaves the other rank the dearer one, and the first of those that cost as much as the one before it.
    let (mut next, mut before) = (0, None);
    for given in high {
        while let Some(taken) = low.get(next)
            && gap + 2 * taken.0 < 2 * given.0
        {
            if before.is_none_or(|before: usize| low[before].0 != taken.0) {
                before = Some(next);
            }
            next += 1;
        }
        for taken in [before.and_then(|at| low.get(at)), low.get(next)].into_iter().flatten() {
            let left = (gap + 2 * taken.0).abs_diff(2 * given.0);
            let key = (left, given.1, taken.1);
            if left < gap && best.is_none_or(|(left, x, y, ..)| key < (left, x, y)) {
                best = Some((left, given.1, taken.1, *given, *taken));
            }
        }
    }
    best.map(|(.., given, taken)| (given, taken))
}

// Puts one row where another was, in order of cost.
fn replace(rows: &mut Vec<Row>, old: Row, new: Row) {
    if let Ok(at) = rows.binary_search(&old) {
        rows.remove(at);
    }
    let at = rows.partition_point(|row| *row < new);
    rows.insert(at, new);
}
