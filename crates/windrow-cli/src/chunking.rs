//! How flat-tokens are laid into zarr, as it can be typed.

use clap::Args;
use windrow::zarr::WriteOptions;

use crate::failure::Failure;

/// Chunks of flat-tokens.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "With --to flat-tokens")]
pub(crate) struct Chunking {
    /// Version of zarr: 2 as seqax writes it (blosc), or 3 (zstd, crc32c) [default: 2]
    #[arg(long, value_name = "2|3")]
    zarr_format: Option<u8>,
    /// Tokens in a chunk [default: 4194304]
    #[arg(long, value_name = "N")]
    tokens_chunk_size: Option<u64>,
    /// Starts in a chunk [default: 1048576]
    #[arg(long, value_name = "N")]
    seq_starts_chunk_size: Option<u64>,
    /// With --zarr-format 3: chunks in a shard, which is a file
    #[arg(long, value_name = "N")]
    chunks_per_shard: Option<u64>,
}

impl Chunking {
    /// The options of the writer.
    ///
    /// # Errors
    /// A usage error where something else is written.
    pub(crate) fn options(&self, is_flat_tokens: bool) -> Result<WriteOptions, Failure> {
        let given = [
            ("--zarr-format", self.zarr_format.is_some()),
            ("--tokens-chunk-size", self.tokens_chunk_size.is_some()),
            ("--seq-starts-chunk-size", self.seq_starts_chunk_size.is_some()),
            ("--chunks-per-shard", self.chunks_per_shard.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given && !is_flat_tokens) {
            return Err(Failure::usage(format!("{option} is an option of --to flat-tokens")));
        }
        let usual = WriteOptions::default();
        Ok(WriteOptions {
            zarr_format: self.zarr_format.unwrap_or(usual.zarr_format),
            tokens_chunk_size: self.tokens_chunk_size.unwrap_or(usual.tokens_chunk_size),
            seq_starts_chunk_size: self.seq_starts_chunk_size.unwrap_or(usual.seq_starts_chunk_size),
            chunks_per_shard: self.chunks_per_shard,
            ..usual
        })
    }
}
