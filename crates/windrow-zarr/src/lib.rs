//! zarr for windrow: flat-tokens, read and written.
//!
//! [`FlatTokens`] is a format as those of the core are. Metadata, codecs and their names come from the crate zarrs; the
//! chunks are found, bounded, decoded by pieces and kept here. Without the feature `zarr` groups are only recognised.

#[cfg(feature = "zarr")]
mod array;
#[cfg(feature = "zarr")]
mod blosc;
#[cfg(feature = "zarr")]
mod cache;
#[cfg(feature = "zarr")]
mod chain;
#[cfg(feature = "zarr")]
mod decode_error;
mod format;
#[cfg(feature = "zarr")]
mod group;
#[cfg(feature = "zarr")]
mod group_writer;
#[cfg(feature = "zarr")]
mod growing;
mod layout;
#[cfg(feature = "zarr")]
mod metadata;
#[cfg_attr(not(feature = "zarr"), path = "without.rs")]
mod opened;
#[cfg(feature = "zarr")]
mod piece;
#[cfg(feature = "zarr")]
mod source;
#[cfg(feature = "zarr")]
mod write;

pub use format::FlatTokens;
