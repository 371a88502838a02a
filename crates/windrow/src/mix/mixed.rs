//! The shares of a mixture from its parts, and the mixture again from its shares.

use std::num::NonZeroU64;

use windrow_core::sampler::Phase;
use windrow_core::{Error, Result};

use crate::mix::batches::Batches;
use crate::mix::shares::Shares;
use crate::mix::{Mixture, MixtureOptions, Part, mix_with};
use crate::views::samples::Samples;

impl Shares {
    pub(crate) fn new(parts: &[(String, Part, f64)], options: &MixtureOptions) -> Result<Shares> {
        let names: Vec<String> = parts.iter().map(|(name, ..)| name.clone()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(Error::config(format!("two parts of the mixture are called {:?}", twice.1)));
        }
        for (name, _, weight) in parts {
            check_weight(name, *weight, !options.phases.is_empty())?;
        }
        let known = |name: &str, field: &str| {
            if names.iter().any(|known| known == name) {
                Ok(())
            } else {
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
            batches: options.batches,
            rows: rows_of(parts, options)?,
            names,
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
                batches: self.batches,
                rows: self.rows.map(NonZeroU64::get),
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

// The rows of a batch of one part, as a mixture or the mixtures among its parts say; none where nobody says it.
fn rows_of(parts: &[(String, Part, f64)], options: &MixtureOptions) -> Result<Option<NonZeroU64>> {
    let refused = |what: String, hint: &str| Err(Error::config(what).field("batches").hint(hint.to_string()));
    let own = match options.rows {
        None => None,
        Some(rows) if options.batches == Batches::Mixed => {
            return refused(
                format!("@rows={rows}@ of a mixture whose batches have rows of all parts"),
                "the loader's batch size says how many rows a batch has; @batches=part@ makes each of one part",
            );
        }
        Some(rows) => {
            Some(NonZeroU64::new(rows).ok_or_else(|| Error::config("a batch size of 0").field("rows"))?)
        }
    };
    let mut rows = own;
    for (name, part, _) in parts {
        let Part::Mix(mixture) = part else { continue };
        let inner = &mixture.shares;
        if inner.batches == Batches::Part && options.batches == Batches::Mixed {
            return refused(
                format!(
                    "{name:?} has @batches=part@, and the mixture around it takes rows of all parts for a batch"
                ),
                "give @batches=part@ to both, or to the one around alone, for which a mixture is one part",
            );
        }
        match (rows, inner.rows) {
            (Some(ours), Some(theirs)) if ours != theirs => {
                return refused(
                    format!(
                        "{name:?} has batches of {theirs} rows, and other parts of the mixture batches of {ours}"
                    ),
                    "give all of them the same @rows@, the batch size over all ranks",
                );
            }
            (ours, theirs) => rows = ours.or(theirs),
        }
    }
    Ok(rows)
}
