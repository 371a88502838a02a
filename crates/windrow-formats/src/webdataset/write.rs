//! Archives as tar and webdataset's ShardWriter write them: a member for every value, samples one after the other.

use std::collections::HashSet;

use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, OwnOptions, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written,
};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE, Manifest};
use windrow_core::output::Growing;
use windrow_core::{DType, Error, Result, Row, Value};

use super::names::key_and_suffix;
use super::samples::KEY;
use super::tar::{BLOCK, MOST_NAME};
use super::values::encode;
use super::{NUMBERS, WebDataset};
use crate::written_folder::WrittenFolder;

/// What a shard holds by default.
const USUAL_SIZE: u64 = 1 << 30;
/// What a header's own fields hold.
const MOST_PLAIN_NAME: usize = 100;
const MOST_PLAIN_SIZE: u64 = 0o777_7777_7777;
/// What an archive ends with.
const END: [u8; 2 * BLOCK as usize] = [0; 2 * BLOCK as usize];

/// Shards of rows, or of arrays.
pub(super) struct WriteWebDataset {
    size_limit: u64,
}

impl WriteWebDataset {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteWebDataset> {
        let size_limit = options.bytes("size_limit")?.unwrap_or(USUAL_SIZE);
        match size_limit {
            0 => Err(Error::config("size_limit is 0, expected 1 or more").field("size_limit")),
            size_limit => Ok(WriteWebDataset { size_limit }),
        }
    }
}

impl WriteFormat for WriteWebDataset {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            holds_rows: true,
            keeps_metadata: true,
            ..WriteInfo::of(WebDataset.name(), Target::Folder)
        }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        let dtype = asked.unwrap_or(given);
        crate::npy::descr(dtype).map(|_| dtype).map_err(|e| e.field("dtype"))
    }

    fn is_own(&self, name: &str) -> bool {
        let is_shard = name.starts_with("shard-") && name.ends_with(".tar");
        is_shard || [MANIFEST_FILE, CHECKSUMS_FILE].contains(&name)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer {
            folder: WrittenFolder::begin(begin)?,
            dtype: begin.dtype,
            channels: begin.channels,
            size_limit: self.size_limit,
            shard: None,
            last_key: None,
            shards: 0,
            records: 0,
        }))
    }
}

struct Writer {
    folder: WrittenFolder,
    dtype: DType,
    channels: Option<usize>,
    size_limit: u64,
    /// The one that grows.
    shard: Option<Growing>,
    /// The key of the sample before.
    last_key: Option<String>,
    /// Those that are whole.
    shards: u64,
    records: u64,
}

impl RecordWriter for Writer {
    fn takes_parts(&self) -> bool {
        false
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        let array = record.array(self.dtype, self.channels, record.bytes.to_vec());
        let row = record.row(NUMBERS, array, "leave that column out")?;
        self.add_row(record.number, &row)
    }

    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        let key = match row.get(KEY) {
            None | Some(Value::Null) => format!("{number:09}"),
            Some(Value::Text(key)) => key.clone(),
            Some(other) => {
                return Err(Error::config(format!("{KEY} is {}, expected text", other.shown()))
                    .record(number)
                    .field(KEY));
            }
        };
        if self.last_key.as_ref() == Some(&key) {
            return Err(Error::config(format!(
                "two samples with the key {key:?}: they would be read as one"
            ))
            .record(number)
            .field(KEY)
            .hint("give them other keys, or leave the column out"));
        }
        let (mut sample, mut seen) = (Vec::new(), HashSet::new());
        for (column, value) in row.iter().filter(|(column, _)| *column != KEY) {
            let wrong = |e: Error| e.record(number).field(column);
            let Some((suffix, bytes)) = encode(column, value).map_err(wrong)? else { continue };
            let name = format!("{key}.{suffix}");
            if key_and_suffix(name.as_bytes()) != Some((key.as_bytes(), suffix.clone()))
                || name.contains('\0')
            {
                return Err(wrong(Error::config(format!("the name {name:?} gives another key or suffix")).hint(
                    "a key has no dot behind its last slash, a suffix no slash, and neither is `__metadata__`",
                )));
            }
            if name.len() as u64 > MOST_NAME {
                return Err(wrong(Error::config(format!("a name of {} bytes", name.len()))));
            }
            if !seen.insert(suffix) {
                return Err(wrong(Error::config("two columns whose names differ in case only")));
            }
            put_member(&name, &bytes, &mut sample);
        }
        if sample.is_empty() {
            return Err(Error::config("a row without values: no member would be there to read it from")
                .record(number));
        }
        let behind = (sample.len() + END.len()) as u64;
        if self.shard.as_ref().is_some_and(|shard| shard.size() + behind > self.size_limit) {
            self.end_shard()?;
        }
        if self.shard.is_none() {
            self.shard = Some(Growing::create(self.folder.path.join(self.shard_name()))?);
        }
        if let Some(shard) = &mut self.shard {
            shard.write(&sample)?;
            shard.begin_sync();
        }
        self.last_key = Some(key);
        self.records += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>, manifest: Manifest) -> Result<Written> {
        self.end_shard()?;
        self.folder.finish(manifest, self.records)
    }
}

impl Writer {
    fn shard_name(&self) -> String {
        format!("shard-{:06}.tar", self.shards)
    }

    fn end_shard(&mut self) -> Result<()> {
        let name = self.shard_name();
        let Some(mut shard) = self.shard.take() else { return Ok(()) };
        shard.write(&END)?;
        self.shards += 1;
        self.folder.keep(name, shard)
    }
}

// The headers and the data of a member, filled up.
fn put_member(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    let size = bytes.len() as u64;
    let mut records = Vec::new();
    if !name.is_ascii() || name.len() > MOST_PLAIN_NAME {
        put_record("path", name, &mut records);
    }
    if size > MOST_PLAIN_SIZE {
        put_record("size", &size.to_string(), &mut records);
    }
    if !records.is_empty() {
        out.extend(header(b"PaxHeader", records.len() as u64, b'x'));
        put_data(&records, out);
    }
    let plain: Vec<u8> = name.bytes().map(|byte| if byte.is_ascii() { byte } else { b'_' }).collect();
    out.extend(header(&plain, size.min(MOST_PLAIN_SIZE), b'0'));
    put_data(bytes, out);
}

fn put_data(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
    out.resize(out.len().next_multiple_of(BLOCK as usize), 0);
}

// `N key=value\n`, where N counts itself, too.
fn put_record(key: &str, value: &str, out: &mut Vec<u8>) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    out.extend(format!("{length} {key}={value}\n").as_bytes());
}

// A header of ustar: what does not fit its name is in records before it.
fn header(name: &[u8], size: u64, kind: u8) -> [u8; BLOCK as usize] {
    let mut block = [0; BLOCK as usize];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name[..name.len().min(MOST_PLAIN_NAME)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
