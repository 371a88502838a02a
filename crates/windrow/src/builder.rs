//! From samples to a loader: order, batch size, rank.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::loader::{BatchSize, Loader, Options};
use windrow_core::plan::{LastBatch, Plan};
use windrow_core::sampler::{Sampler, Sequential, Shard, Shuffle, Stop};

use crate::dataset::Samples;
use crate::mixture::Mixture;
use crate::ranks;
use crate::recipe::{Recipe, RecipePart};
use crate::view_recipe::ScalerName;
use crate::windowing::function_in_text;

/// Makes a [`Loader`]. Defaults: batch size 1, shuffled, seed 0, the last partial batch left out, for ever, rank and
/// world size from the environment of torchrun or Slurm, threads as there are cores, 4 batches ahead.
#[derive(Clone)]
pub struct LoaderBuilder {
    from: From,
    shuffle: bool,
    seed: u64,
    batch: BatchSize,
    last: LastBatch,
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

impl Samples {
    /// A loader of these samples.
    pub fn loader(&self) -> LoaderBuilder {
        LoaderBuilder::new(From::One(Box::new(self.clone())))
    }
}

impl Mixture {
    /// A loader of the mixture.
    pub fn loader(&self) -> LoaderBuilder {
        LoaderBuilder::new(From::Mixed(self.clone()))
    }
}

impl LoaderBuilder {
    fn new(from: From) -> Self {
        LoaderBuilder {
            from,
            shuffle: true,
            seed: 0,
            batch: BatchSize::PerRank(1),
            last: LastBatch::Drop,
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

    /// What becomes of an epoch's last batch when it is not full.
    #[must_use]
    pub fn last_batch(mut self, last: LastBatch) -> Self {
        self.last = last;
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

    /// The names of a mixture's parts, in the order of their numbers; none of a view by itself.
    pub fn part_names(&self) -> &[String] {
        match &self.from {
            From::One(_) => &[],
            From::Mixed(mixture) => &mixture.names,
        }
    }

    /// The pure function without the loader.
    ///
    /// # Errors
    /// `Config`, `Mismatch` when the views of a mixture lay different tensors.
    pub fn plan(&self) -> Result<Plan> {
        match &self.from {
            From::One(samples) => {
                let sampler: Arc<dyn Sampler> = match self.shuffle {
                    true => Arc::new(Shuffle::new(samples.len(), self.seed)),
                    false => Arc::new(Sequential::new(samples.len())),
                };
                Plan::new(vec![samples.feed().clone()], sampler, self.seed)
            }
            From::Mixed(mixture) => mixture.plan(self.shuffle, self.seed),
        }
    }

    /// The loader, before its first batch.
    ///
    /// # Errors
    /// `Config` when the options would never give a batch, or the environment's rank makes no sense.
    pub fn build(&self) -> Result<Loader> {
        let options = Options {
            batch: self.batch,
            shard: self.shard()?,
            last: self.last,
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
        let global_batch_size = match self.batch {
            BatchSize::Global(rows) => rows,
            BatchSize::PerRank(rows) => rows.saturating_mul(self.shard()?.world_size()),
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
            drop_last: self.last == LastBatch::Drop,
            repeat_last: self.last == LastBatch::Repeat,
            plan: Some(self.plan()?.identity()?.to_string()),
        })
    }

    fn shard(&self) -> Result<Shard> {
        match self.shard {
            Some((rank, world_size)) => Shard::new(rank, world_size),
            None => ranks::from_environment(),
        }
    }
}
