//! From samples to a loader: order, batch size, rank.

use std::num::NonZeroU64;
use std::sync::Arc;

use windrow_core::collate::{Context, OutputOptions};
use windrow_core::loader::{BatchSize, Loader, Options};
use windrow_core::plan::{Balance, LastBatch, Plan, Steps};
use windrow_core::sampler::{Budget, Order, RowLengths, Shard};
use windrow_core::{DType, Error, Result};

use crate::mix::Mixture;
use crate::mix::batches::Batches;
use crate::order::blocks::Blocks;
use crate::order::ordered;
use crate::order::room;
use crate::order::shuffle::Shuffle;
use crate::run::balance_text;
use crate::run::budget::{LengthsOf, Tokens, mean_rows};
use crate::run::ranks::{self, Found};
use crate::run::recipe::Recipe;
use crate::views::part::RecipePart;
use crate::views::samples::Samples;
use crate::views::scaler::{Scaler, function_in_text};

/// Makes a [`Loader`]. Defaults: batch size 1, shuffled, seed 0, the last partial batch left out, for ever, rank and
/// world size from the environment of torchrun or Slurm, threads as there are cores, 4 batches ahead.
#[derive(Clone, Debug)]
pub struct LoaderBuilder {
    from: From,
    shuffle: Shuffle,
    seed: u64,
    batch: BatchSize,
    tokens: Tokens,
    last: LastBatch,
    skip: Vec<(u64, u64)>,
    shard: Option<(u64, u64)>,
    epochs: Option<u64>,
    num_threads: Option<usize>,
    prefetch: usize,
    map_name: Option<String>,
    context: Option<(u64, u64)>,
    balance: Option<Balance>,
    accumulate: u64,
    outputs: OutputOptions,
}

#[derive(Clone, Debug)]
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
            shuffle: Shuffle::On,
            seed: 0,
            batch: BatchSize::PerRank(1),
            tokens: Tokens::default(),
            last: LastBatch::Drop,
            skip: Vec::new(),
            shard: None,
            epochs: None,
            num_threads: None,
            prefetch: 4,
            map_name: None,
            context: None,
            balance: None,
            accumulate: 1,
            outputs: OutputOptions::default(),
        }
    }

    /// Rows of a batch, for each rank.
    #[must_use]
    pub fn batch_size(mut self, rows: u64) -> Self {
        self.batch = BatchSize::PerRank(rows);
        self.tokens = Tokens::default();
        self
    }

    /// Rows of a batch, for all ranks together.
    #[must_use]
    pub fn global_batch_size(mut self, rows: u64) -> Self {
        self.batch = BatchSize::Global(rows);
        self.tokens = Tokens::default();
        self
    }

    /// Instead of a number of rows: in a batch, for all ranks together, rows times the longest of them are `tokens` at most. For views
    /// whose batches are as long as their longest row: records padded to the longest, crops, which are padded so then, codes, and rows
    /// with [`LoaderBuilder::lengths`].
    ///
    /// ```
    /// use windrow::{Pad, Records};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # std::fs::write(dir.path().join("series.json"), "[[1, 2, 3, 4, 5, 6, 7], [5, 6], [7, 8], [9, 8, 7]]").unwrap();
    /// let rows = windrow::open(dir.path().join("series.json"))?.records(Records::new(512).pad(Pad::Longest))?;
    /// let loader = rows.loader().max_tokens(6).rank(0, 1).epochs(Some(1)).build()?;
    /// let mut shapes: Vec<_> = loader.map(|batch| batch.map(|batch| (batch.rows(), batch.fields()[0].shape[0]))).collect::<Result<_, _>>()?;
    /// shapes.sort();
    /// assert_eq!(shapes, [(1, 6), (3, 2)]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.batch = BatchSize::Global(1);
        self.tokens.most = Some(tokens);
        self
    }

    /// With [`LoaderBuilder::max_tokens`]: rows of a batch are a multiple of this, which the number of ranks must divide; 1 unless given.
    #[must_use]
    pub fn multiple(mut self, rows: u64) -> Self {
        self.tokens.multiple = Some(rows);
        self
    }

    /// With [`LoaderBuilder::max_tokens`]: how many rows are sorted by length together, a multiple of
    /// [`LoaderBuilder::multiple`]; those of about fifty batches unless given.
    #[must_use]
    pub fn pool(mut self, rows: u64) -> Self {
        self.tokens.pool = Some(rows);
        self
    }

    /// With [`LoaderBuilder::max_tokens`], of a view of rows: how long each record is, as a column of whole numbers says, or these
    /// numbers.
    #[must_use]
    pub fn lengths(mut self, lengths: impl Into<LengthsOf>) -> Self {
        self.tokens = self.tokens.with_lengths(lengths.into());
        self
    }

    /// `true`: random order, another one each epoch; `false`: the order of the records; [`Blocks`](crate::Blocks): random too,
    /// and neighbours come at about the same time, for data in a slow store.
    #[must_use]
    pub fn shuffle(mut self, shuffle: impl Into<Shuffle>) -> Self {
        self.shuffle = shuffle.into();
        self
    }

    /// Seed of the shuffle order and the random crops.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Leaves an epoch's last batch out when it is not full, which is the default, or keeps it: it needs a row for each rank.
    #[must_use]
    pub fn drop_last(self, drop_last: bool) -> Self {
        self.last(if drop_last { LastBatch::Drop } else { LastBatch::Keep })
    }

    /// What to do with an epoch's last batch when it is not full; [`LastBatch::Repeat`] fills it.
    #[must_use]
    pub fn last(mut self, last: LastBatch) -> Self {
        self.last = last;
        self
    }

    /// Leaves out positions of the run, each range as (the first, the first after it), counted over its epochs and over all
    /// ranks: what follows a skip begins a batch, and what precedes it ends one, as [`LoaderBuilder::last`] says of an
    /// epoch's last. A state that has not come past the beginning of a skip may be one of the run without it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.bin");
    /// # windrow::prepare::dummy(&path, 100, 100, 0, false)?;
    /// let view = windrow::open(&path)?.pack(4)?;
    /// let mut before = view.loader().batch_size(2).shuffle(false).rank(0, 1).build()?;
    /// let first = before.next_batch().unwrap()?;
    /// let mut after = view.loader().batch_size(2).shuffle(false).rank(0, 1).skip(&[(2, 8)]).build()?;
    /// after.resume(&before.state())?;
    /// let ninth = view.batch(&[8, 9], 0)?;
    /// assert_eq!(after.next_batch().unwrap()?.get::<i64>("labels")?, ninth.get::<i64>("labels")?);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn skip(mut self, ranges: &[(u64, u64)]) -> Self {
        self.skip = ranges.to_vec();
        self
    }

    /// This rank among `world_size`; otherwise the environment says, as in [`ranks::from_environment`].
    #[must_use]
    pub fn rank(mut self, rank: u64, world_size: u64) -> Self {
        self.shard = Some((rank, world_size));
        self
    }

    /// How many epochs a run has; `None` never ends.
    #[must_use]
    pub fn epochs(mut self, epochs: Option<u64>) -> Self {
        self.epochs = epochs;
        self
    }

    /// Threads that assemble batches ahead; 0 assembles each when asked. `None`: as many as there are cores, at most 8.
    #[must_use]
    pub fn num_threads(mut self, num_threads: Option<usize>) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// Batches kept ready.
    #[must_use]
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.prefetch = batches;
        self
    }

    /// Names the function that rows go through before they leave: a state of a run with another name is refused. The function
    /// itself decides no plan.
    #[must_use]
    pub fn map_name(mut self, name: Option<&str>) -> Self {
        self.map_name = name.map(str::to_string);
        self
    }

    /// A rank of a context group and the size of that group, whose ranks share each row: this one gets two chunks of it, or of each
    /// document where documents are apart, as context parallelism divides sequences. It decides no plan, and is no part of the recipe.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.bin");
    /// std::fs::write(&path, (0..9u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    /// let view = windrow::open(&path)?.pack(8)?;
    /// let mut loader = view.loader().batch_size(1).rank(0, 1).context((0, 2)).build()?;
    /// let batch = loader.next_batch().unwrap()?;
    /// assert_eq!(batch.get::<i64>("input_ids")?, [0, 1, 6, 7]);
    /// assert_eq!(batch.get::<i64>("labels")?, [1, 2, 7, 8]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn context(mut self, rank_and_size: (u64, u64)) -> Self {
        self.context = Some(rank_and_size);
        self
    }

    /// The rank of a context group and its size, where there is one.
    pub fn context_group(&self) -> Option<(u64, u64)> {
        self.context
    }

    /// Gives each rank rows of a batch that cost about the same, the same number of them: together the ranks have the rows of
    /// one rank. No part of the plan: a run may be resumed with it or without.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// # std::fs::write(&path, "[[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11], [12, 13], [14]]").unwrap();
    /// use windrow::Balance;
    ///
    /// let view = windrow::open(&path)?.crop(8)?;
    /// let first = |rank| view.loader().shuffle(false).batch_size(2).rank(rank, 2).balance(Some(Balance::Tokens)).build();
    /// assert_eq!(first(0)?.next_batch().unwrap()?.get::<i64>("lengths")?, [6, 1]);
    /// assert_eq!(first(1)?.next_batch().unwrap()?.get::<i64>("lengths")?, [5, 2]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn balance(mut self, by: Option<Balance>) -> Self {
        self.balance = by;
        self
    }

    /// How many batches of a rank make an optimiser's step: [`LoaderBuilder::batch_size`] counts the rows of one of them,
    /// [`LoaderBuilder::global_batch_size`] those of all. With [`LoaderBuilder::balance`] the dearest rows of every rank come together.
    #[must_use]
    pub fn accumulate(mut self, batches: u64) -> Self {
        self.accumulate = batches;
        self
    }

    /// What fields of a batch are called: `None` leaves one out, and those that are not named keep their names. Three may be named that
    /// are made of others, int32: `loss_masks`, 1 where `labels` are not what a loss ignores; `segments`, `segment_ids` from 1 on, 0 in
    /// padding; `seq_lens`, the differences of `cu_seqlens`, zeros behind. They decide no plan, and are no part of the recipe.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.bin");
    /// use windrow::DType;
    ///
    /// std::fs::write(&path, [5, 0, 6, 7u32].map(u32::to_le_bytes).concat()).unwrap();
    /// let view = windrow::open(&path)?.pack(windrow::Pack::new(3).eos(0).documents(Default::default()))?;
    /// let names = [("input_ids", Some("tokens")), ("loss_masks", Some("loss_mask")), ("cu_seqlens", None)];
    /// let loader = view.loader().rank(0, 1).names(names).dtypes([("loss_masks", DType::F32)]);
    /// let batch = loader.build()?.next_batch().unwrap()?;
    /// assert_eq!(batch.get::<i64>("tokens")?, [5, 0, 6]);
    /// assert_eq!(batch.get::<f32>("loss_mask")?, [1.0, 0.0, 1.0]); // After the end of a document.
    /// # Ok::<(), windrow::Error>(())
    /// ```
    #[must_use]
    pub fn names<'n>(mut self, names: impl IntoIterator<Item = (&'n str, Option<&'n str>)>) -> Self {
        let pair = |(ours, name): (&str, Option<&str>)| (ours.to_string(), name.map(str::to_string));
        self.outputs.names = names.into_iter().map(pair).collect();
        self
    }

    /// The dtypes of fields, by the names that the view gives them. A number that its dtype does not hold is an error of its batch.
    /// They decide no plan, and are no part of the recipe.
    #[must_use]
    pub fn dtypes<'n>(mut self, dtypes: impl IntoIterator<Item = (&'n str, DType)>) -> Self {
        self.outputs.dtypes = dtypes.into_iter().map(|(ours, dtype)| (ours.to_string(), dtype)).collect();
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
    /// `Config` where blocks do not fit the view or its number of samples, a context group its rows, or names and dtypes its fields; `Mismatch` when the views of a mixture have different
    /// tensors.
    pub fn plan(&self) -> Result<Plan> {
        let orders = self.orders()?;
        let plan = match &self.from {
            From::One(samples) => {
                let order = orders.first().copied().unwrap_or_default();
                let sampler = order.of(samples.len(), self.seed)?;
                let sampler = match &samples.grouping {
                    Some(grouping) => grouping.order(sampler, order != Order::Sequential, self.seed)?,
                    None => sampler,
                };
                Plan::new(vec![samples.feed().clone()], sampler, self.seed)
            }
            From::Mixed(mixture) => mixture.plan(&orders, self.seed, self.global_batch()?),
        };
        let plan = match self.budget()? {
            Some((budget, lengths)) => plan?.within(budget, lengths)?,
            None => plan?,
        };
        let plan = plan.skipping(&self.skip)?.mapped(self.map_name.as_deref())?;
        let given = self.balance.as_ref().map(|_| self.tokens.given(self.parts()));
        let plan = plan.balanced(self.balance.clone(), given.transpose()?.flatten());
        self.divided(plan)?.with_outputs(&self.outputs)
    }

    // The plan of a rank of a context group.
    fn divided(&self, plan: Plan) -> Result<Plan> {
        let Some((rank, size)) = self.context else { return Ok(plan) };
        let context = Context::new(rank, size)?;
        self.parts().iter().try_for_each(|samples| samples.recipe().view.check_context(context))?;
        plan.in_context(context)
    }

    /// Whether the order depends on the number of ranks: blocks whose numbers are chosen for the batch of all of them, or batches
    /// of one part each, where the batch is given for each.
    pub fn order_asks_for_ranks(&self) -> bool {
        let of_parts = matches!(&self.from, From::Mixed(mixture) if !mixture.has_sequence());
        matches!(self.batch, BatchSize::PerRank(_)) && (of_parts || self.shuffle.asks_for_batch())
    }

    /// Fixes the order that it has now, whatever the number of ranks and the batch size become.
    ///
    /// # Errors
    /// As [`LoaderBuilder::plan`].
    pub fn with_order_fixed(&self) -> Result<LoaderBuilder> {
        let from = match &self.from {
            From::Mixed(mixture) if !mixture.has_sequence() => {
                From::Mixed(mixture.with_rows(NonZeroU64::new(self.global_batch()?)))
            }
            from => from.clone(),
        };
        Ok(LoaderBuilder { from, shuffle: self.fixed()?, ..self.clone() })
    }

    // The order of each view.
    pub(crate) fn orders(&self) -> Result<Vec<Order>> {
        ordered::orders(
            &self.shuffle,
            self.parts(),
            (self.part_names(), &self.shares()),
            self.global_batch()?,
        )
    }

    /// Blocks as they were given, where the order has some.
    pub(crate) fn given_blocks(&self) -> Option<&Blocks> {
        match &self.shuffle {
            Shuffle::Blocks(blocks) => Some(blocks),
            Shuffle::Off | Shuffle::On | Shuffle::Parts(_) => None,
        }
    }

    // The order with its numbers.
    fn fixed(&self) -> Result<Shuffle> {
        if matches!(self.shuffle, Shuffle::Off | Shuffle::On) {
            return Ok(self.shuffle.clone());
        }
        let mut shapes = self.orders()?.into_iter().filter_map(|order| match order {
            Order::Blocks(shape) => Some(shape.into()),
            Order::Sequential | Order::Shuffle => None,
        });
        Ok(match &self.from {
            From::One(_) => shapes.next().map_or(Shuffle::On, Shuffle::Blocks),
            From::Mixed(_) => Shuffle::Parts(shapes.collect()),
        })
    }

    /// The views that it takes samples from: one, or those of a mixture in their order.
    pub fn parts(&self) -> &[Samples] {
        match &self.from {
            From::One(samples) => std::slice::from_ref(samples.as_ref()),
            From::Mixed(mixture) => &mixture.samples,
        }
    }

    /// Whether each batch is of one part of a mixture.
    pub(crate) fn is_by_part(&self) -> bool {
        matches!(&self.from, From::Mixed(mixture) if mixture.batches() == Batches::Part)
    }

    // Of each view, the largest share of a batch that it ever has.
    fn shares(&self) -> Vec<f64> {
        match &self.from {
            From::One(_) => vec![1.0],
            From::Mixed(mixture) => mixture.shares.of_batches(),
        }
    }

    pub(crate) fn global_batch(&self) -> Result<u64> {
        if let Some((budget, lengths)) = self.budget()? {
            return Ok(mean_rows(&budget, &lengths));
        }
        Ok(match self.batch {
            BatchSize::Global(rows) => rows,
            BatchSize::PerRank(_) => {
                self.batch.over(self.found()?.shard, self.accumulate).unwrap_or(u64::MAX)
            }
        })
    }

    // By what rows are dealt to ranks.
    pub(crate) fn balanced_by(&self) -> Option<&Balance> {
        self.balance.as_ref()
    }

    // What was given for a budget of tokens.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    // The budget of tokens that batches have, and the lengths of rows.
    pub(crate) fn budget(&self) -> Result<Option<(Budget, Arc<RowLengths>)>> {
        self.tokens.refuse_alone(self.balance.is_some())?;
        let found = self.tokens.budget(self.parts())?;
        if found.is_some() {
            self.refuse_beside_budget()?;
        }
        Ok(found)
    }

    // Both decide how many rows a batch has.
    fn refuse_beside_budget(&self) -> Result<()> {
        let other = match &self.from {
            _ if self.accumulate != 1 => "@accumulate@",
            From::Mixed(mixture) if mixture.batches() == Batches::Part => "batches of one part",
            From::One(_) | From::Mixed(_) => return Ok(()),
        };
        Err(Error::config(format!("@max_tokens@ beside {other}: both decide how many rows a batch has"))
            .field("max_tokens")
            .hint("give @global_batch_size@ in place of @max_tokens@, or leave the other out"))
    }

    /// The rule from step to step.
    pub(crate) fn steps(&self) -> Result<Steps> {
        Ok(Steps {
            global_batch_size: self.global_batch()?,
            shard: self.found()?.shard,
            last: self.last,
            epochs: self.epochs,
            micro_batches: self.accumulate,
            is_balanced: self.balance.is_some(),
        })
    }

    /// The loader, before its first batch.
    ///
    /// # Errors
    /// `Config` when the options would never give a batch, or the environment's rank makes no sense.
    pub fn build(&self) -> Result<Loader> {
        self.parts().iter().try_for_each(Samples::refuse_none)?;
        let Found { shard, by } = self.found()?;
        log::debug!("reads as rank {} of {} ({by})", shard.rank(), shard.world_size());
        let options = Options {
            batch: if self.tokens.most.is_some() {
                BatchSize::Global(self.global_batch()?)
            } else {
                self.batch
            },
            shard,
            last: self.last,
            epochs: self.epochs,
            num_threads: self.num_threads,
            prefetch: self.prefetch,
            accumulate: self.accumulate,
        };
        let loader = Loader::new(Arc::new(self.plan()?), &options)?;
        let orders = self.orders()?;
        room::check(&orders, self.parts(), &self.shares(), loader.steps())?;
        let (steps, nodes) = (loader.steps(), ranks::nodes(loader.steps().shard.world_size()));
        ordered::tell(&orders, self.parts(), self.part_names(), steps, nodes);
        self.tell_of_mixing(&orders)?;
        self.balance.as_ref().map_or(Ok(()), |by| self.check_balance(by, &orders))?;
        Ok(loader)
    }

    /// The plan as text, to trace it later.
    ///
    /// # Errors
    /// As [`LoaderBuilder::build`]; `Config` where records are scaled by a function of the caller's, or are in memory.
    pub fn recipe(&self) -> Result<Recipe> {
        for samples in self.parts() {
            samples.dataset().in_text()?;
            if let Scaler::Custom(custom) = samples.recipe().view.scaler() {
                return Err(function_in_text(custom.name()));
            }
        }
        let parts: Vec<RecipePart> =
            self.parts().iter().map(|samples| samples.recipe().without_secrets()).collect();
        let (mixture, part_ids) = match &self.from {
            From::One(_) => (None, false),
            // The global batch size says the rows of its batches.
            From::Mixed(mixture) => (Some(mixture.with_rows(None).shares), mixture.part_ids),
        };
        let plain = mixture.as_ref().filter(|shares| shares.is_plain());
        Ok(Recipe {
            version: 1,
            parts,
            names: self.part_names().to_vec(),
            weights: plain.map_or_else(Vec::new, |shares| shares.weights.clone()),
            stop: plain.map(|shares| shares.stop),
            mixture: mixture.clone().filter(|shares| !shares.is_plain()),
            part_ids,
            shuffle: self.fixed()?,
            seed: self.seed,
            global_batch_size: self.global_batch()?,
            max_tokens: self.tokens.most,
            multiple: self.tokens.multiple.filter(|multiple| *multiple != 1),
            pool: self.tokens.pool,
            lengths: self.tokens.lengths_in_text()?,
            drop_last: self.last == LastBatch::Drop,
            repeat_last: self.last == LastBatch::Repeat,
            skip: self.skip.clone(),
            map_name: self.map_name.clone(),
            balance: self.balance.as_ref().map(balance_text::in_text),
            accumulate: Some(self.accumulate).filter(|batches| *batches != 1),
            plan: Some(self.plan()?.identity()?.to_string()),
        })
    }

    fn found(&self) -> Result<Found> {
        match self.shard {
            Some((rank, world_size)) => Ok(Found { shard: Shard::new(rank, world_size)?, by: "arguments" }),
            None => ranks::from_environment(),
        }
    }
}
