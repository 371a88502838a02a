//! Several views as one, each with its share of every batch.

use std::sync::Arc;

use windrow_core::plan::Plan;
use windrow_core::sampler::{Mix, Order, Stop};
use windrow_core::{Error, Kind, Result};

use crate::dataset::Samples;

/// A weighted mixture of views.
#[derive(Clone)]
pub struct Mixture {
    pub(crate) names: Vec<String>,
    pub(crate) samples: Vec<Samples>,
    pub(crate) weights: Vec<f64>,
    pub(crate) stop: Stop,
}

/// Mixes views: of every block of samples, each view gives its share to within one sample.
///
/// # Errors
/// `Config` when there is none, when names repeat, a weight is not a finite number above 0, or a view is empty;
/// `Mismatch` when the views lay different tensors.
pub fn mix(parts: Vec<(String, Samples, f64)>, stop: Stop) -> Result<Mixture> {
    let mut mixture = Mixture { names: Vec::new(), samples: Vec::new(), weights: Vec::new(), stop };
    for (name, samples, weight) in parts {
        if mixture.names.contains(&name) {
            return Err(Error::config(format!("two parts of the mixture are called {name:?}")));
        }
        if !(weight.is_finite() && weight > 0.0) {
            return Err(Error::config(format!(
                "the weight of {name:?} is {weight}; it must be a number above 0"
            )));
        }
        if samples.is_empty() {
            return Err(
                Error::config(format!("{name:?} has no samples")).at(samples.dataset().paths().to_string())
            );
        }
        if let (Some(first), Some(its_name)) = (mixture.samples.first(), mixture.names.first()) {
            let names = [its_name, &name].map(|name| format!("{name:?}"));
            first.feed().check_rows(samples.feed(), [&names[0], &names[1]])?;
        }
        mixture.names.push(name);
        mixture.samples.push(samples);
        mixture.weights.push(weight);
    }
    mixture.plan(&vec![Order::Shuffle; mixture.samples.len()], 0)?;
    Ok(mixture)
}

impl Mixture {
    /// The parts: name, samples, weight.
    pub fn parts(&self) -> impl Iterator<Item = (&str, &Samples, f64)> {
        self.names
            .iter()
            .map(String::as_str)
            .zip(&self.samples)
            .zip(self.weights.iter().copied())
            .map(|((n, s), w)| (n, s, w))
    }

    /// Its samples one after the other, each part in the order of its own: what a reader by number goes through.
    ///
    /// # Errors
    /// `Config` when the weights cannot be mixed.
    pub fn sequence(&self) -> Result<Mix> {
        Mix::new(&self.sizes(), false, 0, self.stop)
    }

    /// When its epoch ends.
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// The pure function of its batches.
    ///
    /// # Errors
    /// As [`mix`]; as [`windrow_core::sampler::Blocks::new`].
    pub(crate) fn plan(&self, orders: &[Order], seed: u64) -> Result<Plan> {
        let parts: Vec<_> =
            self.sizes().iter().zip(orders).map(|(&(n, weight), &o)| (n, weight, o)).collect();
        let sampler = Mix::in_orders(&parts, seed, self.stop)?;
        let feeds = self.samples.iter().map(|samples| samples.feed().clone()).collect();
        Plan::new(feeds, Arc::new(sampler), seed)
    }

    fn sizes(&self) -> Vec<(u64, f64)> {
        self.parts().map(|(_, samples, weight)| (samples.len(), weight)).collect()
    }
}

/// The number of the part with this name, among the names of a mixture's parts in order.
///
/// # Errors
/// `OutOfRange` that lists the names.
pub fn part_named(names: &[String], name: &str) -> Result<usize> {
    names.iter().position(|other| other == name).ok_or_else(|| {
        let error = Error::new(Kind::OutOfRange, format!("no part is named {name:?}")).field("part");
        match names.is_empty() {
            true => error.hint("the plan is of one view, which has no name"),
            false => error.hint(format!("the parts are {}", names.join(", "))),
        }
    })
}
