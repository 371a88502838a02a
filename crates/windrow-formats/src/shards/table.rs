//! What `meta.json` says, as numbers that are read where they lie: made once from the text, held in memory where the
//! text is short, in a file of the cache where it is long.
//!
//! The file: the size of the head and the head as JSON, the places, the scaling (a standard deviation and a mean per
//! sequence, float32 or float64), the places in the text. All numbers are little-endian. It is only ever read by the
//! version that wrote it; a copy that was damaged is an error, never a wrong place.

use std::io::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windrow_core::store::{Memory, Object, Store, cached};
use windrow_core::{DType, Element, Error, Kind, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::meta::{Meta, STEP, Scaling};

/// Part of the cache file's name: a new number makes every table be made again.
const VERSION: &str = "shards 2";
/// Texts up to this size are read each time.
const SHORT: u64 = 1 << 20;
/// Sequences between two places that are kept in full.
const BLOCK: u64 = 64;

/// How the places of sequences are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Places {
    /// One after the other, all of one length: nothing is kept.
    Even { first: u64, length: u64 },
    /// One after the other: where each block begins (u64), and where each sequence ends from there (u32).
    Joined,
    /// Anywhere: offsets (u64), then lengths (u64).
    Listed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scales {
    None,
    Single,
    Double,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    dtype: String,
    big_endian: bool,
    channels: Option<u64>,
    files: Vec<(String, u64)>,
    records: u64,
    places: Places,
    uniform: Option<u64>,
    scales: Scales,
    has_others: bool,
    /// Hash of places and scaling.
    content: u64,
}

/// A sequence's `std` and `mean`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pair {
    /// Not both were given: the numbers are what they are.
    None,
    Single([f32; 2]),
    Double([f64; 2]),
}

/// The description of shards.
pub(super) struct Table {
    pub(super) element: Element,
    /// Numbers per value, where sequences are `[T, C]`.
    pub(super) channels: Option<u64>,
    /// Shards in the order of their numbers: name, and how many numbers it holds.
    pub(super) files: Vec<(String, u64)>,
    pub(super) records: u64,
    /// The length of every sequence, where all are equal.
    pub(super) uniform: Option<u64>,
    /// Hash of all that it says of numbers.
    pub(super) content: u64,
    object: Arc<dyn Object>,
    places: Places,
    scales: Scales,
    parts: Parts,
    /// Numbers in all shards together.
    total: u64,
}

/// Where the parts of the file begin, and its size.
#[derive(Clone, Copy)]
struct Parts {
    places: u64,
    scaling: u64,
    text: u64,
    has_others: bool,
    size: u64,
}

impl Table {
    /// The table of a description: made now, or taken from the cache.
    ///
    /// # Errors
    /// What [`Meta::read`] says; `Io`.
    pub(super) fn of(description: &Arc<dyn Object>) -> Result<Table> {
        if description.size() > SHORT {
            let make = |draft: &mut windrow_core::store::Draft| {
                log::info!("reading {} once, into the cache", description.name());
                write(&Meta::read(description.as_ref())?, draft)
            };
            match cached(description.as_ref(), "table of shards", VERSION, make) {
                Ok(object) => return Table::open(object),
                Err(e) if matches!(e.kind(), Kind::Corrupt | Kind::Unsupported) => return Err(e),
                Err(e) => {
                    windrow_core::warn!(
                        "{} is held in memory, as the cache cannot keep it: {e:#}",
                        description.name()
                    );
                }
            }
        }
        let mut bytes = Vec::new();
        write(&Meta::read(description.as_ref())?, &mut bytes)?;
        Table::open(Memory::new().with(description.name(), bytes).open(description.name())?)
    }

    fn open(object: Arc<dyn Object>) -> Result<Table> {
        Table::read(&object)?.ok_or_else(|| damaged(object.as_ref()))
    }

    fn read(object: &Arc<dyn Object>) -> Result<Option<Table>> {
        let mut scratch = Vec::new();
        if object.size() < 8 {
            return Ok(None);
        }
        let size = word(object.read(0, 8, &mut scratch)?);
        let Some(text) = usize::try_from(size).ok().filter(|_| size <= object.size() - 8) else {
            return Ok(None);
        };
        let bytes = object.read(8, text, &mut scratch)?;
        let Ok(head) = serde_json::from_slice::<Head>(bytes) else { return Ok(None) };
        let content = xxh3_64(bytes);
        let parts = head.parts(8 + size).filter(|parts| parts.size == object.size());
        let total = head.files.iter().try_fold(0u64, |sum, (_, n)| sum.checked_add(*n));
        let (Some(parts), Some(total), Ok(dtype)) = (parts, total, DType::parse(&head.dtype)) else {
            return Ok(None);
        };
        Ok(Some(Table {
            element: Element { dtype, big_endian: head.big_endian },
            channels: head.channels,
            files: head.files,
            records: head.records,
            uniform: head.uniform,
            content,
            object: object.clone(),
            places: head.places,
            scales: head.scales,
            parts,
            total,
        }))
    }

    /// A sequence's first number in all shards joined, and how many it has.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` when the cache was damaged.
    pub(super) fn place(&self, record: u64) -> Result<(u64, u64)> {
        self.check(record)?;
        let (start, end) = match self.places {
            Places::Even { first, length } => {
                let start = record.checked_mul(length).and_then(|before| before.checked_add(first));
                (start, start.and_then(|start| start.checked_add(length)))
            }
            Places::Joined => {
                let base = self.number(self.parts.places + record / BLOCK * 8)?;
                let ends = self.parts.places + self.records.div_ceil(BLOCK) * 8;
                let end = self.near(ends + record * 4)?;
                let start =
                    if record.is_multiple_of(BLOCK) { 0 } else { self.near(ends + (record - 1) * 4)? };
                (base.checked_add(start), base.checked_add(end))
            }
            Places::Listed => {
                let start = self.number(self.parts.places + record * 8)?;
                let length = match self.uniform {
                    Some(length) => length,
                    None => self.number(self.parts.places + (self.records + record) * 8)?,
                };
                (Some(start), start.checked_add(length))
            }
        };
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.total => Ok((start, end - start)),
            _ => Err(damaged(self.object.as_ref()).record(record)),
        }
    }

    /// The lengths of consecutive sequences.
    ///
    /// # Errors
    /// As [`Table::place`].
    pub(super) fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let Some(end) = first.checked_add(out.len() as u64).filter(|end| *end <= self.records) else {
            return Err(Error::out_of_range("record", first.max(self.records), self.records));
        };
        if self.places != Places::Joined || first == end {
            return (first..end).zip(out).try_for_each(|(record, length)| {
                *length = self.place(record)?.1;
                Ok(())
            });
        }
        // One look at all their ends; a block's first sequence begins where its block does.
        let ends = self.parts.places + self.records.div_ceil(BLOCK) * 8;
        let mut scratch = Vec::new();
        let near = self.object.read(ends + first * 4, out.len() * 4, &mut scratch)?.as_chunks::<4>().0;
        let mut at = 0;
        let mut is_damaged = false;
        while at < out.len() {
            let record = first + at as u64;
            let n = ((BLOCK - record % BLOCK) as usize).min(out.len() - at);
            let mut start =
                if record.is_multiple_of(BLOCK) { 0 } else { self.near(ends + (record - 1) * 4)? as u32 };
            for (length, near) in out[at..at + n].iter_mut().zip(&near[at..]) {
                let end = u32::from_le_bytes(*near);
                is_damaged |= end < start;
                *length = end.wrapping_sub(start).into();
                start = end;
            }
            at += n;
        }
        if is_damaged { Err(damaged(self.object.as_ref())) } else { Ok(()) }
    }

    /// What a sequence is de-normalised by.
    ///
    /// # Errors
    /// `OutOfRange`; `Io`.
    pub(super) fn pair(&self, record: u64) -> Result<Pair> {
        self.check(record)?;
        let mut scratch = Vec::new();
        Ok(match self.scales {
            Scales::None => Pair::None,
            Scales::Single => {
                let bytes = self.object.read(self.parts.scaling + record * 8, 8, &mut scratch)?;
                let pair = [0, 4]
                    .map(|at| f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
                if pair[0].is_nan() { Pair::None } else { Pair::Single(pair) }
            }
            Scales::Double => {
                let bytes = self.object.read(self.parts.scaling + record * 16, 16, &mut scratch)?;
                let pair = [&bytes[..8], &bytes[8..]].map(|bytes| f64::from_bits(word(bytes)));
                if pair[0].is_nan() { Pair::None } else { Pair::Double(pair) }
            }
        })
    }

    /// Whether some sequence's numbers are de-normalised in float32.
    pub(super) fn scales_in_float32(&self) -> bool {
        self.scales == Scales::Single
    }

    /// Where the text of a sequence's block of [`STEP`] scales begins, and where the next one does; `None`
    /// where the scales hold nothing but numbers.
    ///
    /// # Errors
    /// `OutOfRange`; `Io`.
    pub(super) fn text(&self, record: u64) -> Result<Option<(u64, u64)>> {
        self.check(record)?;
        if !self.parts.has_others {
            return Ok(None);
        }
        let at = self.parts.text + record / STEP * 8;
        Ok(Some((self.number(at)?, self.number(at + 8)?)))
    }

    fn check(&self, record: u64) -> Result<()> {
        if record < self.records { Ok(()) } else { Err(Error::out_of_range("record", record, self.records)) }
    }

    fn number(&self, at: u64) -> Result<u64> {
        let mut scratch = Vec::new();
        Ok(word(self.object.read(at, 8, &mut scratch)?))
    }

    fn near(&self, at: u64) -> Result<u64> {
        let mut scratch = Vec::new();
        let bytes = self.object.read(at, 4, &mut scratch)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into())
    }
}

impl Head {
    fn parts(&self, start: u64) -> Option<Parts> {
        let n = self.records;
        let places = match self.places {
            Places::Even { .. } => 0,
            Places::Joined => n.div_ceil(BLOCK).checked_mul(8)?.checked_add(n.checked_mul(4)?)?,
            Places::Listed => n.checked_mul(if self.uniform.is_some() { 8 } else { 16 })?,
        };
        let scaling = match self.scales {
            Scales::None => 0,
            Scales::Single => n.checked_mul(8)?,
            Scales::Double => n.checked_mul(16)?,
        };
        let text = if self.has_others { n.div_ceil(STEP).checked_add(1)?.checked_mul(8)? } else { 0 };
        let scaling_at = start.checked_add(places)?;
        let text_at = scaling_at.checked_add(scaling)?;
        Some(Parts {
            places: start,
            scaling: scaling_at,
            text: text_at,
            has_others: self.has_others,
            size: text_at.checked_add(text)?,
        })
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(bytes);
    u64::from_le_bytes(number)
}

fn damaged(object: &dyn Object) -> Error {
    Error::corrupt("a file of the cache is damaged").at(object.name()).hint("delete it: it is made again")
}

/// Writes a description as a table.
fn write(meta: &Meta, out: &mut dyn Write) -> Result<()> {
    let places = places(meta);
    let uniform =
        meta.lengths.first().copied().filter(|first| meta.lengths.iter().all(|length| length == first));
    let mut hash = Xxh3::new();
    numbers(meta, places, uniform, &mut |bytes| {
        hash.update(bytes);
        Ok(())
    })?;
    let head = Head {
        dtype: meta.element.dtype.name().to_string(),
        big_endian: meta.element.big_endian,
        channels: meta.channels,
        files: meta.files.clone(),
        records: meta.lengths.len() as u64,
        places,
        uniform,
        scales: match meta.scaling {
            Scaling::None => Scales::None,
            Scaling::Single(_) => Scales::Single,
            Scaling::Double(_) => Scales::Double,
        },
        has_others: meta.has_others,
        content: hash.digest(),
    };
    let failed =
        |e: std::io::Error| Error::new(Kind::Io, "cannot write the table of the shards").caused_by(e);
    let head = serde_json::to_vec(&head).map_err(|e| failed(e.into()))?;
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(failed);
    put(&(head.len() as u64).to_le_bytes())?;
    put(&head)?;
    numbers(meta, places, uniform, &mut put)?;
    if meta.has_others { meta.text.iter().try_for_each(|place| put(&place.to_le_bytes())) } else { Ok(()) }
}

fn places(meta: &Meta) -> Places {
    let ends = || meta.offsets.iter().zip(&meta.lengths).map(|(offset, length)| offset + length);
    if meta.offsets.iter().skip(1).zip(ends()).any(|(offset, end)| *offset != end) {
        return Places::Listed;
    }
    let first = meta.offsets.first().copied().unwrap_or(0);
    let length = meta.lengths.first().copied().unwrap_or(0);
    if meta.lengths.iter().all(|other| *other == length) {
        return Places::Even { first, length };
    }
    let fits = |block: &[u64]| block.iter().sum::<u64>() <= u64::from(u32::MAX);
    if meta.lengths.chunks(BLOCK as usize).all(fits) { Places::Joined } else { Places::Listed }
}

// Places and scaling, in the order in which they lie.
fn numbers(
    meta: &Meta,
    places: Places,
    uniform: Option<u64>,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    match places {
        Places::Even { .. } => {}
        Places::Joined => {
            meta.offsets.iter().step_by(BLOCK as usize).try_for_each(|start| put(&start.to_le_bytes()))?;
            for lengths in meta.lengths.chunks(BLOCK as usize) {
                let mut end = 0u32;
                for length in lengths {
                    // Blocks whose sum is larger are listed.
                    end += *length as u32;
                    put(&end.to_le_bytes())?;
                }
            }
        }
        Places::Listed => {
            let lengths = if uniform.is_some() { &[][..] } else { &meta.lengths };
            meta.offsets.iter().chain(lengths).try_for_each(|number| put(&number.to_le_bytes()))?;
        }
    }
    match &meta.scaling {
        Scaling::None => Ok(()),
        Scaling::Single(rows) => rows.iter().flatten().try_for_each(|number| put(&number.to_le_bytes())),
        Scaling::Double(rows) => rows.iter().flatten().try_for_each(|number| put(&number.to_le_bytes())),
    }
}
