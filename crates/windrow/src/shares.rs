//! The names and weights of a mixture's parts, and where the weights change: what a recipe holds of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windrow_core::sampler::{MixOptions, MixPart, PartOf, Phase, Stop};
use windrow_core::{Error, Result};

use crate::dataset::Samples;
use crate::mixture::{Mixture, MixtureOptions, Part, mix_with};

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
    pub(crate) fn new(parts: &[(String, Part, f64)], options: &MixtureOptions) -> Result<Shares> {
        let names: Vec<String> = parts.iter().map(|(name, ..)| name.clone()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(Error::config(format!("two parts of the mixture are called {:?}", twice.1)));
        }
        for (name, _, weight) in parts {
            check_weight(name, *weight, !options.phases.is_empty())?;
        }
        let known = |name: &str, field: &str| match names.iter().any(|known| known == name) {
            true => Ok(()),
            false => {
                Err(Error::config(format!("{field} names {name:?}, which is not a part of the mixture"))
                    .field(field)
                    .hint(format!("the parts are {}", names.join(", "))))
            }
        };
        let mut phases = Vec::new();
        for (start, weights) in &options.phases {
            for (name, weight) in weights {
                known(name, "phases")?;
                check_weight(name, *weight, true)?;
            }
            let of =
                |name: &String| weights.iter().find(|(n, _)| n == name).map_or(0.0, |(_, weight)| *weight);
            phases.push(Phase { start: *start, weights: names.iter().map(of).collect() });
        }
        options.max_epochs.iter().try_for_each(|(name, _)| known(name, "max_epochs"))?;
        let mixtures = parts.iter().filter_map(|(name, part, _)| match part {
            Part::View(_) => None,
            Part::Mix(mixture) => Some((name.clone(), mixture.shares.clone())),
        });
        Ok(Shares {
            weights: parts.iter().map(|(_, _, weight)| *weight).collect(),
            stop: options.stop,
            phases,
            max_epochs: options.max_epochs.iter().cloned().collect(),
            mixtures: mixtures.collect(),
            names,
        })
    }

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

    /// The same in numbers, of views in their order; `None` where they run out.
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

    /// The mixture of views in their order.
    ///
    /// # Errors
    /// As [`mix_with`]; `Config` where the views run out.
    pub(crate) fn mixture(
        &self,
        views: &mut dyn Iterator<Item = Samples>,
        part_ids: bool,
    ) -> Result<Mixture> {
        let n_views = |views: Option<Samples>| {
            views.ok_or_else(|| Error::config("a mixture of more views than are given"))
        };
        if self.weights.len() != self.names.len()
            || self.phases.iter().any(|phase| phase.weights.len() != self.names.len())
        {
            return Err(Error::config(format!(
                "a mixture of {} parts with other numbers of weights",
                self.names.len()
            )));
        }
        let mut parts = Vec::new();
        for (name, weight) in self.names.iter().zip(&self.weights) {
            let part = match self.mixtures.get(name) {
                Some(inner) => inner.mixture(views, false)?.into(),
                None => n_views(views.next())?.into(),
            };
            parts.push((name.clone(), part, *weight));
        }
        let named = |phase: &Phase| {
            (phase.start, self.names.iter().cloned().zip(phase.weights.iter().copied()).collect())
        };
        mix_with(
            parts,
            &MixtureOptions {
                stop: self.stop,
                phases: self.phases.iter().map(named).collect(),
                max_epochs: self.max_epochs.iter().map(|(name, n)| (name.clone(), *n)).collect(),
                part_ids,
            },
        )
    }
}

fn check_weight(name: &str, weight: f64, may_rest: bool) -> Result<()> {
    if weight.is_finite() && (weight > 0.0 || (may_rest && weight == 0.0)) {
        return Ok(());
    }
    let expected = if may_rest { "0 or more" } else { "above 0" };
    Err(Error::config(format!("the weight of {name:?} is {weight}; it must be a number {expected}")))
}
