//! Writes flat-tokens, new or on top of what is there: beside it, chunk by chunk, and visible by one rename.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use windrow_core::collate::copy_values;
use windrow_core::format::{Format, Look, Options};
use windrow_core::prepare::{Progress, Report, Watch, WholeFolder, write_whole};
use windrow_core::source::{Kind as SourceKind, Source};
use windrow_core::store::{Local, Store, read_small};
use windrow_core::{DType, Error, Kind, Result};
use zarrs::array::codec::api::ArrayToBytesCodecTraits;
use zarrs::array::{ArrayBytes, CodecOptions};

use crate::array::MOST_CHUNK;
use crate::format::{FlatTokens, LARGEST_ID, MAX_ID, STARTS, TOKENS};
use crate::metadata::{METADATA_V2, METADATA_V3, MOST_METADATA, below, one_dimension, parse};

/// How to write flat-tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Version of zarr: 2, as seqax writes it (blosc: lz4, bitshuffle; starts as differences), or 3 (zstd).
    pub zarr_format: u8,
    /// Tokens in a chunk.
    pub tokens_chunk_size: u64,
    /// Starts in a chunk.
    pub seq_starts_chunk_size: u64,
    /// Chunks in a shard, in version 3: that many chunks make a file.
    pub chunks_per_shard: Option<u64>,
    /// Go on behind the sequences that are there, stored as they are; the other options are theirs then.
    pub append: bool,
    /// Replace what is there.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub durable: bool,
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
            durable: true,
        }
    }
}

/// Writes sequences one after the other. Dropped before [`FlatTokensWriter::finish`], it leaves nothing behind.
///
/// ```
/// # use windrow_zarr::{FlatTokensWriter, WriteOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// let mut writer = FlatTokensWriter::create(&dir.path().join("corpus.zarr/train"), &WriteOptions::default())?;
/// writer.add(&[1, 2])?;
/// writer.add(&[3, 4, 5])?;
/// assert_eq!(writer.finish()?.tokens, 5);
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct FlatTokensWriter {
    folder: WholeFolder,
    overwrite: bool,
    attributes: Attributes,
    tokens: Growing,
    starts: Growing,
    max_id: u64,
    report: Report,
}

/// The group's own metadata.
struct Attributes {
    /// `zarr.json`, or `.zattrs`.
    file: &'static str,
    text: Value,
}

/// An array that grows at its end.
struct Growing {
    folder: &'static str,
    file: &'static str,
    metadata: Value,
    zarr: zarrs::array::Array<()>,
    has_delta: bool,
    width: usize,
    /// Values in a chunk (or shard).
    chunk: NonZeroU64,
    len: u64,
    /// Those that fill no chunk yet, as this machine lays numbers.
    rest: Vec<u8>,
    files: u64,
    bytes: u64,
}

impl FlatTokensWriter {
    /// Begins at `out`, the folder of one split: `corpus.zarr/train`.
    ///
    /// # Errors
    /// `Exists` when something is there and neither `append` nor `overwrite` is set; `Config` for sizes of 0; with
    /// `append` what opening says; `Io`.
    pub fn create(out: &Path, options: &WriteOptions) -> Result<FlatTokensWriter> {
        let folder = WholeFolder::begin(out, options.durable)?;
        match (folder.is_there(), options.append, options.overwrite) {
            (true, true, _) => Self::append(folder),
            (true, false, false) => Err(Error::new(Kind::Exists, "something is there already")
                .at(folder.out())
                .hint("append=True goes on behind it, overwrite=True replaces it")),
            (true, false, true) if !is_ours(folder.out()) => {
                Err(Error::new(Kind::Exists, "what is there is no group of flat-tokens: it is left")
                    .at(folder.out()))
            }
            _ => Self::new(folder, options),
        }
    }

    fn new(mut folder: WholeFolder, options: &WriteOptions) -> Result<FlatTokensWriter> {
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
            2 => return Err(Error::config("zarr v2 has no shards").hint("choose zarr_format=3")),
            other => return Err(Error::config(format!("zarr_format {other}, expected 2 or 3"))),
        };
        let array = |name, dtype, chunk| {
            let metadata = match is_v3 {
                false => v2_array(dtype, chunk),
                true => v3_array(dtype, chunk, options.chunks_per_shard),
            };
            Growing::new(name, metadata, is_v3)
        };
        let tokens = array(TOKENS, "uint32", options.tokens_chunk_size)?;
        let mut starts = array(STARTS, "uint64", options.seq_starts_chunk_size)?;
        let attributes = match is_v3 {
            false => {
                folder.write(".zgroup", text(&json!({"zarr_format": 2})).as_bytes())?;
                Attributes { file: ".zattrs", text: json!({}) }
            }
            true => Attributes {
                file: METADATA_V3,
                text: json!({"attributes": {}, "zarr_format": 3, "node_type": "group"}),
            },
        };
        starts.push(&mut folder, &0u64.to_ne_bytes())?;
        let output = folder.out().to_path_buf();
        Ok(FlatTokensWriter {
            folder,
            overwrite: options.overwrite,
            attributes,
            tokens,
            starts,
            max_id: 0,
            report: Report { output, ..Report::default() },
        })
    }

    fn append(mut folder: WholeFolder) -> Result<FlatTokensWriter> {
        let store: Arc<dyn Store> = Arc::new(Local::new(folder.out()));
        let look = Look::at(store.clone(), "")?;
        let group = FlatTokens.group(&look, &Options::default())?;
        folder.keep_all()?;
        let read = |name: &str| -> Result<Value> {
            let object = store.open(name)?;
            serde_json::from_slice(&read_small(object.as_ref(), MOST_METADATA)?)
                .map_err(|e| Error::corrupt("no JSON").caused_by(e).at(object.name()))
        };
        let is_v3 = store.entry(METADATA_V3).is_ok();
        let file = if is_v3 { METADATA_V3 } else { ".zattrs" };
        let attributes = Attributes { file, text: read(file)? };
        let array = |name, len| {
            let metadata = read(&below(name, if is_v3 { METADATA_V3 } else { METADATA_V2 }))?;
            Ok::<_, Error>(Growing { len, ..Growing::new(name, metadata, is_v3)? })
        };
        let mut tokens = array(group.tokens_name, group.tokens.len())?;
        let (first, rest) = tokens.unfilled();
        group.tokens_as_here(first, rest, &mut tokens.rest)?;
        let mut starts = array(STARTS, group.starts.len())?;
        let (first, rest) = starts.unfilled();
        group.starts_as_here(first, rest, &mut starts.rest)?;
        let output = folder.out().to_path_buf();
        Ok(FlatTokensWriter {
            folder,
            overwrite: true,
            attributes,
            tokens,
            starts,
            max_id: group.max_id,
            report: Report { output, ..Report::default() },
        })
    }

    /// Writes the next sequence; it may be empty.
    ///
    /// # Errors
    /// `Config` for an id above 2^31 - 1, naming the sequence; `Io`. After an error only dropping is left.
    pub fn add(&mut self, ids: &[u32]) -> Result<()> {
        let mut encoded = Vec::with_capacity(ids.len() * 4);
        for (place, id) in ids.iter().enumerate() {
            if u64::from(*id) > LARGEST_ID {
                return Err(Error::config(format!("the id {id}, expected at most {LARGEST_ID}"))
                    .record(self.report.records));
            }
            self.max_id = self.max_id.max(u64::from(*id));
            encoded.extend((id << 1 | u32::from(place == 0)).to_ne_bytes());
        }
        self.tokens.push(&mut self.folder, &encoded)?;
        self.starts.push(&mut self.folder, &self.tokens.len.to_ne_bytes())?;
        self.report.records += 1;
        self.report.tokens += ids.len() as u64;
        Ok(())
    }

    /// Completes the arrays and makes them visible in one rename.
    ///
    /// # Errors
    /// `Exists` when somebody wrote there meanwhile; `Io`.
    pub fn finish(mut self) -> Result<Report> {
        self.tokens.finish(&mut self.folder)?;
        self.starts.finish(&mut self.folder)?;
        let attributes = match self.attributes.file {
            METADATA_V3 => &mut self.attributes.text["attributes"],
            _ => &mut self.attributes.text,
        };
        if !attributes.is_object() {
            *attributes = Value::Object(Map::new());
        }
        attributes[MAX_ID] = self.max_id.into();
        self.folder.write(self.attributes.file, text(&self.attributes.text).as_bytes())?;
        root_group(self.folder.out(), self.attributes.file == METADATA_V3)?;
        self.folder.finish(self.overwrite)?;
        self.report.files = self.tokens.files + self.starts.files;
        self.report.output_bytes = self.tokens.bytes + self.starts.bytes;
        Ok(self.report)
    }
}

/// Writes all records of a source, which must be ids, as flat-tokens.
///
/// # Errors
/// As [`FlatTokensWriter`]; what reading the source says; `Interrupted`. After an error nothing visible has changed.
pub fn convert(source: &dyn Source, out: &Path, options: &WriteOptions, watch: &dyn Watch) -> Result<Report> {
    let schema = source.schema();
    if schema.kind != SourceKind::Numbers || schema.channels.is_some() || !schema.element.dtype.is_integer() {
        return Err(Error::config("flat-tokens hold token ids [T], and these records are none"));
    }
    let mut writer = FlatTokensWriter::create(out, options)?;
    let (mut scratch, mut ids) = (Vec::new(), Vec::new());
    for record in 0..source.len() {
        if watch.cancelled() {
            return Err(Error::new(Kind::Interrupted, "stopped before the end; nothing visible was written"));
        }
        let values = source.read_whole(record, &mut scratch)?;
        ids.resize(values.bytes.len() / values.element.size(), 0u32);
        copy_values(&values, 0, bytemuck::cast_slice_mut(&mut ids), DType::U32)
            .map_err(|e| e.record(record))?;
        writer.add(&ids).map_err(|e| e.record(record))?;
        let done_bytes = writer.report.tokens * 4;
        watch.progress(Progress { done_bytes, total_bytes: 0, records: record + 1 });
    }
    writer.finish()
}

impl Growing {
    fn new(folder: &'static str, metadata: Value, is_v3: bool) -> Result<Growing> {
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

    // The values that fill no chunk: the first of them, and how many.
    fn unfilled(&self) -> (u64, u64) {
        let rest = self.len % self.chunk;
        (self.len - rest, rest)
    }

    fn push(&mut self, folder: &mut WholeFolder, mut numbers: &[u8]) -> Result<()> {
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

    fn put(&mut self, folder: &mut WholeFolder, chunk: u64) -> Result<()> {
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
        folder.write(&below(self.folder, self.zarr.chunk_key(&[chunk]).as_str()), &encoded)?;
        self.files += 1;
        self.bytes += encoded.len() as u64;
        Ok(())
    }

    fn finish(&mut self, folder: &mut WholeFolder) -> Result<()> {
        if !self.rest.is_empty() {
            self.put(folder, self.len / self.chunk)?;
        }
        self.metadata["shape"] = json!([self.len]);
        folder.write(&below(self.folder, self.file), text(&self.metadata).as_bytes())
    }
}

// As seqax has it written: keys in order, four spaces.
fn v2_array(dtype: &str, chunk: u64) -> Value {
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

// As zarr-python writes its default, with shards where they are asked for.
fn v3_array(dtype: &str, chunk: u64, chunks_per_shard: Option<u64>) -> Value {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 0, "checksum": false}});
    let codecs = match chunks_per_shard {
        None => json!([bytes, zstd]),
        Some(_) => json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [chunk],
            "codecs": [bytes, zstd],
            "index_codecs": [bytes, {"name": "crc32c"}],
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

// Plain trees with string keys: serialising cannot fail.
fn text(value: &Value) -> String {
    let mut out = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, format);
    match serde::Serialize::serialize(value, &mut serializer) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => String::new(),
    }
}

fn is_ours(out: &Path) -> bool {
    let store: Arc<dyn Store> = Arc::new(Local::new(out));
    Look::at(store, "").is_ok_and(|look| FlatTokens.recognise(&look) != windrow_core::format::Certainty::No)
}

// The folder above the splits is a group of its own; one without arrays says nothing about them.
fn root_group(out: &Path, is_v3: bool) -> Result<()> {
    let Some(root) = out.parent() else { return Ok(()) };
    let store = Local::new(root);
    let is_group = [METADATA_V3, ".zgroup"].iter().any(|name| store.entry(name).is_ok());
    let is_split = out.file_name().is_some_and(|name| name == "train" || name == "validation");
    match is_group || !is_split {
        true => Ok(()),
        false if is_v3 => {
            write_root(root, METADATA_V3, &json!({"attributes": {}, "zarr_format": 3, "node_type": "group"}))
        }
        false => write_root(root, ".zgroup", &json!({"zarr_format": 2})),
    }
}

fn write_root(root: &Path, name: &str, value: &Value) -> Result<()> {
    write_whole(&PathBuf::from(root).join(name), text(value).as_bytes())
}
