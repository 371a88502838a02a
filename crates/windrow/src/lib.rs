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
//!
//! # Modules
//!
//! * `opening`: `open`: the path, the format that recognises it, options, joining, splitting;
//! * `views`: how records are sliced: a file per view with its options; scalers, grouping, recipes of views;
//! * `order`: which order is chosen, and what it costs: blocks, memory, measured stores;
//! * `mix`: several views as one, each with its share;
//! * `run`: the loader builder, ranks, the plan as text and back, trace, metrics, how fast it is;
//! * `prepare`: index, tokenize, convert, write, chat encoders;
//! * `prep`: preparation in tasks over many machines;
//! * `output`: writes to a local path, or to a URL by way of a local folder;
//! * `download`: data sets of the Hub, buckets or the web into a folder, resumed and verified;
//! * `sound`: sound files and prompts into codes;
//! * `preview`: what frontends show of data;
//! * `pages`: runs the Rust examples of README.md and docs/.
#![cfg_attr(docsrs, feature(doc_cfg))]

/// How data is opened and written: options, and the description of each format.
pub mod format {
    pub use windrow_core::format::write::{Target, WriteFormat, WriteInfo, WriteOptions};
    pub use windrow_core::format::{Axis, Format, FormatInfo, Holds, Options, Payload, Takes};
    pub use windrow_core::store::Io;
    pub use windrow_formats::{read_prompt, tensor_file};
}
#[cfg(feature = "remote")]
pub mod download;
mod mix;
mod opening;
mod order;
mod output;
#[cfg(doctest)]
mod pages;
pub mod prep;
pub mod prepare;
pub mod preview;
mod run;
#[cfg(feature = "dac")]
pub mod sound;
mod views;

pub use mix::batches::Batches;
pub use mix::shares::Shares;
pub use mix::{Mixture, MixtureOptions, Part, mix, mix_with, part_named, temperature};
pub use opening::choosing::{CHOOSING, numbers_in};
pub use opening::dataset::{Dataset, Info};
pub use opening::formats::{format_info, formats, open_options};
pub use opening::listing::{listing, write_listing};
pub use opening::own::OpenOptions;
pub use opening::owner::Owner;
pub use opening::paths::Paths;
pub use opening::select::Choose;
pub use opening::{open, open_with, verify};
pub use order::blocks::Blocks;
pub use order::measure::Measured;
pub use order::shuffle::Shuffle;
pub use output::manifest::{ListedFolder, write_manifest};
pub use output::one_file;
#[cfg(feature = "text")]
pub use prepare::chat::{ChatEncoder, not_of_chat};
#[cfg(feature = "text")]
pub use prepare::encode::TextEncoder;
pub use prepare::loss_mask;
#[cfg(feature = "text")]
pub use prepare::masked::MaskedEncoder;
pub use prepare::rebuild::{Rebuilt, rebuild_metadata};
pub use prepare::write::{ENCODE_TO, TOKENIZE_TO, Written, write_options, writer, written};
pub use run::bench;
pub use run::budget::LengthsOf;
pub use run::builder::LoaderBuilder;
pub use run::compared::{Comparison, PlanDifference, compare};
pub use run::metrics::{metrics, prometheus};
pub use run::mixing::Mixing;
pub use run::neighbours::Neighbours;
pub use run::options::{LOADER, last_batch};
pub use run::padding::Padding;
pub use run::ranks;
pub use run::recipe::Recipe;
pub use run::traced::{RowOfStep, TracedRead, TracedRow, rows_of_step, trace_row};
pub use run::waiting::Waiting;
pub use views::bins::Bins;
pub use views::codes::Codes;
pub use views::crop::Crop;
pub use views::cursor::Cursor;
pub use views::multiple::Multiple;
pub use views::option::ViewInfo;
pub use views::pack::Pack;
pub use views::part::RecipePart;
pub use views::recipe::{VIEWS, ViewRecipe};
pub use views::records::{Pad, Records};
pub use views::rows::Rows;
pub use views::samples::Samples;
pub use views::scaler::Scaler;
pub use views::scope::Scope;
pub use views::segments::Segments;
pub use views::windows::{Channels, LossOn, Windows};
#[cfg(feature = "audio")]
pub use windrow_audio as audio;
/// The modules of the engine, for authors of formats, stores and front ends: they may change with any version.
pub use windrow_core as dev;
pub use windrow_core::collate::{Batch, DocumentsLayout, Labels, List, Positions};
pub use windrow_core::format::OptionRow;
pub use windrow_core::loader::{BatchSize, Loader, Next, Stats};
pub use windrow_core::plan::{Balance, Cost, LastBatch, Plan, State};
pub use windrow_core::sampler::Stop;
pub use windrow_core::source::{Chosen, Condition, Custom, Fit, Given, Nan, Numbers, Op, Per, Whole};
pub use windrow_core::view::{Coverage, Mode, Overlong, Starts, Strategy, Tail};
pub use windrow_core::{
    Array, Buffer, DType, Decode, Element, Error, Kind, Lengths, Piece, Place, Result, Row, Span, Value,
    Values,
};
#[cfg(feature = "dac")]
pub use windrow_dac as dac;
/// Who gives the options of a store that has the option `credentials`.
#[cfg(feature = "remote")]
pub use windrow_remote::credentials_by;
#[cfg(feature = "text")]
pub use windrow_text as text;
#[cfg(feature = "zarr")]
pub use windrow_zarr as zarr;
