//! How long ranks wait for the dearest of them, from the lengths of documents alone: no data is read.

use serde::Serialize;
use windrow_core::Result;
use windrow_core::plan::{Balance, LastBatch, Plan, Steps};
use windrow_core::sampler::{Shard, balanced};

use crate::run::balancing::check;
use crate::run::builder::LoaderBuilder;

/// How long ranks wait in a step for the dearest of them, as a part of what a rank costs on average: where each gets rows that follow each
/// other, and where rows are dealt by what they cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// Ranks that share each step.
    pub ranks: u64,
    /// Of all ranks, where rows come in order: what the dearest costs over the mean, less 1.
    pub before: f64,
    /// Of all ranks, where rows are dealt by what they cost.
    pub after: f64,
    /// Of each rank, where rows come in order.
    pub ranks_before: Vec<f64>,
    /// Of each rank, where rows are dealt by what they cost.
    pub ranks_after: Vec<f64>,
}

/// Steps that are looked at, spread over the first epoch.
const STEPS: u64 = 64;

impl LoaderBuilder {
    /// How long ranks wait for the dearest of them, over 64 steps of the first epoch, or all if it has fewer; `None` where one rank gets
    /// all rows, or rows are not dealt by what they cost.
    pub(crate) fn waiting(&self) -> Result<Option<Waiting>> {
        let (plan, steps) = (self.plan()?, self.steps()?);
        // An endless mixture has as many as are looked at.
        let in_epoch = steps.in_epoch(plan.sampler(), 0).unwrap_or(STEPS);
        let n = in_epoch.min(STEPS);
        let number = |nth: u64| (u128::from(nth) * u128::from(in_epoch) / u128::from(n)) as u64;
        Waiting::of(&plan, &steps, (0..n).map(number))
    }

    /// How long ranks wait for the dearest of them, and what balances them: [`LoaderBuilder::balance`] of this loader; where it has none,
    /// tokens if rows differ in that, else attention. `None` where one rank gets all rows, or all rows cost the same.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// # std::fs::write(&path, "[[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11], [12, 13], [14]]").unwrap();
    /// use windrow::Balance;
    ///
    /// let loader = windrow::open(&path)?.crop(8)?.loader().shuffle(false).batch_size(2).rank(0, 2);
    /// let (by, waiting) = loader.waiting_if_balanced()?.unwrap();
    /// assert_eq!(by.to_string(), "tokens");
    /// // 11 and 3 tokens, then 7 and 7.
    /// assert_eq!((waiting.ranks_before, waiting.after), (vec![0.0, 8.0 / 7.0], 0.0));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`LoaderBuilder::plan`]; `Config` where the ranks do not divide a batch, and for a function that a plan as text does not hold;
    /// what says how much rows cost.
    pub fn waiting_if_balanced(&self) -> Result<Option<(Balance, Waiting)>> {
        let fits = |by: &Balance| {
            self.tokens().lengths.is_some() || self.parts().iter().all(|samples| check(by, samples).is_ok())
        };
        if let Some(by) = self.balanced_by() {
            return Ok(self.waiting()?.map(|waiting| (by.clone(), waiting)));
        }
        let by = [Balance::Tokens, Balance::Attention(Balance::ATTENTION)].into_iter().find(fits);
        let Some(by) = by else { return Ok(None) };
        // The ranks need not divide a last batch that is not full.
        let balanced = self.clone().balance(Some(by.clone())).last(LastBatch::Drop);
        Ok(balanced.waiting()?.map(|waiting| (by, waiting)))
    }
}

impl Waiting {
    /// What ranks wait in these steps on average, `None` where one rank gets all rows, or nothing says what rows cost.
    ///
    /// # Errors
    /// As [`Plan::costs`].
    fn of(plan: &Plan, steps: &Steps, numbers: impl Iterator<Item = u64>) -> Result<Option<Waiting>> {
        let ranks = steps.shard.world_size();
        let (mut waited, mut n) = ([Vec::new(), Vec::new()], 0.0);
        for number in numbers {
            let step = steps.find(plan.sampler(), Some(0), number)?;
            let Some(costs) = plan.costs(&step)?.filter(|_| ranks > 1) else { return Ok(None) };
            let in_order = (0..ranks).map(|rank| {
                let own = Shard::new(rank, ranks)?.rows(costs.len() as u64);
                Ok((own.start as usize..own.end as usize).collect())
            });
            let dealt = [in_order.collect::<Result<Vec<Vec<usize>>>>()?, balanced(&costs, ranks as usize)?];
            for (waited, dealt) in waited.iter_mut().zip(dealt) {
                waited.resize(dealt.len(), 0.0);
                let loads: Vec<f64> =
                    dealt.iter().map(|rows| rows.iter().map(|row| costs[*row] as f64).sum()).collect();
                let (most, all) =
                    loads.iter().fold((0.0f64, 0.0), |(most, all), load| (most.max(*load), all + load));
                let mean = (all / loads.len() as f64).max(f64::MIN_POSITIVE);
                waited.iter_mut().zip(loads).for_each(|(waited, load)| *waited += (most - load) / mean);
            }
            n += 1.0;
        }
        let [ranks_before, ranks_after] =
            waited.map(|of| of.into_iter().map(|sum| sum / f64::max(n, 1.0)).collect());
        let of_all = |of: &Vec<f64>| of.iter().sum::<f64>() / ranks as f64;
        let (before, after) = (of_all(&ranks_before), of_all(&ranks_after));
        Ok((n > 0.0).then_some(Waiting { ranks, before, after, ranks_before, ranks_after }))
    }
}
