//! What a mixture is made of, before its seed is chosen.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::sampler::Order;

/// When an epoch of a mixture ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Stop {
    /// Before the first sample that would come a second time: no sample twice, some never.
    #[default]
    First,
    /// As soon as every sample of every part has come: none is left out, some come again.
    All,
    /// Never: one endless epoch.
    Never,
}

impl Stop {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Stop::First => "first",
            Stop::All => "all",
            Stop::Never => "never",
        }
    }
}

/// Parts, their shares, and where the shares change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MixOptions {
    /// The parts.
    pub parts: Vec<MixPart>,
    /// When an epoch ends; phases and most passes want [`Stop::Never`].
    pub stop: Stop,
    /// Other shares from a position on, in order. Until the first one begins, the parts' own weights hold.
    pub phases: Vec<Phase>,
    /// Rows of a batch, where each batch is of one part: then shares are of batches. A mixture among the parts is one part, or is
    /// in such batches too.
    pub rows: Option<NonZeroU64>,
}

/// A part of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct MixPart {
    /// What it is.
    pub of: PartOf,
    /// Its share, in proportion to those of the other parts.
    pub weight: f64,
    /// Passes after which its share goes to the other parts.
    pub most_passes: Option<u64>,
}

/// What a part of a mixture is.
#[derive(Clone, Debug, PartialEq)]
pub enum PartOf {
    /// A view.
    Samples {
        /// How many samples it has.
        len: u64,
        /// Their order.
        order: Order,
    },
    /// A mixture. One pass of it is one of its epochs, and its parts continue from pass to pass.
    Mix(MixOptions),
}

/// Shares from a position of a mixture on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// The position: samples of the mixture before it.
    pub start: u64,
    /// The weight of each part; one of weight 0 rests.
    pub weights: Vec<f64>,
}
