//! Sequences of token IDs written for tests, as any format is written.

use std::path::Path;

use serde_json::{Map, json};
use windrow_core::format::write::{self, writer};
use windrow_core::source::{Extras, Schema};
use windrow_core::{DType, Decode, Element, Result, Values};
use windrow_prepare::{Report, Writer};
use windrow_zarr::FlatTokens;

/// How to write flat-tokens.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) zarr_format: u64,
    pub(crate) tokens_chunk_size: u64,
    pub(crate) seq_starts_chunk_size: u64,
    pub(crate) chunks_per_shard: Option<u64>,
    pub(crate) append: bool,
    pub(crate) overwrite: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            zarr_format: 2,
            tokens_chunk_size: 1 << 22,
            seq_starts_chunk_size: 1 << 20,
            chunks_per_shard: None,
            append: false,
            overwrite: false,
        }
    }
}

/// A data set that grows by sequences.
pub(crate) struct FlatTokensWriter(Writer);

impl FlatTokensWriter {
    pub(crate) fn create(out: &Path, options: &WriteOptions) -> Result<FlatTokensWriter> {
        let own = [
            ("zarr_format", json!(options.zarr_format)),
            ("tokens_chunk_size", json!(options.tokens_chunk_size)),
            ("seq_starts_chunk_size", json!(options.seq_starts_chunk_size)),
            ("chunks_per_shard", json!(options.chunks_per_shard)),
        ];
        let own: Map<_, _> = own.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let format = writer(&[&FlatTokens], "flat-tokens", &own)?;
        let writing = write::WriteOptions {
            append: options.append,
            overwrite: options.overwrite,
            fsync: false,
            ..write::WriteOptions::default()
        };
        let schema = Schema::numbers(Element::little(DType::U32));
        Writer::create(out, &schema, format.as_ref(), &writing).map(FlatTokensWriter)
    }

    pub(crate) fn add(&mut self, ids: &[u32]) -> Result<()> {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let element = Element::little(DType::U32);
        let values = Values { bytes: &bytes, element, channels: 1, decode: Decode::Plain };
        self.0.add(&values, &Extras::new())
    }

    pub(crate) fn finish(self) -> Result<Report> {
        self.0.finish()
    }
}
