//! zarr for windrow: flat-tokens, read and written.
//!
//! [`FlatTokens`] is a format as those of the core are. Metadata, codecs and their names come from the crate zarrs; the
//! chunks are found, bounded, decoded by pieces and kept here. Without the feature `zarr` groups are only recognised.
//!
//! # Modules
//!
//! * `format`: recognises flat-tokens;
//! * `layout`: names of arrays, attribute and splits;
//! * `opened`: opens flat-tokens;
//! * `without`: replaces `opened` in a build without the feature `zarr`;
//! * `group`: an opened group: arrays and attribute, compared with each other;
//! * `source`: the sequences of a group, and all of them as one stream;
//! * `metadata`: shape, chunks and dtype of an array, v2 or v3;
//! * `array`: an array of one dimension, read by position;
//! * `chain`: the codecs of a chunk, with bounded output;
//! * `blosc`: Blosc streams, whole or only the blocks that are asked for;
//! * `piece`: a decoded part of a chunk;
//! * `cache`: decoded pieces, the most recently used ones;
//! * `decode_error`: the error for a chunk that does not decode as declared;
//! * `write`: writes sequences, new or appended;
//! * `group_writer`: a group that grows by sequences;
//! * `growing`: an array that grows chunk by chunk.

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
