//! Data behind URLs: what its store gives, which order and cache to choose by that, and what to type.

use std::collections::HashSet;

use serde::Serialize;
use windrow_core::{Kind, Result};

use super::afford::{self, Choice, Known, Limit, Run};
use super::typed::typed;
use crate::order::blocks::Blocks;
use crate::order::measure::Measured;
use crate::run::builder::LoaderBuilder;
use crate::views::samples::Samples;

/// What a store affords.
#[derive(Clone, Debug, Serialize)]
pub struct Afforded {
    /// How fast it answers.
    pub measured: Measured,
    /// What is known of it and of the samples.
    pub known: Known,
    /// What the run needs.
    pub run: Run,
    /// The four limits.
    pub limits: Limits,
    /// Bytes that a connection brings in the time that a request waits for its first one: what is less apart is one request, where
    /// it is kept.
    pub gap_bytes: f64,
    /// Requests of an epoch.
    pub requests_of_epoch: Requests,
    /// Which order to choose.
    pub choice: Choice,
    /// What to type for it, in Python and on the command line.
    #[serde(rename = "type")]
    pub typed: Vec<String>,
    /// The numbers of an order by blocks; else why there is none.
    #[serde(skip)]
    pub blocks: std::result::Result<Blocks, String>,
}

/// The four limits, where each sample is a request, and where a block is one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    /// Of samples one by one.
    pub each: [Limit; 4],
    /// Of blocks; `None` where the view has none.
    pub blocks: Option<[Limit; 4]>,
}

/// Requests of an epoch, of all nodes together.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Requests {
    /// Of samples one by one.
    pub each: f64,
    /// Of blocks; `None` where the view has none.
    pub blocks: Option<f64>,
}

/// Whether any of its files is behind a URL.
pub(super) fn is_far(builder: &LoaderBuilder) -> bool {
    builder.parts().iter().any(|samples| samples.feed().source().files().iter().any(|file| file.is_far()))
}

/// Measures the store, and chooses.
pub(super) fn afforded(
    builder: &LoaderBuilder,
    run: &Run,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Afforded>> {
    let Some(samples) = builder.parts().first() else { return Ok(None) };
    let measured = samples.dataset().measure(stop)?;
    let blocks = blocks_of(builder, run)?;
    let known = known(samples, &measured, blocks.as_ref().ok());
    let choice = afford::choose(&known, run);
    let of_epoch = |together| afford::of_epoch(&known, run, together).0;
    Ok(Some(Afforded {
        measured,
        known,
        run: *run,
        limits: Limits {
            each: afford::limits(&known, run, 1.0),
            blocks: known.block.map(|block| afford::limits(&known, run, block)),
        },
        gap_bytes: known.gap_bytes(),
        requests_of_epoch: Requests { each: of_epoch(1.0), blocks: known.block.map(of_epoch) },
        choice,
        typed: typed(builder, &known, choice)?,
        blocks,
    }))
}

// The numbers of an order by blocks for the batch of all nodes; else why there is none.
fn blocks_of(builder: &LoaderBuilder, run: &Run) -> Result<std::result::Result<Blocks, String>> {
    let given = builder.given_blocks().copied().unwrap_or(Blocks::new());
    let rows = builder.global_batch()?.max(run.nodes as u64);
    let fixed = match builder.clone().global_batch_size(rows).shuffle(given).with_order_fixed() {
        Ok(fixed) => fixed,
        Err(e) if e.kind() == Kind::Config => return Ok(Err(e.message().to_string())),
        Err(e) => return Err(e),
    };
    Ok(fixed.given_blocks().copied().ok_or_else(|| "the data has no order by blocks".to_string()))
}

fn known(samples: &Samples, measured: &Measured, blocks: Option<&Blocks>) -> Known {
    let files = samples.feed().source().files();
    let bytes: f64 = files.iter().map(|file| file.size as f64).sum();
    let folders: HashSet<&str> =
        files.iter().map(|file| file.file.rsplit_once('/').map_or("", |(folder, _)| folder)).collect();
    let n = (samples.len() as f64).max(1.0);
    Known {
        latency_secs: measured.latency_secs,
        bandwidth: measured.bandwidth,
        connections: measured.connections as f64,
        sample_bytes: (bytes / n).max(1.0),
        samples: n,
        folders: folders.len() as f64,
        block: blocks.and_then(|blocks| blocks.size).map(|size| size as f64),
        room_bytes: measured.room_bytes as f64,
        memory_bytes: measured.memory_bytes as f64,
    }
}
