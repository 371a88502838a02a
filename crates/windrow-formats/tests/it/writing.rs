//! Writers for tests: a format by name, its options, and those of all formats in one place.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use windrow_core::format::write::{WriteFormat, WriteOptions, writer};
use windrow_core::source::{Schema, Source};
use windrow_core::{DType, Result};
use windrow_formats::FORMATS;
use windrow_prepare::{Report, TokenizeOptions, Watch, Writer};

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Shards,
    Npy,
    Npz,
    Jsonl,
    Tokens,
    Forager,
    Megatron,
    Codes,
}

impl To {
    pub(crate) fn name(self) -> &'static str {
        match self {
            To::Shards => "shards",
            To::Npy => "npy",
            To::Npz => "npz",
            To::Jsonl => "series-jsonl",
            To::Tokens => "tokens",
            To::Forager => "forager",
            To::Megatron => "megatron",
            To::Codes => "codes",
        }
    }

    /// With its usual options.
    pub(crate) fn format(self) -> Arc<dyn WriteFormat> {
        self.with(json!({}))
    }

    /// With options of its own.
    pub(crate) fn with(self, own: Value) -> Arc<dyn WriteFormat> {
        Arc::from(writer(FORMATS, self.name(), own.as_object().unwrap()).unwrap())
    }
}

/// Token samples with an index, as `tokenize` usually writes them.
pub(crate) fn samples() -> TokenizeOptions {
    TokenizeOptions::new(To::Forager.format())
}

/// What to write, and how.
#[derive(Clone, Debug)]
pub(crate) struct Writing {
    pub(crate) to: To,
    pub(crate) dtype: Option<DType>,
    pub(crate) max_shard_bytes: Option<u64>,
    pub(crate) normalize: bool,
    pub(crate) eos: Option<i64>,
    pub(crate) vocab_size: Option<u64>,
    pub(crate) overwrite: bool,
    pub(crate) fsync: bool,
}

impl Writing {
    pub(crate) fn new(to: To) -> Writing {
        Writing {
            to,
            dtype: None,
            max_shard_bytes: None,
            normalize: false,
            eos: None,
            vocab_size: None,
            overwrite: false,
            fsync: true,
        }
    }

    fn format(&self) -> Result<Box<dyn WriteFormat>> {
        let mut own = Map::new();
        self.max_shard_bytes.map(|bytes| own.insert("max_shard_bytes".to_string(), json!(bytes)));
        self.normalize.then(|| own.insert("normalize".to_string(), json!(true)));
        writer(FORMATS, self.to.name(), &own)
    }

    fn options(&self) -> WriteOptions {
        WriteOptions {
            dtype: self.dtype,
            eos: self.eos,
            vocab_size: self.vocab_size,
            overwrite: self.overwrite,
            fsync: self.fsync,
            ..WriteOptions::default()
        }
    }
}

pub(crate) fn create(out: &Path, schema: &Schema, writing: &Writing) -> Result<Writer> {
    Writer::create(out, schema, writing.format()?.as_ref(), &writing.options())
}

pub(crate) fn convert(
    source: &dyn Source,
    out: &Path,
    writing: &Writing,
    watch: &dyn Watch,
) -> Result<Report> {
    windrow_prepare::convert(source, out, writing.format()?.as_ref(), &writing.options(), watch)
}
