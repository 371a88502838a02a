//! Writes a converted file as its records come, each in the dtype that holds all its numbers: one after the other, and of
//! a long record one part after the other.

use std::ops::Range;

use windrow_core::array::reserve;
use windrow_core::number::{Number, common, number};
use windrow_core::store::Draft;
use windrow_core::{DType, Element, Error, Result};

use super::{HEADER, Header, Literal, NONE, ROW};

/// Bytes of a record that are held, or rewritten, at a time; as many numbers of any dtype fill it.
const PART: usize = 1 << 16;

/// A converted file that grows.
pub(crate) struct Writer<'d> {
    /// The header's place and the values.
    values: &'d mut Draft,
    rows: Draft,
    extras: Draft,
    pub(super) file: String,
    limit: u64,
    /// Of the open record: where it begins, what its numbers are, and those that are not appended yet.
    start: u64,
    dtype: Option<DType>,
    /// What they are read as, where they are literals: float32 with more digits.
    told: Option<DType>,
    part: Vec<u8>,
    /// All numbers so far are whole.
    is_whole: bool,
    records: u64,
    /// The length that all records so far have.
    uniform: Option<u64>,
    /// Finite numbers that are infinite as float32.
    pub(super) overflowed: u64,
    /// Bytes of the values, had they been kept as what they are read as.
    told_size: u64,
    /// Bytes of the extras that a plan knows.
    known_size: u64,
}

/// A series of a table that is written row by row.
pub(crate) struct Ended {
    /// What is beside it.
    pub(crate) extras: String,
    /// Bytes of that by which a plan knows it: what is only told of the same file changes none of its batches.
    pub(crate) known: u64,
    pub(crate) rows: u64,
    /// Its place in the file.
    pub(crate) place: Range<u64>,
}

impl<'d> Writer<'d> {
    /// An empty file; no more than `limit` bytes will be written.
    pub(crate) fn new(values: &'d mut Draft, file: &str, limit: u64) -> Result<Self> {
        let (rows, extras) = (values.spill()?, values.spill()?);
        values.append(&[0; HEADER])?;
        Ok(Writer {
            values,
            rows,
            extras,
            file: file.to_string(),
            limit,
            start: HEADER as u64,
            dtype: None,
            told: None,
            told_size: 0,
            known_size: 0,
            part: Vec::new(),
            is_whole: true,
            records: 0,
            uniform: None,
            overflowed: 0,
        })
    }

    /// An empty file beside this one, for what is needed while it is written.
    pub(crate) fn spill(&self) -> Result<Draft> {
        self.values.spill()
    }

    /// All records are read as float32, whatever their numbers.
    pub(super) fn all_are_floats(&mut self) {
        self.is_whole = false;
    }

    /// How many records were ended.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Appends a number, which had this dtype; the others of its record are kept in one that holds them all.
    pub(crate) fn put(&mut self, number: Number, dtype: DType) -> Result<()> {
        self.put_as(number, dtype, dtype)
    }

    /// Appends a float that had no dtype.
    pub(crate) fn put_literal(&mut self, number: f64) -> Result<()> {
        self.put_as(Number::Float(number), DType::F64, DType::F32)
    }

    fn put_as(&mut self, number: Number, dtype: DType, told: DType) -> Result<()> {
        self.told = Some(self.told.map_or(told, |found| common(found, told)));
        let dtype = match self.dtype {
            Some(found) if found == dtype => dtype,
            Some(found) => self.become_dtype(found, common(found, dtype))?,
            None => *self.dtype.insert(dtype),
        };
        if let Number::Float(number) = number {
            self.is_whole = false;
            self.overflowed += u64::from((number as f32).is_infinite() && number.is_finite());
        }
        number.write(dtype, &mut self.part);
        if self.part.len() < PART {
            Ok(())
        } else {
            // A record may never end.
            self.append_part()
        }
    }

    /// What the open record is of, as long as it has no numbers.
    pub(crate) fn is_of(&mut self, dtype: DType) {
        (self.dtype, self.told) = (Some(dtype), Some(dtype));
    }

    /// Makes columns of the rows of the open record, which has `rows` rows of `width` numbers.
    pub(crate) fn transpose(&mut self, rows: u64, width: u64) -> Result<()> {
        self.append_part()?;
        let size = self.dtype.map_or(0, DType::size);
        let narrow = |number: u64| {
            usize::try_from(number)
                .map_err(|_| Error::unsupported(format!("a series of {number} values on this machine")))
        };
        let (rows, width) = (narrow(rows)?, narrow(width)?);
        let held = narrow(self.values.size() - self.start)?;
        let mut stored = Vec::new();
        reserve(&mut stored, held)?;
        stored.resize(held, 0);
        self.values.read_at(self.start, &mut stored)?;
        self.values.cut(self.start)?;
        for column in 0..width {
            for row in 0..rows {
                let at = (row * width + column) * size;
                self.part.extend_from_slice(&stored[at..at + size]);
            }
            if self.part.len() >= PART {
                self.append_part()?;
            }
        }
        self.append_part()
    }

    /// Appends a number that was written in digits, or a gap.
    pub(crate) fn put_text(&mut self, literal: Literal) -> Result<()> {
        self.overflowed += u64::from(literal.is_beyond);
        self.put_literal(literal.value)
    }

    /// Leaves of the open record, which has rows of `width` floats, the columns `kept`, in ascending order.
    pub(crate) fn keep_columns(&mut self, width: usize, kept: &[usize]) -> Result<()> {
        const SIZE: usize = size_of::<f64>();
        self.append_part()?;
        let (end, mut other) = (self.values.size(), self.values.spill()?);
        let rows = (PART / (width * SIZE)).max(1);
        let mut at = self.start;
        while at < end {
            let size =
                usize::try_from(end - at).map_or(rows * width * SIZE, |left| left.min(rows * width * SIZE));
            self.part.resize(size, 0);
            self.values.read_at(at, &mut self.part)?;
            for row in self.part.chunks_exact(width * SIZE) {
                kept.iter().try_for_each(|column| other.append(&row[column * SIZE..][..SIZE]))?;
            }
            at += size as u64;
        }
        self.part.clear();
        self.values.cut(self.start)?;
        self.values.append_all(&mut other)
    }

    /// Ends a record: what is beside it, its number of values, its place in the file.
    pub(crate) fn end_record(&mut self, extras: &str, length: u64, place: Range<u64>) -> Result<()> {
        self.end_record_known(extras, extras.len() as u64, length, place)
    }

    /// Ends a record where a plan knows `known` bytes of what is beside it.
    pub(crate) fn end_record_known(
        &mut self,
        extras: &str,
        known: u64,
        length: u64,
        place: Range<u64>,
    ) -> Result<()> {
        self.append_part()?;
        let series = Ended { extras: extras.to_string(), known, rows: length, place };
        self.end_at(self.values.size(), &series)
    }

    /// Ends the open record as several, one after the other, whose rows have `width` floats.
    pub(crate) fn end_records(&mut self, width: usize, series: impl Iterator<Item = Ended>) -> Result<()> {
        self.append_part()?;
        for series in series {
            (self.dtype, self.told) = (Some(DType::F64), Some(DType::F32));
            self.end_at(self.start + series.rows * (width * size_of::<f64>()) as u64, &series)?;
        }
        Ok(())
    }

    // Its values end at this byte.
    fn end_at(&mut self, end: u64, series: &Ended) -> Result<()> {
        let Ended { extras, known, rows: length, place } = series;
        self.extras.append(extras.as_bytes())?;
        self.known_size += known;
        let dtype = self.dtype.take().unwrap_or(DType::F32);
        let told = self.told.take().unwrap_or(dtype);
        self.told_size += (end - self.start) / dtype.size() as u64 * told.size() as u64;
        let dtypes = dtype as u64 | (told as u64) << 32;
        let of_values = end - HEADER as u64;
        for word in [of_values, self.extras.size(), place.start, place.end - place.start, dtypes] {
            self.rows.append(&word.to_le_bytes())?;
        }
        self.start = end;
        self.uniform = match self.records {
            0 => Some(*length),
            _ => self.uniform.filter(|uniform| uniform == length),
        };
        self.records += 1;
        self.check_limit(0)
    }

    /// Writes what follows the values, and the header.
    pub(crate) fn finish(mut self, channels: Option<u64>, content: u64) -> Result<()> {
        if self.overflowed > 0 {
            windrow_core::warn!(
                "{}: {} numbers are beyond float32 and became infinite",
                self.file,
                self.overflowed
            );
        }
        let dtype = if self.is_whole { DType::I64 } else { DType::F32 };
        let header = Header {
            dtype,
            channels: channels.unwrap_or(NONE),
            records: self.records,
            values_size: self.values.size() - HEADER as u64,
            told_size: self.told_size,
            extras_size: self.extras.size(),
            uniform: self.uniform.unwrap_or(NONE),
            content,
            known_size: self.known_size,
        };
        self.values.append_all(&mut self.rows)?;
        self.values.append_all(&mut self.extras)?;
        self.values.write_at(0, &header.bytes())?;
        log::info!("converted {}: {} records of {dtype}", self.file, self.records);
        Ok(())
    }

    fn append_part(&mut self) -> Result<()> {
        self.values.append(&self.part)?;
        self.part.clear();
        self.check_limit(0)
    }

    /// Whether what is written, and `more` bytes, may be.
    fn check_limit(&self, more: u64) -> Result<()> {
        let size = self.values.size() + self.records * ROW + self.extras.size() + more;
        if size <= self.limit {
            Ok(())
        } else {
            Err(Error::config(format!(
                "converting it takes more than {} bytes of cache, after {} records",
                self.limit, self.records
            ))
            .at(&self.file)
            .field("cache_limit")
            .hint("allow more with cache_limit; a small file that needs so much names the same values again and again"))
        }
    }

    /// The open record's numbers as the dtype `to`, which is given back. What was appended of it goes through a file of its
    /// own, as it may become longer.
    fn become_dtype(&mut self, from: DType, to: DType) -> Result<DType> {
        if from == to {
            return Ok(to);
        }
        self.dtype = Some(to);
        self.part = rewritten(&self.part, from, to);
        let end = self.values.size();
        if self.start == end {
            return Ok(to);
        }
        let mut other = self.values.spill()?;
        let mut part = vec![0; PART];
        let mut at = self.start;
        while at < end {
            let size = (end - at).min(PART as u64);
            let part = &mut part[..size as usize];
            self.values.read_at(at, part)?;
            other.append(&rewritten(part, from, to))?;
            self.check_limit(other.size())?;
            at += size;
        }
        self.values.cut(self.start)?;
        self.values.append_all(&mut other)?;
        Ok(to)
    }
}

/// Numbers of one dtype as another one.
fn rewritten(bytes: &[u8], from: DType, to: DType) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / from.size() * to.size());
    for number in bytes.chunks_exact(from.size()).filter_map(|bytes| number(bytes, Element::little(from))) {
        number.write(to, &mut out);
    }
    out
}
