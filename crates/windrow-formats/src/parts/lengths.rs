//! The lengths of the records of one part, little-endian `u32` each: checked whole once, then read where they are.

use std::sync::Arc;

use windrow_core::output::hex;
use windrow_core::store::Object;
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

/// Bytes of a length.
pub(super) const WIDTH: u64 = 4;
/// Records between two whose first value is kept: at most 256 bytes of lengths are added up for one between.
const STEP: u64 = 64;
/// Bytes of lengths that are read at a time.
const AT_ONCE: u64 = 1 << 20;

/// What must hold of the lengths of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub(super) records: u64,
    /// Their sum.
    pub(super) values: u64,
    pub(super) xxh3: u64,
}

/// The lengths of a part.
pub(super) struct PartLengths {
    object: Arc<dyn Object>,
    said: Said,
    /// First value of every [`STEP`]th record.
    firsts: Vec<u64>,
}

impl PartLengths {
    /// Reads all of them once.
    ///
    /// # Errors
    /// `Corrupt` naming what does not hold; what reading says.
    pub(super) fn open(object: Arc<dyn Object>, said: Said) -> Result<PartLengths> {
        let corrupt = |what: String| Error::corrupt(what).at(object.name()).hint(AGAIN);
        let size = object.size();
        if said.records.checked_mul(WIDTH) != Some(size) {
            return Err(corrupt(format!(
                "{size} bytes of lengths, expected {WIDTH} for each of {} records",
                said.records
            )));
        }
        // All of it is read, and later in small pieces at random places.
        object.bring_near()?;
        let mut firsts = Vec::with_capacity(said.records.div_ceil(STEP) as usize);
        let (mut sum, mut hash, mut scratch) = (0u64, Xxh3::new(), Vec::new());
        let mut at = 0;
        while at < size {
            let part = object.read(at, (size - at).min(AT_ONCE) as usize, &mut scratch)?;
            hash.update(part);
            for step in part.chunks((STEP * WIDTH) as usize) {
                firsts.push(sum);
                // 2^30 lengths of 32 bits at most are a part that no file holds.
                sum = sum.saturating_add(total(step));
            }
            at += part.len() as u64;
        }
        if sum != said.values {
            return Err(corrupt(format!(
                "the lengths add up to {sum} values, the part holds {}",
                said.values
            )));
        }
        let found = hash.digest();
        if found != said.xxh3 {
            return Err(corrupt(format!(
                "the hash of the lengths is {}, expected {}",
                hex(found),
                hex(said.xxh3)
            )));
        }
        Ok(PartLengths { object, said, firsts })
    }

    /// How many values a record has.
    ///
    /// # Errors
    /// What reading says.
    pub(super) fn length(&self, record: u64) -> Result<u64> {
        let mut bytes = [0; WIDTH as usize];
        self.object.read_into(record * WIDTH, &mut bytes)?;
        Ok(u64::from(u32::from_le_bytes(bytes)))
    }

    /// The lengths from `first` on.
    ///
    /// # Errors
    /// What reading says.
    pub(super) fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut scratch = Vec::new();
        for (number, out) in (0..).zip(out.chunks_mut((AT_ONCE / WIDTH) as usize)) {
            let at = first * WIDTH + number * AT_ONCE;
            let bytes = self.object.read(at, out.len() * WIDTH as usize, &mut scratch)?;
            for (length, stored) in out.iter_mut().zip(bytes.as_chunks::<{ WIDTH as usize }>().0) {
                *length = u64::from(u32::from_le_bytes(*stored));
            }
        }
        Ok(())
    }

    /// The first value of a record and how many it has.
    ///
    /// # Errors
    /// `Stale` when the file was changed since it was opened; what reading says.
    pub(super) fn place(&self, record: u64) -> Result<(u64, u64)> {
        let step = record / STEP;
        let before = (record % STEP) as usize;
        let mut bytes = [0; (STEP * WIDTH) as usize];
        let bytes = &mut bytes[..(before + 1) * WIDTH as usize];
        self.object.read_into(step * STEP * WIDTH, bytes)?;
        let (before, own) = bytes.split_at(before * WIDTH as usize);
        let first = self.firsts.get(step as usize).copied().unwrap_or(u64::MAX).saturating_add(total(before));
        let length = total(own);
        if first.checked_add(length).is_some_and(|end| end <= self.said.values) {
            Ok((first, length))
        } else {
            Err(Error::new(windrow_core::Kind::Stale, "the lengths were changed while they were read")
                .at(self.object.name())
                .byte(record * WIDTH)
                .hint("open the data again, once nothing writes it"))
        }
    }

    /// The record that holds a value; only asked for those that there are.
    ///
    /// # Errors
    /// What reading says.
    pub(super) fn record_of(&self, value: u64) -> Result<u64> {
        let step = self.firsts.partition_point(|first| *first <= value).saturating_sub(1) as u64;
        let mut record = step * STEP;
        while record + 1 < self.said.records {
            let (first, length) = self.place(record)?;
            if value < first + length {
                break;
            }
            record += 1;
        }
        Ok(record)
    }
}

fn total(lengths: &[u8]) -> u64 {
    let lengths = lengths.as_chunks::<{ WIDTH as usize }>().0;
    lengths.iter().map(|length| u64::from(u32::from_le_bytes(*length))).sum()
}

/// How a part that is not as it was is mended.
pub(super) const AGAIN: &str = "restore the part, or remove its .json and run its task again: `windrow prep run`, then `windrow prep merge`";
