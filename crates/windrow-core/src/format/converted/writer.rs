//! Writes a converted file as its records come: int64 until the first number that is not whole, then float32.

use std::ops::Range;

use super::{HEADER, Header, NONE, ROW};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::store::Draft;

/// Numbers rewritten at a time.
const PART: u64 = 8192;

/// A converted file that grows.
pub(super) struct Writer<'d> {
    /// The header's place and the values.
    values: &'d mut Draft,
    rows: Draft,
    extras: Draft,
    pub(super) file: String,
    limit: u64,
    dtype: DType,
    numbers: u64,
    records: u64,
    /// The length that all records so far have.
    uniform: Option<u64>,
    /// Finite numbers that are infinite as float32.
    overflowed: u64,
}

impl<'d> Writer<'d> {
    /// An empty file; no more than `limit` bytes will be written.
    pub(super) fn new(values: &'d mut Draft, file: &str, limit: u64) -> Result<Self> {
        let (rows, extras) = (values.spill()?, values.spill()?);
        values.append(&[0; HEADER])?;
        Ok(Writer {
            values,
            rows,
            extras,
            file: file.to_string(),
            limit,
            dtype: DType::I64,
            numbers: 0,
            records: 0,
            uniform: None,
            overflowed: 0,
        })
    }

    /// How many records were ended.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Appends a whole number.
    pub(super) fn int(&mut self, number: i64) -> Result<()> {
        match self.dtype {
            DType::I64 => self.put(&number.to_le_bytes()),
            _ => self.put(&(number as f32).to_le_bytes()),
        }
    }

    /// Appends a number that is not whole, or not finite, or was written as if it were not whole.
    pub(super) fn float(&mut self, number: f64) -> Result<()> {
        if self.dtype == DType::I64 {
            self.become_float()?;
        }
        let narrow = number as f32;
        self.overflowed += u64::from(narrow.is_infinite() && number.is_finite());
        self.put(&narrow.to_le_bytes())
    }

    /// Ends a record: what stands beside it, its number of values, its place in the file.
    pub(super) fn end_record(&mut self, extras: &str, length: u64, place: Range<u64>) -> Result<()> {
        self.extras.append(extras.as_bytes())?;
        for word in [self.numbers, self.extras.size(), place.start, place.end - place.start] {
            self.rows.append(&word.to_le_bytes())?;
        }
        self.uniform = match self.records {
            0 => Some(length),
            _ => self.uniform.filter(|uniform| *uniform == length),
        };
        self.records += 1;
        self.check_limit()
    }

    /// Writes what follows the values, and the header.
    pub(super) fn finish(mut self, channels: Option<u64>, content: u64) -> Result<()> {
        if self.overflowed > 0 {
            log::warn!("{}: {} numbers are beyond float32 and became infinite", self.file, self.overflowed);
        }
        let header = Header {
            dtype: self.dtype,
            channels: channels.unwrap_or(NONE),
            records: self.records,
            numbers: self.numbers,
            extras_size: self.extras.size(),
            uniform: self.uniform.unwrap_or(NONE),
            content,
        };
        self.values.append_all(&mut self.rows)?;
        self.values.append_all(&mut self.extras)?;
        self.values.write_at(0, &header.bytes())?;
        log::info!("converted {}: {} records of {}", self.file, self.records, self.dtype);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.numbers += 1;
        // Asked now and then: a record may never end.
        if self.numbers.is_multiple_of(PART) {
            self.check_limit()?;
        }
        self.values.append(bytes)
    }

    fn check_limit(&self) -> Result<()> {
        let size = self.values.size() + self.records * ROW + self.extras.size();
        match size <= self.limit {
            true => Ok(()),
            false => Err(Error::config(format!(
                "converting it takes more than {} bytes of cache, after {} records",
                self.limit, self.records
            ))
            .at(&self.file)
            .field("cache_limit")
            .hint("allow more with cache_limit; a small file that needs so much names the same values again and again")),
        }
    }

    /// What stands there as int64 becomes float32 in its place, from the front: the narrow never overtakes the wide.
    fn become_float(&mut self) -> Result<()> {
        self.dtype = DType::F32;
        let mut wide = vec![0; PART as usize * 8];
        let mut narrow = Vec::with_capacity(PART as usize * 4);
        let mut at = 0;
        while at < self.numbers {
            let count = (self.numbers - at).min(PART);
            let part = &mut wide[..count as usize * 8];
            self.values.read_at(HEADER as u64 + at * 8, part)?;
            narrow.clear();
            for word in part.as_chunks::<8>().0 {
                narrow.extend_from_slice(&(i64::from_le_bytes(*word) as f32).to_le_bytes());
            }
            self.values.write_at(HEADER as u64 + at * 4, &narrow)?;
            at += count;
        }
        self.values.cut(HEADER as u64 + self.numbers * 4)
    }
}
