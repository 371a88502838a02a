//! One `.npy` array of all records, with its manifest: version 1.0 of the layout that numpy documents, in C order.

use std::path::PathBuf;

use windrow_core::format::Format;
use windrow_core::format::write::{Begin, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written};
use windrow_core::manifest::Manifest;
use windrow_core::output::{Growing, files, write_manifest_beside};
use windrow_core::{DType, Error, Result};

use super::Npy;

/// Room for magic, version, length and text; 64-byte aligned as the documentation asks.
const HEADER: usize = 128;

/// One array, `[N, T]` or `[N, T, C]`.
pub(super) struct WriteNpy;

impl WriteFormat for WriteNpy {
    fn info(&self) -> WriteInfo {
        WriteInfo::of(Npy.name(), Target::File(&[""]))
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        let mut file = Growing::create(begin.work.join(begin.name))?;
        file.write(&[0; HEADER])?;
        Ok(Box::new(Writer {
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            file,
            descr: descr(begin.dtype)?,
            channels: begin.channels,
            length: None,
            records: 0,
            fsync: begin.fsync,
        }))
    }
}

struct Writer {
    work: PathBuf,
    name: String,
    file: Growing,
    descr: &'static str,
    channels: Option<usize>,
    /// Values in every record; known from the first.
    length: Option<u64>,
    records: u64,
    fsync: bool,
}

impl RecordWriter for Writer {
    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        let length = *self.length.get_or_insert(record.len);
        if record.len != length {
            return Err(Error::config(format!(
                "a record of {} values among records of {length}: an array has rows of one length",
                record.len
            ))
            .record(record.number)
            .hint("write shards or .jsonl"));
        }
        if self.records == 0 && record.is_first && !record.extras.is_empty() {
            windrow_core::warn!("an .npy file holds numbers only: the metadata of records is left out");
        }
        self.records += u64::from(record.is_last);
        self.file.write(record.bytes)
    }

    fn finish(self: Box<Self>, manifest: Manifest) -> Result<Written> {
        let bytes = self.file.size();
        self.file.finish(false)?;
        let shape = [Some(self.records), Some(self.length.unwrap_or(0)), self.channels.map(|c| c as u64)];
        let header = header(self.descr, shape.into_iter().flatten());
        let path = self.work.join(&self.name);
        files::write_at(&path, 0, &header)?;
        let file = files::finish(&path, self.fsync)?;
        let manifest = Manifest { records: Some(self.records), record_length: self.length, ..manifest };
        let manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}

/// What comes before the numbers: magic, version, length, and a Python literal, filled up to [`HEADER`] bytes; of more than three
/// axes to a multiple of 64.
pub(crate) fn header(descr: &str, shape: impl Iterator<Item = u64>) -> Vec<u8> {
    // Python writes a tuple of one with a comma.
    let shape: String = shape.map(|n| format!("{n}, ")).collect();
    let shape = match shape.matches(',').count() {
        1 => shape.trim_end(),
        _ => shape.trim_end_matches(", "),
    };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Three numbers of 20 digits fit; 64, the most there are, stay far below 64 KiB.
    let size = (10 + text.len() + 1).next_multiple_of(64).max(HEADER);
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&((size - 10) as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header.resize(size - 1, b' ');
    header.push(b'\n');
    header
}

pub(crate) fn descr(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::Bf16 => {
            return Err(Error::config("NumPy has no bfloat16 dtype").hint("choose dtype float32"));
        }
    })
}
