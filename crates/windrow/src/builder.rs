//! From samples to a loader: order, batch size, rank.

use std::sync::Arc;

use windrow_core::loader::{BatchSize, Loader, Options};
use windrow_core::plan::{Feed, Plan};
use windrow_core::sampler::{Mix, Sampler, Sequential, Shard, Shuffle, Stop};
use windrow_core::{Error, Result};

use crate::recipe::{Recipe, RecipePart, ScalerName};
use crate::windowing::function_in_text;
use crate::{Mixture, Samples};

/// Makes a [`Loader`]. Defaults: batch size 1, shuffled, seed 0, the last partial batch left out, for ever, rank and
/// world size from the environment of torchrun or Slurm, threads as there are cores, 4 batches ahead.
#[derive(Clone)]
pub struct LoaderBuilder {
    from: From,
    shuffle: bool,
    seed: u64,
    batch: BatchSize,
    drop_last: bool,
    shard: Option<(u64, u64)>,
    epochs: Option<u64>,
    threads: Option<usize>,
    prefetch: usize,
}

#[derive(Clone)]
enum From {
    One(Box<Samples>),
    Mixed(Mixture),
}

impl LoaderBuilder {
    pub(crate) fn one(samples: Samples) -> Self {
        Self::new(From::One(Box::new(samples)))
    }

    pub(crate) fn mixed(mixture: Mixture) -> Self {
        Self::new(From::Mixed(mixture))
    }

    fn new(from: From) -> Self {
        LoaderBuilder {
            from,
            shuffle: true,
            seed: 0,
            batch: BatchSize::PerRank(1),
            drop_last: true,
            shard: None,
            epochs: None,
            threads: None,
            prefetch: 4,
        }
    }

    /// Rows of a batch, for each rank.
    #[must_use]
    pub fn batch_size(mut self, rows: u64) -> Self {
        self.batch = BatchSize::PerRank(rows);
        self
    }

    /// Rows of a batch, for all ranks together.
    #[must_use]
    pub fn global_batch_size(mut self, rows: u64) -> Self {
        self.batch = BatchSize::Global(rows);
        self
    }

    /// Random order, another one each epoch; else the order of the records.
    #[must_use]
    pub fn shuffle(mut self, shuffle: bool) -> Self {
        self.shuffle = shuffle;
        self
    }

    /// Keys the order and the random crops.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Leaves out the last batch of an epoch when it is not full.
    #[must_use]
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// This rank among `world_size`.
    #[must_use]
    pub fn rank(mut self, rank: u64, world_size: u64) -> Self {
        self.shard = Some((rank, world_size));
        self
    }

    /// Ends after so many epochs; `None` never ends.
    #[must_use]
    pub fn epochs(mut self, epochs: Option<u64>) -> Self {
        self.epochs = epochs;
        self
    }

    /// Threads that lay batches ahead; 0 lays each when asked. `None`: as many as there are cores, at most 8.
    #[must_use]
    pub fn threads(mut self, threads: Option<usize>) -> Self {
        self.threads = threads;
        self
    }

    /// Batches kept ready.
    #[must_use]
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.prefetch = batches;
        self
    }

    /// The pure function without the loader.
    ///
    /// # Errors
    /// `Config`, `Mismatch` when the views of a mixture lay different tensors.
    pub fn plan(&self) -> Result<Plan> {
        let (feeds, sampler): (Vec<Feed>, Arc<dyn Sampler>) = match &self.from {
            From::One(samples) => {
                let sampler: Arc<dyn Sampler> = match self.shuffle {
                    true => Arc::new(Shuffle::new(samples.len(), self.seed)),
                    false => Arc::new(Sequential::new(samples.len())),
                };
                (vec![samples.feed().clone()], sampler)
            }
            From::Mixed(mixture) => {
                let sizes: Vec<_> =
                    mixture.parts().map(|(_, samples, weight)| (samples.len(), weight)).collect();
                let sampler = Mix::new(&sizes, self.shuffle, self.seed, mixture.stop)?;
                (mixture.samples.iter().map(|s| s.feed().clone()).collect(), Arc::new(sampler))
            }
        };
        Plan::new(feeds, sampler, self.seed)
    }

    /// The loader, before its first batch.
    ///
    /// # Errors
    /// `Config` when the options would never give a batch, or the environment's rank makes no sense.
    pub fn build(&self) -> Result<Loader> {
        let (rank, world_size) = self.shard()?;
        let options = Options {
            batch: self.batch,
            shard: Shard::new(rank, world_size)?,
            drop_last: self.drop_last,
            epochs: self.epochs,
            threads: self.threads,
            prefetch: self.prefetch,
        };
        Loader::new(Arc::new(self.plan()?), &options)
    }

    /// The plan as text, to trace it later.
    ///
    /// # Errors
    /// As [`LoaderBuilder::build`]; `Config` where records are scaled by a function of the caller's.
    pub fn recipe(&self) -> Result<Recipe> {
        let (_, world_size) = self.shard()?;
        let global_batch_size = match self.batch {
            BatchSize::Global(rows) => rows,
            BatchSize::PerRank(rows) => rows.saturating_mul(world_size),
        };
        let one_or_many = match &self.from {
            From::One(samples) => std::slice::from_ref(samples.as_ref()),
            From::Mixed(mixture) => &mixture.samples[..],
        };
        for samples in one_or_many {
            if let ScalerName::Custom(name) = samples.recipe().view.scaler() {
                return Err(function_in_text(name));
            }
        }
        let (parts, names, weights, stop): (Vec<RecipePart>, Vec<String>, Vec<f64>, Option<Stop>) =
            match &self.from {
                From::One(samples) => (vec![samples.recipe().clone()], Vec::new(), Vec::new(), None),
                From::Mixed(m) => (
                    m.samples.iter().map(|s| s.recipe().clone()).collect(),
                    m.names.clone(),
                    m.weights.clone(),
                    Some(m.stop),
                ),
            };
        Ok(Recipe {
            version: 1,
            parts,
            names,
            weights,
            stop,
            shuffle: self.shuffle,
            seed: self.seed,
            global_batch_size,
            drop_last: self.drop_last,
            plan: Some(self.plan()?.identity()?.to_string()),
        })
    }

    fn shard(&self) -> Result<(u64, u64)> {
        match self.shard {
            Some(shard) => Ok(shard),
            None => rank_from_environment(|name| std::env::var(name).ok()),
        }
    }
}

// torchrun sets RANK and WORLD_SIZE; srun sets SLURM_PROCID and SLURM_NTASKS. A half-set pair is a mistake that would
// feed every rank the same data, so it is an error.
fn rank_from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<(u64, u64)> {
    for (rank_name, world_name) in [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")] {
        let number = |name: &str, text: String| {
            text.trim().parse::<u64>().map_err(|_| {
                Error::config(format!("the environment says {name}={text:?}, which is no number"))
                    .hint("pass rank= and world_size=")
            })
        };
        match (variable(rank_name), variable(world_name)) {
            (Some(rank), Some(world)) => return Ok((number(rank_name, rank)?, number(world_name, world)?)),
            // An allocation without srun: a program started by hand is alone.
            (None, Some(_)) if world_name == "SLURM_NTASKS" => {}
            (None, None) => {}
            (rank, _) => {
                let (set, unset) =
                    if rank.is_some() { (rank_name, world_name) } else { (world_name, rank_name) };
                return Err(Error::config(format!("the environment sets {set} but not {unset}"))
                    .hint("pass rank= and world_size=, or set both variables"));
            }
        }
    }
    Ok((0, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<(u64, u64)> {
        rank_from_environment(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_string()))
    }

    #[test]
    fn rank_comes_from_torchrun_then_slurm_then_is_alone() {
        assert_eq!(from(&[]).unwrap(), (0, 1));
        assert_eq!(from(&[("RANK", "3"), ("WORLD_SIZE", "8")]).unwrap(), (3, 8));
        assert_eq!(from(&[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")]).unwrap(), (1, 2));
    }

    #[test]
    fn half_a_pair_or_no_number_is_an_error() {
        assert!(from(&[("RANK", "3")]).is_err());
        assert!(from(&[("WORLD_SIZE", "3")]).is_err());
        assert!(from(&[("RANK", "x"), ("WORLD_SIZE", "3")]).is_err());
    }
}
