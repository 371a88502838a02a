//! Parquet for windrow: read natively where little is asked, and for training from plain columns in the cache.
//!
//! [`Parquet`] is a format as those of the core are. Pages, encodings and codecs come from the crate parquet; what it decodes
//! is kept as an Arrow stream, which windrow-ipc reads in place. Without the feature `parquet` files are only recognised.

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
