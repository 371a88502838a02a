//! The kinds of order, as one value: what is chosen before it is known how many samples there are.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BlockShape, Blocks, Sampler, Sequential, Shuffle};
use crate::error::Result;

/// The kind of an order of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By number: [`Sequential`].
    Sequential,
    /// Any sample at any position: [`Shuffle`].
    #[default]
    Shuffle,
    /// Neighbours at about the same time: [`Blocks`].
    Blocks(BlockShape),
}

impl Order {
    /// The order of `n` samples under a seed.
    ///
    /// # Errors
    /// As [`Blocks::new`].
    pub fn of(self, n: u64, seed: u64) -> Result<Arc<dyn Sampler>> {
        Ok(match self {
            Order::Sequential => Arc::new(Sequential::new(n)),
            Order::Shuffle => Arc::new(Shuffle::new(n, seed)),
            Order::Blocks(shape) => Arc::new(Blocks::new(n, seed, shape)?),
        })
    }
}
