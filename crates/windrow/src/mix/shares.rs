//! The names and weights of a mixture's parts, and where the weights change: what a recipe holds of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windrow_core::sampler::{MixOptions, MixPart, PartOf, Phase, Stop};

/// The shares of a mixture's parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

impl Shares {
    /// Whether names, weights and `stop` say all of it.
    pub(crate) fn is_plain(&self) -> bool {
        self.phases.is_empty() && self.max_epochs.is_empty() && self.mixtures.is_empty()
    }

    /// The weights of views that keep them; none of shares that change, and of mixtures in a mixture.
    pub fn of_plain_views(&self) -> &[f64] {
        if self.is_plain() { &self.weights } else { &[] }
    }

    /// By view, the largest share that it ever has.
    pub(crate) fn of_views(&self) -> Vec<f64> {
        let from_the_start = self.phases.first().is_some_and(|phase| phase.start == 0);
        let own = (!from_the_start).then_some(&self.weights);
        let mut shares = vec![0.0f64; self.names.len()];
        for weights in own.into_iter().chain(self.phases.iter().map(|phase| &phase.weights)) {
            let all: f64 = weights.iter().sum();
            for (share, weight) in shares.iter_mut().zip(weights) {
                *share = share.max(weight / all);
            }
        }
        let of_part = |(name, share): (&String, f64)| match self.mixtures.get(name) {
            None => vec![share],
            Some(inner) => inner.of_views().into_iter().map(|of_view| share * of_view).collect(),
        };
        self.names.iter().zip(shares).flat_map(of_part).collect()
    }

    /// The shares in numbers, of views in their order; `None` where they run out.
    pub(crate) fn options(&self, views: &mut dyn Iterator<Item = PartOf>) -> Option<MixOptions> {
        let part = |(name, &weight): (&String, &f64)| {
            let of = match self.mixtures.get(name) {
                Some(inner) => PartOf::Mix(inner.options(views)?),
                None => views.next()?,
            };
            Some(MixPart { of, weight, most_passes: self.max_epochs.get(name).copied() })
        };
        Some(MixOptions {
            parts: self.names.iter().zip(&self.weights).map(part).collect::<Option<_>>()?,
            stop: self.stop,
            phases: self.phases.clone(),
        })
    }
}
