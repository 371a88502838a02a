//! Chunks as litdata's `optimize` lays them out, and the index at the end: tokens, or items that are dicts.

use serde_json::{Value as Json, json};
use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, OwnOptions, RecordWriter, Stored, TO_COLUMN_HINT, Target, WriteFormat, WriteInfo, Written,
    other_columns,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::{Array, Error, Result, Row, Value};

use super::LitData;
use super::chunks::offsets_end;
use super::encode::{Column, Kind, columns_of, encode};
use crate::index_json::INDEX;
use crate::written_folder::WrittenFolder;

/// What `optimize` is usually told.
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
        match (1..=MOST_SIZE).contains(&chunk_bytes) {
            true => Ok(WriteLitData { column: options.text("to_column")?, chunk_bytes }),
            false => Err(Error::config(format!("chunk_bytes is {chunk_bytes}, expected 1 to {MOST_SIZE}"))
                .field("chunk_bytes")),
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
            _ => Items::Dicts(Vec::new()),
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
            chunks: Vec::new(),
            records: 0,
            warned: false,
        }))
    }
}

/// What an item is.
enum Items {
    /// The numbers of a record: tokens, or an array of several axes.
    Numbers(Kind),
    /// A leaf for each value of a row, known from the first.
    Dicts(Vec<Column>),
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
    /// Rows of the index.
    chunks: Vec<Json>,
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
        let Items::Dicts(columns) = &mut self.items else {
            return Err(Error::config("a row among numbers").record(number));
        };
        if self.records == 0 {
            *columns = columns_of(row);
        }
        if row.is_empty() {
            return Err(Error::config("a row without columns").record(number));
        }
        if row.len() != columns.len() {
            return Err(other_columns(number, row, names_of(columns)));
        }
        let (mut sizes, mut values) = (Vec::new(), Vec::new());
        for column in columns.iter() {
            let value = row.get(&column.name).ok_or_else(|| other_columns(number, row, names_of(columns)))?;
            let before = values.len();
            encode(column.kind, value, &mut values).map_err(|e| e.record(number).field(&column.name))?;
            let size = u32::try_from(values.len() - before).map_err(|_| too_large(number))?;
            sizes.extend(size.to_le_bytes());
        }
        sizes.append(&mut values);
        self.put(number, &sizes)
    }

    fn finish(mut self: Box<Self>, manifest: Manifest) -> Result<Written> {
        if self.records > 0 {
            self.end_chunk()?;
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
        self.records += 1;
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<()> {
        let begin = offsets_end(self.ends.len() as u64);
        // Below 4 GiB, which every item was added with.
        let mut bytes = Vec::with_capacity(begin as usize + self.chunk.len());
        bytes.extend((self.ends.len() as u32).to_le_bytes());
        for end in [0].iter().chain(&self.ends) {
            bytes.extend(((begin + end) as u32).to_le_bytes());
        }
        let tokens = self.is_tokens().then(|| self.chunk.len() as u64 / self.dtype_size);
        bytes.append(&mut self.chunk);
        let name = format!("chunk-0-{}.bin", self.chunks.len());
        self.chunks.push(json!({
            "chunk_bytes": bytes.len(), "chunk_size": self.ends.len(), "dim": tokens, "filename": name,
        }));
        self.ends.clear();
        self.folder.put(name, &bytes)
    }

    fn config(&self) -> Json {
        let leaf = json!({ "type": null, "context": null, "children_spec": [] });
        let (kinds, tree) = match &self.items {
            Items::Numbers(kind) => (vec![kind.name()], leaf),
            Items::Dicts(columns) => {
                let keys: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                let children = vec![leaf; columns.len()];
                let context = json!(keys).to_string();
                let tree = json!({ "type": "builtins.dict", "context": context, "children_spec": children });
                (columns.iter().map(|column| column.kind.name()).collect(), tree)
            }
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
            "types": null,
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

fn too_large(number: u64) -> Error {
    Error::config("an item that a chunk of 4 GiB does not hold").record(number)
}

fn names_of(columns: &[Column]) -> impl Iterator<Item = &str> {
    columns.iter().map(|column| column.name.as_str())
}
