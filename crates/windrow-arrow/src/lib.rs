//! Parquet for windrow: read natively where little is asked, and for training from plain columns in the cache.
//!
//! [`Parquet`] is a format as those of the core are. Pages, encodings and codecs come from the crate parquet; what it decodes
//! is kept as an Arrow stream, which windrow-ipc reads in place.

mod file;
mod format;
mod hub;
mod int96;
mod object;
mod samples;
mod scan;
mod set;
mod write;

use windrow_core::format::Table;

pub use format::Parquet;

/// The formats of this crate.
pub static FORMATS: Table = &[&Parquet];
