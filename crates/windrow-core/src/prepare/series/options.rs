//! What records of numbers are written as.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::manifest::Manifest;

/// A layout that records of numbers can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesLayout {
    /// A folder of `data-<i>-of-<n>.bin` and `meta.json`, as Time-MoE's converter writes it; of records `[T, C]`
    /// `meta.json` says `channels`.
    Shards,
    /// One array, `[N, T]` or `[N, T, C]`: all records must be of one length. Extras are left out.
    Npy,
    /// An archive of an array per record. Extras are left out.
    Npz,
    /// A line per record: `{"sequence": […], …extras}`.
    Jsonl,
    /// All records one after the other, without a header; their borders and extras are left out.
    Tokens,
    /// A folder of all records one after the other and the byte-offset index of them. Extras are left out.
    Forager,
    /// `<prefix>.bin` and `<prefix>.idx`: a sequence per record. Records that follow each other with one `document`
    /// among their extras are one document, any other record is a document of its own; `mode` is kept; other extras
    /// are left out.
    Megatron,
    /// A folder of `encoded_audio/<name>.pt` and `metadata.json`: a torch tensor `[T, C]` per record, int16 unless another
    /// dtype is asked for. `name` among the extras names the file.
    Codes,
}

/// How to write records of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// The layout.
    pub layout: SeriesLayout,
    /// dtype of a stored number; `None` takes that of the source, float32 where its numbers are scaled.
    pub dtype: Option<DType>,
    /// Most bytes of a shard.
    pub max_shard_bytes: u64,
    /// Shards store `(x - mean) / std` as float32, and mean and standard deviation of each record beside it.
    pub normalize: bool,
    /// An id put after every record.
    pub eos: Option<i64>,
    /// Ids must be below this; the manifest says so then, and they are not checked again.
    pub vocab_size: Option<u64>,
    /// The manifest of what is converted, where it has one: what it says of the ids is said of the new ones too.
    pub of: Option<Arc<Manifest>>,
    /// Replace what is there.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub durable: bool,
}

/// What a shard holds unless something else is said.
const USUAL_SHARD: u64 = 5 << 30;

impl SeriesOptions {
    /// The usual ones: shards of at most 5 GiB.
    pub fn new(layout: SeriesLayout) -> Self {
        SeriesOptions {
            layout,
            dtype: None,
            max_shard_bytes: USUAL_SHARD,
            normalize: false,
            eos: None,
            vocab_size: None,
            of: None,
            overwrite: false,
            durable: true,
        }
    }

    /// Whether everything that is set is of use.
    ///
    /// # Errors
    /// `Config` naming an option of shards where something else is written.
    pub(super) fn check(&self) -> Result<()> {
        let of_shards =
            [("normalize", self.normalize), ("max_shard_bytes", self.max_shard_bytes != USUAL_SHARD)];
        match of_shards.into_iter().find(|(_, is_set)| *is_set) {
            Some((option, _)) if self.layout != SeriesLayout::Shards => {
                Err(Error::config(format!("{option} is set, which is an option of shards")).field(option))
            }
            _ => Ok(()),
        }
    }
}
