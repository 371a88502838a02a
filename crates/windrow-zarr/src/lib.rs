//! zarr for windrow: flat-tokens, read and written.
//!
//! [`FlatTokens`] is a format as those of the core are. Metadata, codecs and their names come from the crate zarrs; the
//! chunks are found, bounded, decoded by pieces and kept here.

mod array;
mod blosc;
mod cache;
mod chain;
mod decode_error;
mod format;
mod group;
mod group_writer;
mod growing;
mod layout;
mod metadata;
mod piece;
mod source;
mod write;

pub use format::FlatTokens;
