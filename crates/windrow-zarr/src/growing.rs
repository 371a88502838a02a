//! An array that grows at its end, chunk by chunk, below a work folder; and the form of its metadata.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde_json::{Value, json};
use windrow_core::output::WorkFolder;
use windrow_core::store::key;
use windrow_core::{Error, Result};
use zarrs::array::codec::api::ArrayToBytesCodecTraits;
use zarrs::array::{ArrayBytes, CodecOptions};

use crate::layout::{METADATA_V2, METADATA_V3};
use crate::metadata::{one_dimension, parse};

/// An array that grows at its end.
pub(crate) struct Growing {
    folder: &'static str,
    file: &'static str,
    metadata: Value,
    zarr: zarrs::array::Array<()>,
    has_delta: bool,
    width: usize,
    /// Values in a chunk (or shard).
    chunk: NonZeroU64,
    len: u64,
    /// Those that fill no chunk yet, in this machine's byte order.
    rest: Vec<u8>,
    files: u64,
    bytes: u64,
}

impl Growing {
    /// An empty one.
    ///
    /// # Errors
    /// What the metadata says wrong.
    pub(crate) fn new(folder: &'static str, metadata: Value, is_v3: bool) -> Result<Growing> {
        let (described, has_delta) = parse(text(&metadata).as_bytes(), is_v3)?;
        let (_, chunk) = one_dimension(&described)?;
        let zarr = zarrs::array::Array::new_with_metadata(Arc::new(()), "/", described)
            .map_err(|e| Error::unsupported(format!("{folder} cannot be written")).caused_by(e))?;
        let width = zarr.data_type().fixed_size().unwrap_or(1);
        let file = if is_v3 { METADATA_V3 } else { METADATA_V2 };
        Ok(Growing {
            folder,
            file,
            metadata,
            zarr,
            has_delta,
            width,
            chunk,
            len: 0,
            rest: Vec::new(),
            files: 0,
            bytes: 0,
        })
    }

    /// One that holds `len` values already; those that fill no chunk are in `rest`.
    ///
    /// # Errors
    /// `Corrupt` when they are not as many as they should be.
    pub(crate) fn go_on(mut self, len: u64, rest: Vec<u8>) -> Result<Growing> {
        self.len = len;
        let expected = self.unfilled_of(len).1 * self.width as u64;
        if rest.len() as u64 != expected {
            return Err(Error::corrupt(format!(
                "{} bytes that fill no chunk, expected {expected}",
                rest.len()
            ))
            .at(self.folder));
        }
        self.rest = rest;
        Ok(self)
    }

    /// Keys of the chunks that are full.
    pub(crate) fn full_chunks(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.len / self.chunk).map(|chunk| self.key(chunk))
    }

    /// Number of values.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// What fills no chunk yet.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    /// Files written, and their bytes.
    pub(crate) fn written(&self) -> (u64, u64) {
        (self.files, self.bytes)
    }

    fn key(&self, chunk: u64) -> String {
        key::below(self.folder, self.zarr.chunk_key(&[chunk]).as_str())
    }

    /// Of `len` values those that fill no chunk: the first of them, and how many.
    pub(crate) fn unfilled_of(&self, len: u64) -> (u64, u64) {
        let rest = len % self.chunk;
        (len - rest, rest)
    }

    /// Appends numbers, in this machine's byte order.
    pub(crate) fn push(&mut self, folder: &mut WorkFolder, mut numbers: &[u8]) -> Result<()> {
        let full = self.chunk.get() as usize * self.width;
        while !numbers.is_empty() {
            let (now, later) = numbers.split_at(numbers.len().min(full - self.rest.len()));
            self.rest.extend_from_slice(now);
            self.len += (now.len() / self.width) as u64;
            numbers = later;
            if self.rest.len() == full {
                self.put(folder, self.len / self.chunk - 1)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, folder: &mut WorkFolder, chunk: u64) -> Result<()> {
        let mut numbers = std::mem::take(&mut self.rest);
        numbers.resize(self.chunk.get() as usize * self.width, 0);
        if self.has_delta {
            take_differences(&mut numbers);
        }
        let options = CodecOptions::default().with_concurrent_target(1);
        let (dtype, fill) = (self.zarr.data_type(), self.zarr.fill_value());
        let encoded = self
            .zarr
            .codecs()
            .encode(ArrayBytes::new_flen(numbers), &[self.chunk], dtype, fill, &options)
            .map_err(|e| Error::unsupported(format!("a chunk of {} cannot be encoded: {e}", self.folder)))?;
        folder.write(&self.key(chunk), &encoded)?;
        self.files += 1;
        self.bytes += encoded.len() as u64;
        Ok(())
    }

    /// Writes what fills no chunk, and the metadata.
    pub(crate) fn finish(&mut self, folder: &mut WorkFolder) -> Result<()> {
        if !self.rest.is_empty() {
            self.put(folder, self.len / self.chunk)?;
        }
        self.metadata["shape"] = json!([self.len]);
        folder.write(&key::below(self.folder, self.file), text(&self.metadata).as_bytes())?;
        Ok(())
    }
}

/// As seqax has it written: keys in order, four spaces.
pub(crate) fn v2_array(dtype: &str, chunk: u64) -> Value {
    let is_starts = dtype == "uint64";
    let delta = json!([{"astype": "<i8", "dtype": "<i8", "id": "delta"}]);
    json!({
        "chunks": [chunk],
        "compressor": {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": 2},
        "dimension_separator": ".",
        "dtype": if is_starts { "<u8" } else { "<u4" },
        "fill_value": if is_starts { json!(0) } else { Value::Null },
        "filters": if is_starts { delta } else { Value::Null },
        "order": "C",
        "shape": [0],
        "zarr_format": 2
    })
}

/// As zarr-python writes its default, with a checksum behind each chunk, and with shards where they are asked for.
pub(crate) fn v3_array(dtype: &str, chunk: u64, chunks_per_shard: Option<u64>) -> Value {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 0, "checksum": false}});
    let crc32c = json!({"name": "crc32c"});
    let codecs = match chunks_per_shard {
        None => json!([bytes, zstd, crc32c]),
        Some(_) => json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [chunk],
            "codecs": [bytes, zstd, crc32c],
            "index_codecs": [bytes, crc32c],
            "index_location": "end"
        }}]),
    };
    json!({
        "shape": [0],
        "data_type": dtype,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [chunk * chunks_per_shard.unwrap_or(1)]}
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": []
    })
}

// Only starts are stored so: the first as it is, then the difference to the one before.
fn take_differences(numbers: &mut [u8]) {
    let mut before = 0u64;
    for place in numbers.chunks_exact_mut(8) {
        let mut number = [0; 8];
        number.copy_from_slice(place);
        let number = u64::from_ne_bytes(number);
        place.copy_from_slice(&number.wrapping_sub(before).to_ne_bytes());
        before = number;
    }
}

/// Plain trees with string keys: serialising cannot fail.
pub(crate) fn text(value: &Value) -> String {
    let mut out = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, format);
    match serde::Serialize::serialize(value, &mut serializer) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => String::new(),
    }
}
