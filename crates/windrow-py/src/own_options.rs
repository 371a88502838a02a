//! Options of one format that is written, as Python gives them: the format itself says which it takes.

use serde_json::{Map, Value, json};

use crate::options::Count;

/// Options that belong to one format; `None` where one is not given.
#[derive(Default)]
pub(crate) struct OwnOptions {
    pub(crate) max_shard_bytes: Option<Count>,
    pub(crate) normalize: bool,
    pub(crate) zarr_format: Option<Count>,
    pub(crate) tokens_chunk_size: Option<Count>,
    pub(crate) seq_starts_chunk_size: Option<Count>,
    pub(crate) chunks_per_shard: Option<Count>,
    pub(crate) samples_folder: Option<String>,
    pub(crate) postfix: Option<String>,
    pub(crate) index_folder: Option<String>,
    pub(crate) block_sums: Option<bool>,
}

impl OwnOptions {
    /// Those that are given, by name.
    pub(crate) fn given(self) -> Map<String, Value> {
        let numbers = [
            ("max_shard_bytes", self.max_shard_bytes),
            ("zarr_format", self.zarr_format),
            ("tokens_chunk_size", self.tokens_chunk_size),
            ("seq_starts_chunk_size", self.seq_starts_chunk_size),
            ("chunks_per_shard", self.chunks_per_shard),
        ]
        .map(|(name, number)| (name, number.map(|number| json!(number.0))));
        let texts = [
            ("samples_folder", self.samples_folder),
            ("postfix", self.postfix),
            ("index_folder", self.index_folder),
        ]
        .map(|(name, text)| (name, text.map(Value::String)));
        let switches = [
            ("normalize", self.normalize.then_some(json!(true))),
            ("block_sums", self.block_sums.map(Value::Bool)),
        ];
        let all = numbers.into_iter().chain(texts).chain(switches);
        all.filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
    }
}
