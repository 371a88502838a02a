//! How flat-tokens are laid into zarr, as it can be said where other layouts can be written, too.

use pyo3::prelude::*;
use windrow::Error;
use windrow::zarr::WriteOptions;

use crate::error::raise;
use crate::options::Count;

/// The layout that these options belong to.
pub(crate) const FLAT_TOKENS: &str = "flat-tokens";

/// Chunks of flat-tokens.
pub(crate) struct Chunking {
    pub(crate) zarr_format: Count,
    pub(crate) tokens_chunk_size: Count,
    pub(crate) seq_starts_chunk_size: Count,
    pub(crate) chunks_per_shard: Option<Count>,
}

impl Chunking {
    /// The options of the writer where `to` names flat-tokens, `None` for another layout.
    ///
    /// # Errors
    /// `ConfigError` where another layout is written and one of them is set.
    pub(crate) fn options(self, py: Python<'_>, to: &str) -> PyResult<Option<WriteOptions>> {
        let usual = WriteOptions::default();
        let options = WriteOptions {
            zarr_format: self.zarr_format.byte(py, "zarr_format")?,
            tokens_chunk_size: self.tokens_chunk_size.0,
            seq_starts_chunk_size: self.seq_starts_chunk_size.0,
            chunks_per_shard: self.chunks_per_shard.map(|n| n.0),
            ..usual.clone()
        };
        if to == FLAT_TOKENS {
            return Ok(Some(options));
        }
        let changed = [
            ("zarr_format", options.zarr_format != usual.zarr_format),
            ("tokens_chunk_size", options.tokens_chunk_size != usual.tokens_chunk_size),
            ("seq_starts_chunk_size", options.seq_starts_chunk_size != usual.seq_starts_chunk_size),
            ("chunks_per_shard", options.chunks_per_shard != usual.chunks_per_shard),
        ];
        match changed.into_iter().find(|(_, is_changed)| *is_changed) {
            Some((option, _)) => {
                let error =
                    Error::config(format!("{option} is set, which is an option of to={FLAT_TOKENS:?}"));
                Err(raise(py, &error.field(option)))
            }
            None => Ok(None),
        }
    }
}
