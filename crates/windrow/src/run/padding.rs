//! How much of batches within a budget of tokens is padding, from the lengths of rows alone.

use serde::Serialize;
use windrow_core::plan::{Plan, row_lengths};
use windrow_core::sampler::{Permutation, RowLengths};
use windrow_core::{Kind, Result};

use crate::run::builder::LoaderBuilder;
use crate::views::samples::Samples;

/// Stretches of the first epoch that are looked at, spread over it.
const STRETCHES: u64 = 4;

/// Batches of a stretch: more than are sorted together.
const BATCHES: u64 = 64;

/// The part of the positions of a view's rows that is padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Padding {
    /// In the batches of the plan.
    pub share: f64,
    /// In batches of as many rows, were the same rows in random order.
    pub at_random: f64,
}

impl LoaderBuilder {
    /// How much of each view's rows is padding within a budget of tokens, and that budget: the loader's own, or without one about the tokens
    /// of the batches that it has. `None` where all rows are equally long, or something else decides which rows a batch has.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// # let series: Vec<Vec<u64>> = (0..200).map(|i| vec![i; 1 + i as usize * i as usize % 50]).collect();
    /// # std::fs::write(&path, serde_json::to_string(&series).unwrap()).unwrap();
    /// let loader = windrow::open(&path)?.crop(64)?.loader().global_batch_size(8).rank(0, 1);
    /// let (_, padding) = loader.padding_if_budgeted()?.unwrap();
    /// assert!(padding[0].share < padding[0].at_random / 2.0, "{padding:?}");
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`LoaderBuilder::plan`]; what the lengths of rows say.
    pub fn padding_if_budgeted(&self) -> Result<Option<(u64, Vec<Padding>)>> {
        let of = |builder: &LoaderBuilder| {
            let Some((budget, lengths)) = builder.budget()? else { return Ok(None) };
            let padding = padding(&builder.plan()?, &lengths, builder.global_batch()?)?;
            Ok(padding.map(|padding| (budget.tokens, padding)))
        };
        if self.tokens().most.is_some() {
            return of(self);
        }
        let feeds: Vec<_> = self.parts().iter().map(Samples::feed).collect();
        let without = || {
            let given = self.tokens().given(self.parts())?;
            let lengths = given.map_or_else(|| Ok(row_lengths(&feeds, u64::MAX)?.into()), Ok)?;
            let tokens = u128::from(self.global_batch()?) * u128::from(lengths.total());
            let tokens = u64::try_from(tokens / u128::from(lengths.len().max(1))).unwrap_or(u64::MAX);
            of(&self
                .clone()
                .max_tokens(tokens.max(lengths.longest().map_or(1, |(_, longest)| longest.into()))))
        };
        match without() {
            // Nobody asked for a budget here.
            Err(e) if e.kind() == Kind::Config => Ok(None),
            found => found,
        }
    }
}

/// Positions of a view's rows, and how many of them are filled.
#[derive(Clone, Copy, Default)]
struct Positions {
    filled: u64,
    all: u64,
}

impl Positions {
    fn padding(self) -> f64 {
        1.0 - self.filled as f64 / self.all.max(1) as f64
    }
}

/// The padding of the rows of each view, of a plan whose order says where batches end; `mean_rows` rows make a batch of random rows.
///
/// # Errors
/// What the lengths of rows say.
pub(crate) fn padding(plan: &Plan, lengths: &RowLengths, mean_rows: u64) -> Result<Option<Vec<Padding>>> {
    let sampler = plan.sampler();
    let Some(batches) = sampler.batches() else { return Ok(None) };
    let len = sampler.len(0).unwrap_or((STRETCHES * BATCHES).saturating_mul(mean_rows));
    let (mut rows, mut ends, mut at) = (Vec::new(), Vec::new(), 0);
    for stretch in 0..STRETCHES {
        at = batches.around(0, len / STRETCHES * stretch).start.max(at);
        for _ in 0..BATCHES {
            if at >= len {
                break;
            }
            let batch = batches.around(0, at);
            at = batch.end;
            sampler.turns(0, batch, &mut rows);
            ends.push(rows.len());
        }
    }
    let starts: Vec<u64> = (plan.feeds().iter())
        .scan(0, |start, feed| Some(std::mem::replace(start, *start + feed.len())))
        .collect();
    let mut found = Vec::with_capacity(rows.len());
    for turn in &rows {
        let view = starts.partition_point(|start| *start <= turn.sample).saturating_sub(1);
        let (feed, length) = (&plan.feeds()[view], u64::from(lengths.of(turn.sample)));
        let mut values = [0];
        feed.view().values(turn.sample - starts[view], &mut values)?;
        // Rows that are padded to a bucket are shorter than it; how long whole records are, only the lengths say.
        found.push((view, feed.collate().row_length(values[0]).unwrap_or(length), length));
    }
    let order = Permutation::new(0, found.len() as u64);
    let at_random: Vec<_> = (0..found.len() as u64).map(|at| found[order.apply(at) as usize]).collect();
    let step = usize::try_from(mean_rows).unwrap_or(usize::MAX).max(1);
    let random_ends = (1..=at_random.len().div_ceil(step)).map(|n| (n * step).min(at_random.len()));
    let shares = count(&found, ends.into_iter(), starts.len());
    let random = count(&at_random, random_ends, starts.len());
    let pairs = shares.iter().zip(&random);
    Ok(Some(
        pairs.map(|(own, random)| Padding { share: own.padding(), at_random: random.padding() }).collect(),
    ))
}

// Of each view, the positions of its rows in batches that end at these rows.
fn count(rows: &[(usize, u64, u64)], ends: impl Iterator<Item = usize>, n_views: usize) -> Vec<Positions> {
    let mut of_views = vec![Positions::default(); n_views];
    let mut start = 0;
    for end in ends {
        let batch = &rows[start..end];
        let longest = batch.iter().map(|(.., length)| *length).max().unwrap_or(0);
        for (view, filled, _) in batch {
            of_views[*view].filled += filled;
            of_views[*view].all += longest;
        }
        start = end;
    }
    of_views
}
