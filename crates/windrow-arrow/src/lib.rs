//! Parquet for windrow: read natively where little is asked, and for training from plain columns in the cache.
//!
//! [`Parquet`] is a format as those of the core are. Pages, encodings and codecs come from the crate parquet; what it decodes
//! is kept as an Arrow stream, which windrow-ipc reads in place. Without the feature `parquet` files are only recognised.
//!
//! # Modules
//!
//! * `format`: recognises Parquet files and folders;
//! * `layout`: names of files, and how they are found;
//! * `hub`: the splits that the README of a Hub folder lists;
//! * `opened`: opens Parquet, and checks it;
//! * `without`: replaces `opened` in a build without the feature `parquet`;
//! * `object`: an object as the crate parquet reads it;
//! * `file`: one file: its footer, and its rows as an Arrow stream;
//! * `pages`: checksums of pages;
//! * `set`: columns read together, decoded once into the cache;
//! * `samples`: rows as samples with columns;
//! * `scan`: rows in order, cached nowhere;
//! * `cells`: a column as it is decoded, without a value for each row;
//! * `int96`: timestamps of 96 bits, as Spark writes them;
//! * `write`: an Arrow stream as Parquet pages, with its manifest.

#[cfg(feature = "parquet")]
mod cells;
#[cfg(feature = "parquet")]
mod file;
mod format;
#[cfg(feature = "parquet")]
mod hub;
#[cfg(feature = "parquet")]
mod int96;
mod layout;
#[cfg(feature = "parquet")]
mod object;
#[cfg_attr(not(feature = "parquet"), path = "without.rs")]
mod opened;
#[cfg(feature = "parquet")]
mod pages;
#[cfg(feature = "parquet")]
mod samples;
#[cfg(feature = "parquet")]
mod scan;
#[cfg(feature = "parquet")]
mod set;
#[cfg(feature = "parquet")]
mod write;

use windrow_core::format::Table;

pub use format::Parquet;

/// The formats of this crate.
pub static FORMATS: Table = &[&Parquet];
