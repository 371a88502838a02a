//! A group of flat-tokens that grows by sequences: its two arrays, its attributes, and the group above it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use windrow_core::output::{WorkFolder, write_whole};
use windrow_core::store::{Local, Store};
use windrow_core::{Error, Result};

use crate::array::MOST_CHUNK;
use crate::growing::{Growing, text, v2_array, v3_array};
use crate::layout::{LARGEST_ID, MAX_ID, METADATA_V3, SPLITS, STARTS, TOKENS};

/// How flat-tokens are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunking {
    /// Version of zarr: 2, as seqax writes it (blosc: lz4, bitshuffle; starts as differences), or 3 (zstd, crc32c).
    pub(crate) zarr_format: u64,
    /// Tokens in a chunk.
    pub(crate) tokens_chunk_size: u64,
    /// Starts in a chunk.
    pub(crate) seq_starts_chunk_size: u64,
    /// Chunks in a shard, in version 3: that many chunks make a file.
    pub(crate) chunks_per_shard: Option<u64>,
}

/// The group's files, but for the folder they are in.
pub(crate) struct GroupWriter {
    is_v3: bool,
    /// The group's own metadata.
    attributes: Value,
    pub(crate) tokens: Growing,
    pub(crate) starts: Growing,
    pub(crate) max_id: u64,
    encoded: Vec<u8>,
}

impl GroupWriter {
    /// An empty one.
    ///
    /// # Errors
    /// `Config` for sizes that no file may have.
    pub(crate) fn new(options: &Chunking) -> Result<GroupWriter> {
        let sizes = [
            ("tokens_chunk_size", options.tokens_chunk_size),
            ("seq_starts_chunk_size", options.seq_starts_chunk_size),
            ("chunks_per_shard", options.chunks_per_shard.unwrap_or(1)),
        ];
        // A chunk, or a shard, is held in memory while it fills.
        let most = MOST_CHUNK / 8 / options.chunks_per_shard.unwrap_or(1).max(1);
        if let Some((name, size)) = sizes.into_iter().find(|(name, size)| {
            let most = if *name == "chunks_per_shard" { MOST_CHUNK } else { most };
            !(1..=most).contains(size)
        }) {
            return Err(Error::config(format!(
                "{name} is {size}, expected at least 1 and files below 2 GiB"
            ))
            .field(name));
        }
        let is_v3 = match options.zarr_format {
            2 if options.chunks_per_shard.is_none() => false,
            3 => true,
            2 => return Err(Error::config("zarr v2 has no shards").hint("choose @zarr_format=3@")),
            other => return Err(Error::config(format!("zarr_format {other}, expected 2 or 3"))),
        };
        let array = |name, dtype, chunk| {
            let metadata =
                if is_v3 { v3_array(dtype, chunk, options.chunks_per_shard) } else { v2_array(dtype, chunk) };
            Growing::new(name, metadata, is_v3)
        };
        let tokens = array(TOKENS, "uint32", options.tokens_chunk_size)?;
        let starts = array(STARTS, "uint64", options.seq_starts_chunk_size)?;
        let attributes =
            if is_v3 { json!({"attributes": {}, "zarr_format": 3, "node_type": "group"}) } else { json!({}) };
        Ok(Self::behind(is_v3, attributes, tokens, starts, 0))
    }

    /// One that continues behind what its arrays hold.
    pub(crate) fn behind(
        is_v3: bool,
        attributes: Value,
        tokens: Growing,
        starts: Growing,
        max_id: u64,
    ) -> GroupWriter {
        GroupWriter { is_v3, attributes, tokens, starts, max_id, encoded: Vec::new() }
    }

    /// Whether it is zarr v3.
    pub(crate) fn is_v3(&self) -> bool {
        self.is_v3
    }

    /// Writes what a new group begins with.
    pub(crate) fn begin(&mut self, folder: &mut WorkFolder) -> Result<()> {
        self.starts.push(folder, &0u64.to_ne_bytes())
    }

    /// Writes the next sequence, or a part of it; it may be empty.
    ///
    /// # Errors
    /// `Config` for an ID above 2^31 - 1; `Io`.
    pub(crate) fn add(
        &mut self,
        folder: &mut WorkFolder,
        ids: &[u32],
        is_first: bool,
        is_last: bool,
    ) -> Result<()> {
        self.encoded.clear();
        for (place, id) in ids.iter().enumerate() {
            if u64::from(*id) > LARGEST_ID {
                return Err(Error::config(format!("the token ID {id}, expected at most {LARGEST_ID}")));
            }
            self.max_id = self.max_id.max(u64::from(*id));
            let number = id << 1 | u32::from(is_first && place == 0);
            self.encoded.extend(number.to_ne_bytes());
        }
        self.tokens.push(folder, &self.encoded)?;
        if is_last {
            self.starts.push(folder, &self.tokens.len().to_ne_bytes())?;
        }
        Ok(())
    }

    /// Sequences that it holds.
    pub(crate) fn sequences(&self) -> u64 {
        self.starts.len().saturating_sub(1)
    }

    /// Completes the arrays, the starts behind the tokens, and the attributes last. Files and bytes of both arrays.
    pub(crate) fn finish(&mut self, folder: &mut WorkFolder) -> Result<(u64, u64)> {
        self.tokens.finish(folder)?;
        self.starts.finish(folder)?;
        if !self.is_v3 && folder.size(".zgroup").is_none() {
            folder.write(".zgroup", text(&json!({"zarr_format": 2})).as_bytes())?;
        }
        let attributes = if self.is_v3 { &mut self.attributes["attributes"] } else { &mut self.attributes };
        if !attributes.is_object() {
            *attributes = Value::Object(Map::new());
        }
        attributes[MAX_ID] = self.max_id.into();
        let file = if self.is_v3 { METADATA_V3 } else { ".zattrs" };
        folder.write(file, text(&self.attributes).as_bytes())?;
        let ((files, bytes), (more, more_bytes)) = (self.tokens.written(), self.starts.written());
        Ok((files + more, bytes + more_bytes))
    }
}

/// The folder above the splits is a group of its own; one without arrays says nothing about them.
pub(crate) fn root_group(out: &Path, is_v3: bool) -> Result<()> {
    let Some(root) = out.parent() else { return Ok(()) };
    let store = Local::new(root);
    let is_group = [METADATA_V3, ".zgroup"].iter().any(|name| store.entry(name).is_ok());
    let is_split = out.file_name().is_some_and(|name| SPLITS.iter().any(|split| name == *split));
    if is_group || !is_split {
        Ok(())
    } else if is_v3 {
        write_root(root, METADATA_V3, &json!({"attributes": {}, "zarr_format": 3, "node_type": "group"}))
    } else {
        write_root(root, ".zgroup", &json!({"zarr_format": 2}))
    }
}

fn write_root(root: &Path, name: &str, value: &Value) -> Result<()> {
    write_whole(&PathBuf::from(root).join(name), text(value).as_bytes())
}
