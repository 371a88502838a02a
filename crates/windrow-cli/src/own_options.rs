//! Options of one format that is written, as they can be typed: the format itself says which it takes.

use clap::Args;
use serde_json::{Map, Value, json};

/// Options that belong to one format.
#[derive(Args, Clone, Debug)]
pub(crate) struct OwnOptions {
    /// With --to shards: most bytes of a shard [default: 5368709120]
    #[arg(long, value_name = "BYTES")]
    max_shard_bytes: Option<u64>,
    /// With --to flat-tokens: version of zarr, 2 as seqax writes it (blosc), or 3 (zstd, crc32c) [default: 2]
    #[arg(long, value_name = "2|3")]
    zarr_format: Option<u64>,
    /// With --to flat-tokens: tokens in a chunk [default: 4194304]
    #[arg(long, value_name = "N")]
    tokens_chunk_size: Option<u64>,
    /// With --to flat-tokens: starts in a chunk [default: 1048576]
    #[arg(long, value_name = "N")]
    seq_starts_chunk_size: Option<u64>,
    /// With --zarr-format 3: chunks in a shard, which is a file
    #[arg(long, value_name = "N")]
    chunks_per_shard: Option<u64>,
}

impl OwnOptions {
    /// Those that are given, by name.
    pub(crate) fn given(&self) -> Map<String, Value> {
        let numbers = [
            ("max_shard_bytes", self.max_shard_bytes),
            ("zarr_format", self.zarr_format),
            ("tokens_chunk_size", self.tokens_chunk_size),
            ("seq_starts_chunk_size", self.seq_starts_chunk_size),
            ("chunks_per_shard", self.chunks_per_shard),
        ];
        let given = numbers.into_iter().filter_map(|(name, number)| Some((name.to_string(), json!(number?))));
        given.collect()
    }
}
