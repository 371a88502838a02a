//! Chunks as litdata's `optimize` writes them, and the index at the end: tokens, or items that are dicts.

use serde_json::{Value as Json, json};
use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, OwnOptions, RecordWriter, Stored, TO_COLUMN_HINT, Target, WriteFormat, WriteInfo, Written,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::{Array, Error, Result, Row, Value};

use super::LitData;
use super::chunks::{offsets_end, word};
use super::dicts::{Dicts, too_large};
use super::encode::{Kind, encode};
use crate::index_json::INDEX;
use crate::written_folder::WrittenFolder;

/// The usual option of `optimize`.
const USUAL_SIZE: u64 = 64 << 20;
/// Places in a chunk are 32 bits.
const MOST_SIZE: u64 = u32::MAX as u64;

/// Chunks of tokens, or of dicts.
pub(super) struct WriteLitData {
    /// The key of the numbers, where items are dicts.
    column: Option<String>,
    chunk_bytes: u64,
}

impl WriteLitData {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteLitData> {
        let chunk_bytes = options.bytes("chunk_bytes")?.unwrap_or(USUAL_SIZE);
        if (1..=MOST_SIZE).contains(&chunk_bytes) {
            Ok(WriteLitData { column: options.text("to_column")?, chunk_bytes })
        } else {
            Err(Error::config(format!("chunk_bytes is {chunk_bytes}, expected 1 to {MOST_SIZE}"))
                .field("chunk_bytes"))
        }
    }
}

impl WriteFormat for WriteLitData {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            holds_rows: true,
            keeps_metadata: self.column.is_some(),
            ..WriteInfo::of(LitData.name(), Target::Folder)
        }
    }

    fn is_own(&self, name: &str) -> bool {
        let is_chunk = name.starts_with("chunk-") && name.ends_with(".bin");
        is_chunk || [INDEX, MANIFEST_FILE, CHECKSUMS_FILE].contains(&name)
    }

    fn is_description(&self, name: &str) -> bool {
        [INDEX, MANIFEST_FILE].contains(&name)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        let kind = match begin.channels {
            None => Kind::Bare(begin.dtype),
            Some(_) => Kind::Array,
        };
        let items = match (&self.column, begin.are_rows) {
            (None, false) => Items::Numbers(kind),
            _ => Items::Dicts(Dicts::default()),
        };
        Ok(Box::new(Writer {
            folder: WrittenFolder::begin(begin)?,
            column: self.column.clone(),
            dtype_size: begin.dtype.size() as u64,
            empty: Array { dtype: begin.dtype, shape: Vec::new(), bytes: Vec::new() },
            channels: begin.channels,
            chunk_bytes: self.chunk_bytes,
            items,
            record: Vec::new(),
            chunk: Vec::new(),
            ends: Vec::new(),
            versions: Vec::new(),
            chunks: Vec::new(),
            chunk_versions: Vec::new(),
            records: 0,
            warned: false,
        }))
    }
}

/// What an item is.
enum Items {
    /// The numbers of a record: tokens, or an array of several axes.
    Numbers(Kind),
    /// A leaf for each value of a row.
    Dicts(Dicts),
}

struct Writer {
    folder: WrittenFolder,
    column: Option<String>,
    dtype_size: u64,
    /// An array of the records' dtype.
    empty: Array,
    channels: Option<usize>,
    chunk_bytes: u64,
    items: Items,
    /// The parts of a record so far.
    record: Vec<u8>,
    /// The items of the chunk that grows, and where each ends.
    chunk: Vec<u8>,
    ends: Vec<u64>,
    /// The version of the leaves that each was encoded with.
    versions: Vec<usize>,
    /// Rows of the index.
    chunks: Vec<Json>,
    /// The version that the items of each chunk were encoded with.
    chunk_versions: Vec<usize>,
    records: u64,
    warned: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        let width = self.dtype_size * self.channels.unwrap_or(1) as u64;
        if record.is_first && record.len.saturating_mul(width) > MOST_SIZE / 2 {
            return Err(Error::config(format!(
                "a record of {} values, more than a chunk of LitData holds",
                record.len
            ))
            .record(record.number)
            .hint("open a token stream with @document_eos@: each document is a record then"));
        }
        self.record.extend_from_slice(record.bytes);
        if !record.is_last {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.record);
        let array = record.array(self.empty.dtype, self.channels, bytes);
        if let (Items::Numbers(kind), None) = (&self.items, &self.column) {
            let kind = *kind;
            if !record.extras.is_empty() && !self.warned {
                windrow_core::warn!(
                    "LitData holds the numbers alone: the metadata of records is left out, but for @to_column@"
                );
                self.warned = true;
            }
            let mut item = Vec::new();
            match kind {
                Kind::Bare(_) => item = array.bytes,
                // A tree of one leaf, whose size comes first.
                _ => put_leaf(kind, &array.into(), &mut item).map_err(|e| e.record(record.number))?,
            }
            return self.put(record.number, &item);
        }
        let row = record.row(self.column.as_deref().unwrap_or_default(), array, TO_COLUMN_HINT)?;
        self.add_row(record.number, &row)
    }

    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        let Items::Dicts(dicts) = &mut self.items else {
            return Err(Error::config("a row among numbers").record(number));
        };
        let item = dicts.encode(number, row)?;
        self.put(number, &item)
    }

    fn finish(mut self: Box<Self>, manifest: Manifest) -> Result<Written> {
        if self.records > 0 {
            self.end_chunk()?;
            self.encode_again()?;
            let text =
                json!({ "chunks": self.chunks, "config": self.config(), "updated_at": "0" }).to_string();
            self.folder.put_beside(INDEX, text.as_bytes())?;
        }
        self.folder.finish(manifest, self.records)
    }
}

impl Writer {
    fn is_tokens(&self) -> bool {
        matches!(self.items, Items::Numbers(Kind::Bare(_)))
    }

    fn put(&mut self, number: u64, item: &[u8]) -> Result<()> {
        let size_with = |items: usize, bytes: usize| offsets_end(items as u64) + bytes as u64;
        if size_with(1, item.len()) > MOST_SIZE {
            return Err(too_large(number));
        }
        if !self.ends.is_empty()
            && size_with(self.ends.len() + 1, self.chunk.len() + item.len()) > self.chunk_bytes
        {
            self.end_chunk()?;
        }
        self.chunk.extend_from_slice(item);
        self.ends.push(self.chunk.len() as u64);
        self.versions.push(self.version());
        self.records += 1;
        Ok(())
    }

    // What changes with the leaves of items.
    fn version(&self) -> usize {
        match &self.items {
            Items::Numbers(_) => 0,
            Items::Dicts(dicts) => dicts.version(),
        }
    }

    fn end_chunk(&mut self) -> Result<()> {
        let (mut items, ends) = (std::mem::take(&mut self.chunk), std::mem::take(&mut self.ends));
        let (mut ends, versions, now) = (ends, std::mem::take(&mut self.versions), self.version());
        if let Items::Dicts(dicts) = &self.items
            && versions.iter().any(|version| *version != now)
        {
            (items, ends) = encoded_again(dicts, &items, &ends, &versions)?;
        }
        let tokens = self.is_tokens().then(|| items.len() as u64 / self.dtype_size);
        let bytes = chunk_of(items, &ends)?;
        let name = format!("chunk-0-{}.bin", self.chunks.len());
        self.chunks.push(json!({
            "chunk_bytes": bytes.len(), "chunk_size": ends.len(), "dim": tokens, "filename": name,
        }));
        self.chunk_versions.push(now);
        self.folder.put(name, &bytes)
    }

    // Chunks that were complete before the last change of the leaves: an index has one kind for each leaf.
    fn encode_again(&mut self) -> Result<()> {
        let now = self.version();
        let Items::Dicts(dicts) = &self.items else { return Ok(()) };
        if self.chunk_versions.iter().all(|version| *version == now) {
            return Ok(());
        }
        let (versions, chunks) = (&self.chunk_versions, &mut self.chunks);
        self.folder.write_again(&mut |number, chunk| {
            if versions[number] == now {
                return Ok(chunk);
            }
            // It was written here.
            let count = word(&chunk, 0);
            let begin = offsets_end(count);
            let ends: Vec<u64> = (1..=count).map(|at| word(&chunk, 4 + 4 * at as usize) - begin).collect();
            let of_each = vec![versions[number]; ends.len()];
            let (items, ends) = encoded_again(dicts, &chunk[begin as usize..], &ends, &of_each)?;
            let chunk = chunk_of(items, &ends)?;
            chunks[number]["chunk_bytes"] = json!(chunk.len());
            Ok(chunk)
        })
    }

    fn config(&self) -> Json {
        let leaf = json!({ "type": null, "context": null, "children_spec": [] });
        let (kinds, tree) = match &self.items {
            Items::Numbers(kind) => (vec![kind.name()], leaf),
            Items::Dicts(dicts) => {
                let (keys, kinds): (Vec<&str>, Vec<String>) =
                    dicts.leaves().map(|(name, kind)| (name, kind.name())).unzip();
                let children = vec![leaf; keys.len()];
                let context = json!(keys).to_string();
                let tree = json!({ "type": "builtins.dict", "context": context, "children_spec": children });
                (kinds, tree)
            }
        };
        let types = match &self.items {
            Items::Numbers(_) => Json::Null,
            Items::Dicts(dicts) => dicts.types(),
        };
        json!({
            "chunk_bytes": self.chunk_bytes,
            "chunk_size": null,
            "compression": null,
            "compression_batch_size": null,
            "compression_level": null,
            "data_format": kinds,
            "data_spec": json!([1, tree]).to_string(),
            "encryption": null,
            "ipc_compression": null,
            "item_loader": if self.is_tokens() { "TokensLoader" } else { "PyTreeLoader" },
            "types": types,
        })
    }
}

fn put_leaf(kind: Kind, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    let mut leaf = Vec::new();
    encode(kind, value, &mut leaf)?;
    out.extend((leaf.len() as u32).to_le_bytes());
    out.append(&mut leaf);
    Ok(())
}

// The items of a chunk, some of an earlier version of the leaves, and where each ends.
fn encoded_again(
    dicts: &Dicts,
    items: &[u8],
    ends: &[u64],
    versions: &[usize],
) -> Result<(Vec<u8>, Vec<u64>)> {
    let (mut again, mut again_ends, mut start) = (Vec::with_capacity(items.len()), Vec::new(), 0);
    for (end, version) in ends.iter().zip(versions) {
        let item = &items[start..*end as usize];
        if *version == dicts.version() {
            again.extend_from_slice(item)
        } else {
            again.extend(dicts.encoded_again(item, *version)?)
        }
        again_ends.push(again.len() as u64);
        start = *end as usize;
    }
    Ok((again, again_ends))
}

// The bytes of a chunk of these items.
fn chunk_of(mut items: Vec<u8>, ends: &[u64]) -> Result<Vec<u8>> {
    let begin = offsets_end(ends.len() as u64);
    // Every item was added below 4 GiB; what was encoded again may have grown.
    if begin + items.len() as u64 > MOST_SIZE {
        return Err(Error::config("items that a chunk of 4 GiB does not hold with the keys of later ones")
            .hint("write smaller chunks with @chunk_bytes@"));
    }
    let mut bytes = Vec::with_capacity(begin as usize + items.len());
    bytes.extend((ends.len() as u32).to_le_bytes());
    for end in [0].iter().chain(ends) {
        bytes.extend(((begin + end) as u32).to_le_bytes());
    }
    bytes.append(&mut items);
    Ok(bytes)
}
