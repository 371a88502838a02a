//! Shards as mosaicml-streaming's MDSWriter writes them, and the index at the end.

use serde_json::{Value as Json, json};
use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, OwnOptions, RecordWriter, Stored, TO_COLUMN_HINT, Target, WriteFormat, WriteInfo, Written,
    other_columns,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::{DType, Error, Result, Row};
use xxhash_rust::xxh64::xxh64;

use super::Mds;
use super::encode::{Column, columns_of, encode};
use crate::index_json::INDEX;
use crate::written_folder::WrittenFolder;

/// What MDSWriter takes by default.
const USUAL_SIZE: u64 = 1 << 26;
/// Places in a shard are 32 bits.
const MOST_SIZE: u64 = u32::MAX as u64;
const USUAL_COLUMN: &str = "tokens";
/// The hash of each file that the index keeps: the fastest of those that MDSWriter has.
const HASH: &str = "xxh64";
const LEVELS: std::ops::RangeInclusive<i32> = 1..=22;

/// Shards of rows, or of arrays in one column.
pub(super) struct WriteMds {
    column: String,
    size_limit: u64,
    /// The level of zstd.
    level: Option<i32>,
}

impl WriteMds {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteMds> {
        let size_limit = options.bytes("size_limit")?.unwrap_or(USUAL_SIZE);
        if size_limit == 0 || size_limit > MOST_SIZE {
            return Err(Error::config(format!("size_limit is {size_limit}, expected 1 to {MOST_SIZE}"))
                .field("size_limit"));
        }
        let level = match options.text("compression")? {
            None => None,
            Some(text) => Some(level(&text)?),
        };
        Ok(WriteMds {
            column: options.text("to_column")?.unwrap_or_else(|| USUAL_COLUMN.to_string()),
            size_limit,
            level,
        })
    }
}

fn level(text: &str) -> Result<i32> {
    let level = match text.split_once(':') {
        None if text == "zstd" => Some(3),
        Some(("zstd", level)) => level.parse().ok().filter(|level| LEVELS.contains(level)),
        _ => None,
    };
    level.ok_or_else(|| {
        Error::config(format!("compression is {text:?}, expected zstd or zstd:LEVEL of 1 to 22"))
            .field("compression")
    })
}

impl WriteFormat for WriteMds {
    fn info(&self) -> WriteInfo {
        WriteInfo { holds_rows: true, keeps_metadata: true, ..WriteInfo::of(Mds.name(), Target::Folder) }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        match asked.unwrap_or(given) {
            DType::Bf16 => Err(Error::config("MDS holds no bfloat16 values")
                .field("dtype")
                .hint("choose @as_dtype=float32@")),
            dtype => Ok(dtype),
        }
    }

    fn is_own(&self, name: &str) -> bool {
        [INDEX, MANIFEST_FILE, CHECKSUMS_FILE].contains(&name) || name.starts_with("shard.")
    }

    fn is_description(&self, name: &str) -> bool {
        [INDEX, MANIFEST_FILE].contains(&name)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer {
            folder: WrittenFolder::begin(begin)?,
            column: self.column.clone(),
            dtype: begin.dtype,
            channels: begin.channels,
            size_limit: self.size_limit,
            level: self.level,
            columns: Vec::new(),
            samples: Vec::new(),
            ends: Vec::new(),
            shards: Vec::new(),
            records: 0,
        }))
    }
}

struct Writer {
    folder: WrittenFolder,
    column: String,
    dtype: DType,
    channels: Option<usize>,
    size_limit: u64,
    level: Option<i32>,
    /// Of all samples, known from the first.
    columns: Vec<Column>,
    /// The samples of the shard that grows, and where each ends.
    samples: Vec<u8>,
    ends: Vec<u64>,
    /// Rows of the index.
    shards: Vec<Json>,
    records: u64,
}

impl RecordWriter for Writer {
    fn takes_parts(&self) -> bool {
        false
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if record.len == 0 {
            return Err(Error::config("MDS holds no empty arrays")
                .record(record.number)
                .hint("leave the record out"));
        }
        let array = record.array(self.dtype, self.channels, record.bytes.to_vec());
        let row = record.row(&self.column, array, TO_COLUMN_HINT)?;
        self.add_row(record.number, &row)
    }

    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        if self.records == 0 {
            self.columns = columns_of(row).map_err(|e| e.record(number))?;
        }
        let (mut sizes, mut values) = (Vec::new(), Vec::new());
        if row.len() != self.columns.len() {
            return Err(other_columns(number, row, names_of(&self.columns)));
        }
        for column in &self.columns {
            let value =
                row.get(&column.name).ok_or_else(|| other_columns(number, row, names_of(&self.columns)))?;
            let before = values.len();
            encode(&column.encoding, value, &mut values)
                .map_err(|e| e.record(number).field(column.name.clone()))?;
            if column.size.is_none() {
                let size = u32::try_from(values.len() - before);
                let size = size.map_err(|_| too_large(number))?;
                sizes.extend(size.to_le_bytes());
            }
        }
        let sample = (sizes.len() + values.len()) as u64;
        if self.size_with(sample, 1) > MOST_SIZE {
            return Err(too_large(number));
        }
        if !self.ends.is_empty()
            && self.size_with(self.samples.len() as u64 + sample, self.ends.len() as u64 + 1)
                > self.size_limit
        {
            self.put_shard()?;
        }
        self.samples.extend_from_slice(&sizes);
        self.samples.extend_from_slice(&values);
        self.ends.push(self.samples.len() as u64);
        self.records += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>, manifest: Manifest) -> Result<Written> {
        if self.records > 0 {
            self.put_shard()?;
            let text = json!({ "shards": self.shards, "version": 2 }).to_string();
            self.folder.put_beside(INDEX, text.as_bytes())?;
        }
        self.folder.finish(manifest, self.records)
    }
}

impl Writer {
    // What the shard says of itself: nobody reads it, and the index says the same.
    fn config(&self) -> Json {
        let of = |part: fn(&Column) -> Json| self.columns.iter().map(part).collect::<Vec<_>>();
        json!({
            "column_encodings": of(|column| json!(column.encoding)),
            "column_names": of(|column| json!(column.name)),
            "column_sizes": of(|column| json!(column.size)),
            "compression": self.level.map(|level| format!("zstd:{level}")),
            "format": "mds",
            "hashes": [HASH],
            "size_limit": self.size_limit,
            "version": 2,
        })
    }

    // Bytes of a shard with `samples` samples of `bytes` bytes together.
    fn size_with(&self, bytes: u64, samples: u64) -> u64 {
        4 + 4 * (samples + 1) + self.config().to_string().len() as u64 + bytes
    }

    fn put_shard(&mut self) -> Result<()> {
        let mut index = self.config();
        let config = index.to_string();
        let begin = 4 + 4 * (self.ends.len() as u64 + 1) + config.len() as u64;
        // Below 4 GiB, which every sample was added with.
        let mut shard = Vec::with_capacity(begin as usize + self.samples.len());
        shard.extend((self.ends.len() as u32).to_le_bytes());
        for end in [0].iter().chain(&self.ends) {
            shard.extend(((begin + end) as u32).to_le_bytes());
        }
        shard.extend(config.as_bytes());
        shard.append(&mut self.samples);
        let name = format!("shard.{:05}.mds", self.shards.len());
        let raw = part(&name, &shard);
        let (name, bytes, zip) = match self.level {
            None => (name, shard, Json::Null),
            Some(level) => {
                let packed = zstd::bulk::compress(&shard, level)
                    .map_err(|e| Error::io("compress the shard", &self.folder.path, e))?;
                let name = format!("{name}.zstd");
                let zip = part(&name, &packed);
                (name, packed, zip)
            }
        };
        for (key, value) in [("raw_data", raw), ("samples", json!(self.ends.len())), ("zip_data", zip)] {
            index[key] = value;
        }
        self.shards.push(index);
        self.ends.clear();
        self.folder.put(name, &bytes)
    }
}

// A file as the index names it.
fn part(name: &str, bytes: &[u8]) -> Json {
    let hash = format!("{:016x}", xxh64(bytes, 0));
    json!({ "basename": name, "bytes": bytes.len(), "hashes": { HASH: hash } })
}

fn too_large(number: u64) -> Error {
    Error::config("a sample that a shard of 4 GiB does not hold").record(number)
}

fn names_of(columns: &[Column]) -> impl Iterator<Item = &str> {
    columns.iter().map(|column| column.name.as_str())
}
