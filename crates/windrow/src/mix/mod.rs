//! Several views as one, each with its share of every batch, or of the batches; shares may change, and mixtures may be parts.

pub(crate) mod batches;
pub(crate) mod mixed;
pub(crate) mod shares;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use windrow_core::plan::{Feed, Plan};
use windrow_core::sampler::{Mix, MixOptions, Order, PartOf, Phase, Stop};
use windrow_core::{DType, Error, Kind, Result};

use crate::mix::batches::Batches;
use crate::mix::shares::Shares;
use crate::views::samples::Samples;

/// A weighted mixture of views.
#[derive(Clone)]
pub struct Mixture {
    // Of its views, those of mixtures in it as "name/theirs".
    pub(crate) names: Vec<String>,
    pub(crate) samples: Vec<Samples>,
    pub(crate) shares: Shares,
    pub(crate) part_ids: bool,
    // Made once: its tables are the most of what a mixture takes to make.
    sequence: Option<Arc<Mix>>,
}

impl fmt::Debug for Mixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mixture")
            .field("names", &self.names)
            .field("samples", &self.samples)
            .field("shares", &self.shares)
            .finish_non_exhaustive()
    }
}

/// What a mixture is made of.
#[derive(Clone, Debug)]
pub enum Part {
    /// A view.
    View(Box<Samples>),
    /// A mixture. One pass of it is one of its epochs.
    Mix(Box<Mixture>),
}

/// How parts are mixed.
#[derive(Clone, Debug, Default)]
pub struct MixtureOptions {
    /// When an epoch ends. Phases and `max_epochs` want [`Stop::Never`].
    pub stop: Stop,
    /// Other weights, by part, from a sample of the run on, counted over all ranks. A part that is not named rests. Until the first
    /// one begins, the parts' own weights hold.
    pub phases: Vec<(u64, Vec<(String, f64)>)>,
    /// Passes of a part after which its share goes to the others.
    pub max_epochs: Vec<(String, u64)>,
    /// Whether batches have `part`, an `int32` for each row: the number of its view.
    pub part_ids: bool,
    /// What each batch is made of. Batches of one part may differ in the lengths of their tensors from part to part.
    pub batches: Batches,
    /// Rows of a batch over all ranks, where batches are of one part; `None`: the loader's batch size. A loader of another one is
    /// refused.
    pub rows: Option<u64>,
}

impl From<Samples> for Part {
    fn from(samples: Samples) -> Part {
        Part::View(Box::new(samples))
    }
}

impl From<Mixture> for Part {
    fn from(mixture: Mixture) -> Part {
        Part::Mix(Box::new(mixture))
    }
}

/// Mixes views: of every block of samples, each view gives its share to within one sample.
///
/// # Errors
/// `Config` when there is none, when names repeat, a weight is not a finite number above 0, or a view is empty;
/// `Mismatch` when the views have different tensors.
pub fn mix(parts: Vec<(String, Samples, f64)>, stop: Stop) -> Result<Mixture> {
    let parts = parts.into_iter().map(|(name, samples, weight)| (name, samples.into(), weight)).collect();
    mix_with(parts, &MixtureOptions { stop, ..MixtureOptions::default() })
}

/// Mixes views and mixtures, in shares that may change.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("tokens.bin");
/// # windrow::prepare::dummy(&path, 1000, 100_001, 0, false)?;
/// use windrow::{MixtureOptions, Stop, mix_with};
///
/// let view = windrow::open(&path)?.pack(10)?;
/// let parts = vec![("web".into(), view.clone().into(), 0.9), ("code".into(), view.into(), 0.1)];
/// let options = MixtureOptions {
///     stop: Stop::Never,
///     phases: vec![(1000, vec![("web".into(), 0.5), ("code".into(), 0.5)])],
///     ..MixtureOptions::default()
/// };
/// let plan = mix_with(parts, &options)?.loader().plan()?;
/// assert_eq!(plan.sampler().samples_of_views(2000), [1400, 600]);
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// Each batch of one part: the loader's batch size is part of the plan then.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("tokens.bin");
/// # windrow::prepare::dummy(&path, 1000, 100_001, 0, false)?;
/// use windrow::{Batches, MixtureOptions, mix_with};
///
/// let ds = windrow::open(&path)?;
/// let parts = vec![("short".into(), ds.pack(10)?.into(), 0.9), ("long".into(), ds.pack(80)?.into(), 0.1)];
/// let options = MixtureOptions { batches: Batches::Part, ..MixtureOptions::default() };
/// let loader = mix_with(parts, &options)?.loader().global_batch_size(8).rank(0, 1).build()?;
/// let lengths = loader.take(10).map(|batch| Ok(batch?.fields()[0].shape[0])).collect::<windrow::Result<Vec<_>>>()?;
/// assert_eq!(lengths.iter().filter(|length| **length == 80).count(), 1);
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// As [`mix`], where a weight may be 0 if there are phases; `Config` for phases that do not follow one another, for names that no
/// part has, and as [`windrow_core::sampler::Mix::of`].
pub fn mix_with(parts: Vec<(String, Part, f64)>, options: &MixtureOptions) -> Result<Mixture> {
    let shares = Shares::new(&parts, options)?;
    let mut mixture = Mixture {
        names: Vec::new(),
        samples: Vec::new(),
        shares,
        part_ids: options.part_ids,
        sequence: None,
    };
    for (name, part, _) in parts {
        match part {
            Part::View(samples) => mixture.add(name, *samples)?,
            Part::Mix(inner) => {
                mixture.part_ids |= inner.part_ids;
                for (inner, samples) in inner.names.into_iter().zip(inner.samples) {
                    mixture.add(format!("{name}/{inner}"), samples)?;
                }
            }
        }
    }
    mixture.feeds()?;
    // Where the rows of batches of one part are not known yet, weights and phases still are.
    let sequence = mixture.sequence_of(mixture.shares.rows.unwrap_or(NonZeroU64::MIN))?;
    mixture.sequence = mixture.has_sequence().then_some(sequence);
    Ok(mixture)
}

impl Mixture {
    /// Leaves out some records of each named part.
    ///
    /// # Errors
    /// As [`Samples::without`]; `OutOfRange` for a part that it has not.
    pub fn without(&self, records: &[(String, Vec<u64>)]) -> Result<Mixture> {
        let mut samples = self.samples.clone();
        for (name, records) in records {
            let part = part_named(&self.names, name)?;
            samples[part] = samples[part].without(records).map_err(|e| e.or_at(name))?;
        }
        Mixture::assembled(samples, &self.shares, self.part_ids)
    }

    /// Views mixed as `shares` say, in the order of their numbers.
    ///
    /// # Errors
    /// As [`mix_with`]; `Config` where there are not as many views as shares.
    pub fn assembled(samples: Vec<Samples>, shares: &Shares, part_ids: bool) -> Result<Mixture> {
        let found = samples.len();
        let mut left = samples.into_iter();
        let mixture = shares.mixture(&mut left, part_ids)?;
        match left.next() {
            None => Ok(mixture),
            Some(_) => {
                Err(Error::config(format!("a mixture of fewer views than the {found} that are given")))
            }
        }
    }

    fn add(&mut self, name: String, samples: Samples) -> Result<()> {
        if self.names.contains(&name) {
            return Err(Error::config(format!("two parts of the mixture are called {name:?}")));
        }
        if let Some(why) = samples.shortage()? {
            return Err(Error::config(format!("{name:?} has no samples: {why}"))
                .at(samples.dataset().paths().to_string()));
        }
        if samples.grouping.is_some() {
            return Err(Error::config(format!(
                "{name:?} has groups of like lengths, which a mixture would part"
            ))
            .field("group")
            .hint("cut the parts of a mixture without group; pack or bins pad less"));
        }
        if let (Some(first), Some(its_name)) = (self.samples.first(), self.names.first()) {
            let names = [its_name, &name].map(|name| format!("{name:?}"));
            let names = names.each_ref().map(String::as_str);
            match self.shares.batches {
                Batches::Mixed => first.feed().check_rows(samples.feed(), names)?,
                Batches::Part => first.feed().check_batches(samples.feed(), names)?,
            }
        }
        self.names.push(name);
        self.samples.push(samples);
        Ok(())
    }

    /// Its views, those of mixtures in it included: name, samples, and the largest share that it ever has.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &Samples, f64)> {
        self.names
            .iter()
            .map(String::as_str)
            .zip(&self.samples)
            .zip(self.shares.of_views())
            .map(|((n, s), w)| (n, s, w))
    }

    /// Names, weights and phases of its parts.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// What its batches are made of.
    pub fn batches(&self) -> Batches {
        self.shares.batches
    }

    /// Rows of a batch over all ranks, where batches are of one part and it was said how many.
    pub fn rows(&self) -> Option<NonZeroU64> {
        self.shares.rows
    }

    /// Whether it has samples by number: where batches are of one part, they are known by the rows of a batch alone.
    pub fn has_sequence(&self) -> bool {
        self.shares.batches == Batches::Mixed || self.shares.rows.is_some()
    }

    /// Where the shares of its parts change, as phases begin and parts have had their last epoch, and what they are: of the weights
    /// as they are kept, which are multiples of 1/65,536 at the finest.
    ///
    /// # Errors
    /// As [`Mixture::sequence`].
    pub fn phases(&self) -> Result<Vec<Phase>> {
        Ok(self.sequence()?.shares())
    }

    /// Whether batches have `part`, the number of the view of each row.
    pub fn has_part_ids(&self) -> bool {
        self.part_ids
    }

    /// Its samples one after the other, each part in the order of its own: what a reader by number goes through.
    ///
    /// # Errors
    /// `Config` where batches are of one part and nobody said how many [rows](Mixture::rows) they have.
    pub fn sequence(&self) -> Result<Arc<Mix>> {
        self.sequence.clone().ok_or_else(|| {
            Error::config("the samples of a mixture by number, where each batch is of one part")
                .field("rows")
                .hint("give the mixture @rows@, the batch size over all ranks; a loader needs none")
        })
    }

    fn sequence_of(&self, rows: NonZeroU64) -> Result<Arc<Mix>> {
        Mix::of(&self.options(&vec![Order::Sequential; self.samples.len()], rows)?, 0).map(Arc::new)
    }

    /// When its epoch ends.
    pub fn stop(&self) -> Stop {
        self.shares.stop
    }

    /// Its views, as its batches are made of them.
    ///
    /// # Errors
    /// `Config` for numbers of parts in batches of records.
    pub fn feeds(&self) -> Result<Vec<Feed>> {
        let feed = |samples: &Samples| {
            if self.part_ids { samples.feed().clone().with_part_ids() } else { Ok(samples.feed().clone()) }
        };
        let feeds = self.samples.iter().map(feed).collect::<Result<_>>()?;
        match self.shares.batches {
            Batches::Mixed => Ok(feeds),
            Batches::Part => Feed::told_apart(feeds),
        }
    }

    /// Sets the dtype of the numbers of all its views.
    ///
    /// # Errors
    /// As [`Samples::with_dtype`] and [`mix_with`].
    pub fn with_dtype(&self, dtype: DType) -> Result<Mixture> {
        let samples = self.samples.iter().map(|samples| samples.with_dtype(dtype)).collect::<Result<_>>()?;
        Mixture::assembled(samples, &self.shares, self.part_ids)
    }

    /// The pure function of its batches, which have `rows` rows over all ranks where it says nothing else and they are of one part.
    ///
    /// # Errors
    /// As [`mix_with`]; as [`windrow_core::sampler::Blocks::new`].
    pub(crate) fn plan(&self, orders: &[Order], seed: u64, rows: u64) -> Result<Plan> {
        let rows = self.shares.rows.or(NonZeroU64::new(rows));
        let rows = rows.ok_or_else(|| Error::config("a batch size of 0"))?;
        let sampler = Mix::of(&self.options(orders, rows)?, seed)?;
        Ok(Plan::new(self.feeds()?, Arc::new(sampler), seed)?.named(self.names.clone()))
    }

    /// With the rows of its batches said, where they are of one part.
    pub(crate) fn with_rows(&self, rows: Option<NonZeroU64>) -> Mixture {
        let mut mixture = self.clone();
        if self.shares.batches == Batches::Part {
            mixture.shares.rows = rows;
        }
        mixture
    }

    fn options(&self, orders: &[Order], rows: NonZeroU64) -> Result<MixOptions> {
        let views = self.samples.iter().zip(orders);
        let mut views = views.map(|(samples, &order)| PartOf::Samples { len: samples.len(), order });
        self.shares.options(&mut views, rows).ok_or_else(|| {
            Error::config(format!("a mixture of {} views in {} orders", self.samples.len(), orders.len()))
        })
    }
}

/// The number of the part with this name, among the names of a mixture's parts in order.
///
/// # Errors
/// `OutOfRange` that lists the names.
pub fn part_named(names: &[String], name: &str) -> Result<usize> {
    names.iter().position(|other| other == name).ok_or_else(|| {
        let error = Error::new(Kind::OutOfRange, format!("no part is named {name:?}")).field("part");
        if names.is_empty() {
            error.hint("the plan is of one view, which has no name")
        } else {
            error.hint(format!("the parts are {}", names.join(", ")))
        }
    })
}

/// Shares in proportion to sizes to the power of `exponent`: 1 keeps the proportions, 0 makes all equal.
///
/// ```
/// assert_eq!(windrow::temperature(&[900, 100], 0.5)?, [0.75, 0.25]);
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `Config` when there is no size, one is 0, or the exponent is not a finite number.
pub fn temperature(sizes: &[u64], exponent: f64) -> Result<Vec<f64>> {
    if sizes.is_empty() || sizes.contains(&0) {
        return Err(Error::config(format!("shares of the sizes {sizes:?}: each must be above 0")));
    }
    if !exponent.is_finite() {
        return Err(Error::config(format!("an exponent of {exponent}: expected a number, as 0.7")));
    }
    // Of the largest or smallest, so that no power is infinite.
    let unit = sizes.iter().copied().reduce(if exponent > 0.0 { u64::max } else { u64::min }).unwrap_or(1);
    let powers: Vec<f64> = sizes.iter().map(|&size| (size as f64 / unit as f64).powf(exponent)).collect();
    let all: f64 = powers.iter().sum();
    Ok(powers.into_iter().map(|power| power / all).collect())
}
