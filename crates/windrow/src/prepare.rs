//! Turns inputs into data: `index`, `tokenize`, `convert`, by the formats of all crates.

use std::path::{Path, PathBuf};

use windrow_core::Result;
use windrow_formats::Tokens;
pub use windrow_prepare::{
    CHECKPOINT_BYTES, Encode, Encoded, Findings, Ids, IndexOptions, LinePlace, Problem, Progress, Remainder,
    Report, TokenizeOptions, Track, VerifyOptions, Watch, Writer, convert, dummy_blocks, dummy_tokens,
    manifest_of, text_of,
};

use crate::formats;

/// Indexes every line of the JSONL files below `base`; see [`windrow_prepare::index()`].
///
/// # Errors
/// As [`windrow_prepare::index()`].
pub fn index(base: &Path, options: &IndexOptions, watch: &dyn Watch) -> Result<Report> {
    windrow_prepare::index(formats(), base, options, watch)
}

/// Tokenises every line of the inputs; see [`windrow_prepare::tokenize()`].
///
/// # Errors
/// As [`windrow_prepare::tokenize()`].
pub fn tokenize(
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    windrow_prepare::tokenize(formats(), inputs, out, encode, options, watch)
}

/// Writes `tokens` random IDs below `vocab_size` as a headerless uint32 file, and its manifest; see
/// [`windrow_prepare::dummy()`].
///
/// # Errors
/// As [`windrow_prepare::dummy()`].
pub fn dummy(out: &Path, vocab_size: u64, tokens: u64, seed: u64, overwrite: bool) -> Result<Report> {
    windrow_prepare::dummy(&Tokens, out, vocab_size, tokens, seed, overwrite)
}
