//! The names and weights of a mixture's parts, and where the weights change: what a recipe holds of it.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use windrow_core::sampler::{MixOptions, MixPart, PartOf, Phase, Stop};

use crate::mix::batches::Batches;
use crate::views::option::is_default;

/// The shares of a mixture's parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// The parts' names.
    pub names: Vec<String>,
    /// Their weights, of the beginning.
    pub weights: Vec<f64>,
    /// When an epoch ends.
    pub stop: Stop,
    /// Other weights from a sample on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Passes of a part after which its share goes to the others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_epochs: BTreeMap<String, u64>,
    /// Parts that are mixtures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mixtures: BTreeMap<String, Shares>,
    /// What batches are made of.
    #[serde(default, skip_serializing_if = "is_default")]
    pub batches: Batches,
    /// Rows of a batch over all ranks, where batches are of one part and it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<NonZeroU64>,
}

impl Shares {
    /// Whether names, weights and `stop` say all of it.
    pub(crate) fn is_plain(&self) -> bool {
        let is_mixed = self.batches == Batches::Mixed;
        is_mixed && self.phases.is_empty() && self.max_epochs.is_empty() && self.mixtures.is_empty()
    }

    /// The weights of views that keep them; none of shares that change, and of mixtures in a mixture.
    pub fn of_plain_views(&self) -> &[f64] {
        if self.is_plain() { &self.weights } else { &[] }
    }

    /// By view, the largest share of all samples that it ever has.
    pub(crate) fn of_views(&self) -> Vec<f64> {
        self.by_view(self.largest(), &Shares::of_views)
    }

    /// By view, the largest share of a batch that it ever has.
    pub(crate) fn of_batches(&self) -> Vec<f64> {
        match self.batches {
            Batches::Mixed => self.of_views(),
            Batches::Part => self.by_view(vec![1.0; self.names.len()], &Shares::of_batches),
        }
    }

    // By part, the largest share that it ever has.
    fn largest(&self) -> Vec<f64> {
        let from_the_start = self.phases.first().is_some_and(|phase| phase.start == 0);
        let own = (!from_the_start).then_some(&self.weights);
        let mut shares = vec![0.0f64; self.names.len()];
        for weights in own.into_iter().chain(self.phases.iter().map(|phase| &phase.weights)) {
            let all: f64 = weights.iter().sum();
            for (share, weight) in shares.iter_mut().zip(weights) {
                *share = share.max(weight / all);
            }
        }
        shares
    }

    // Shares of parts as those of views, which are those of mixtures among the parts.
    fn by_view(&self, shares: Vec<f64>, of_mixture: &dyn Fn(&Shares) -> Vec<f64>) -> Vec<f64> {
        let of_part = |(name, share): (&String, f64)| match self.mixtures.get(name) {
            None => vec![share],
            Some(inner) => of_mixture(inner).into_iter().map(|of_view| share * of_view).collect(),
        };
        self.names.iter().zip(shares).flat_map(of_part).collect()
    }

    /// The shares in numbers, of views in their order, where batches of one part have `rows` rows; `None` where the views run out.
    pub(crate) fn options(
        &self,
        views: &mut dyn Iterator<Item = PartOf>,
        rows: NonZeroU64,
    ) -> Option<MixOptions> {
        let part = |(name, &weight): (&String, &f64)| {
            let of = match self.mixtures.get(name) {
                Some(inner) => PartOf::Mix(inner.options(views, rows)?),
                None => views.next()?,
            };
            Some(MixPart { of, weight, most_passes: self.max_epochs.get(name).copied() })
        };
        Some(MixOptions {
            parts: self.names.iter().zip(&self.weights).map(part).collect::<Option<_>>()?,
            stop: self.stop,
            phases: self.phases.clone(),
            rows: (self.batches == Batches::Part).then_some(rows),
        })
    }
}
