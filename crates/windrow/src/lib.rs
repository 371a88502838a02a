//! Training data from disk to the model: at the speed of memory, in true random order, resumable to the exact sample.
//!
//! ```
//! # fn main() -> windrow::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("tokens.bin");
//! # windrow::prepare::dummy(&path, 1000, 10_000, 0, false)?;
//! let tokens = windrow::open(&path)?;
//! let view = tokens.pack(128)?;
//! let mut loader = view.loader().batch_size(8).seed(7).build()?;
//! let batch = loader.next_batch().expect("an endless loader")?;
//! assert_eq!(batch.get::<i64>("input_ids")?.len(), 8 * 128);
//!
//! // The state is small, plain JSON; a loader of any number of ranks continues from it.
//! let state = loader.state();
//! let mut other = view.loader().batch_size(4).rank(0, 2).seed(7).build()?;
//! other.resume(&state)?;
//! # Ok(())
//! # }
//! ```
//!
//! This crate is the facade: [`open`] finds the format among those of all crates, [`Dataset`] slices records into samples,
//! [`LoaderBuilder`] makes a loader. What they are made of is in [`windrow_core`], re-exported here as [`dev`].
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocks;
mod builder;
#[cfg(feature = "text")]
mod chat;
mod compared;
mod covariates;
mod cut;
mod cut_warnings;
mod dataset;
#[cfg(feature = "text")]
mod encode;
mod exclude;
pub mod format;
mod formats;
mod grouping;
mod in_memory;
mod listing;
pub mod loss_mask;
#[cfg(feature = "text")]
mod masked;
mod measure;
mod metrics;
mod mixed;
mod mixing;
mod mixture;
mod open;
mod ordered;
mod output;
mod owner;
#[cfg(doctest)]
mod pages;
mod part;
mod paths;
pub mod prep;
pub mod prepare;
pub mod preview;
pub mod ranks;
mod rebuild;
mod recipe;
mod remote;
mod reopen;
mod resolve;
mod room;
mod samples;
mod scope;
mod several;
mod shares;
mod shuffle;
#[cfg(feature = "dac")]
pub mod sound;
mod split;
mod split_by_time;
mod traced;
mod unread;
mod view_recipe;
mod views;
mod windowing;
mod write;

pub use blocks::Blocks;
pub use builder::LoaderBuilder;
#[cfg(feature = "text")]
pub use chat::{ChatEncoder, not_of_chat};
pub use compared::{Comparison, PlanDifference, compare};
pub use dataset::{Dataset, Info};
#[cfg(feature = "text")]
pub use encode::TextEncoder;
pub use formats::{format_info, formats};
pub use listing::{listing, write_listing};
#[cfg(feature = "text")]
pub use masked::MaskedEncoder;
pub use measure::Measured;
pub use metrics::{metrics, prometheus};
pub use mixing::Mixing;
pub use mixture::{Mixture, MixtureOptions, Part, mix, mix_with, part_named, temperature};
pub use open::{open, open_with, verify};
pub use owner::Owner;
pub use paths::Paths;
pub use rebuild::{Rebuilt, rebuild_metadata};
pub use recipe::{Recipe, RecipePart};
pub use samples::Samples;
pub use scope::Scope;
pub use shares::Shares;
pub use shuffle::Shuffle;
pub use traced::{TracedRead, TracedRow, trace_row};
pub use view_recipe::{LossOn, Pad, ScalerName, ViewRecipe};
pub use windowing::{Scaler, Windowing};
#[cfg(feature = "audio")]
pub use windrow_audio as audio;
/// The modules of the engine, for authors of formats, stores and front ends: they may change with any version.
pub use windrow_core as dev;
pub use windrow_core::collate::{Batch, DocumentsLayout, Labels, List, Positions};
pub use windrow_core::loader::{BatchSize, Loader, Next, Stats};
pub use windrow_core::plan::{LastBatch, Plan, State};
pub use windrow_core::sampler::Stop;
pub use windrow_core::source::{Custom, Fit, Nan, Per, Whole};
pub use windrow_core::view::{Coverage, Mode, Overlong, Starts, Strategy, Tail};
pub use windrow_core::{
    Array, Buffer, DType, Decode, Element, Error, Kind, Lengths, Piece, Place, Result, Row, Span, Value,
    Values,
};
#[cfg(feature = "dac")]
pub use windrow_dac as dac;
#[cfg(feature = "text")]
pub use windrow_text as text;
#[cfg(feature = "zarr")]
pub use windrow_zarr as zarr;
pub use write::{ENCODE_TO, TOKENIZE_TO, Written, write_options, writer, written};
