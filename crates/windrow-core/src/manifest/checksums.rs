//! Block checksums: a sum for every 4 KiB of what windrow wrote, in a file beside it, so that damage is seen where it is read.
//!
//! `windrow.sums` holds, for each block of 4,096 bytes of each file, the lower 32 bits of its XXH3-64 as a little-endian
//! number, the files one after the other; then a table, as JSON, of the files' names and sizes; then the table's length
//! in bytes, 8 of them, little-endian, and 8 bytes by which it is known. The last block of a file may be shorter.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{MANIFEST_FILE, Manifest, renamed};
use crate::error::{Error, Result};
use crate::store::{Object, Store, key, open_if_there};

/// The file's name.
pub const CHECKSUMS_FILE: &str = "windrow.sums";
/// Bytes that one sum stands for.
pub(super) const BLOCK: u64 = 4096;
/// Bytes of a sum.
const WIDTH: u64 = 4;
const KNOWN_BY: &[u8; 8] = b"WRSUMS01";
/// The table's length and what the file is known by.
const END: u64 = 16;
/// A longer table is not read.
const MOST_TABLE: u64 = 256 << 20;

/// The sum of one block.
pub(super) fn sum_of(block: &[u8]) -> u32 {
    // Half of the hash: a changed block is missed once in 4 billion times.
    xxh3_64(block) as u32
}

/// Bytes of the sums of a file.
pub fn checksums_size(size: u64) -> u64 {
    size.div_ceil(BLOCK).saturating_mul(WIDTH)
}

/// The sums of a file that grows.
#[derive(Default)]
pub struct BlockChecksums {
    /// What does not fill a block yet.
    begun: Vec<u8>,
    sums: Vec<u8>,
}

impl BlockChecksums {
    /// The bytes that follow.
    pub fn update(&mut self, mut bytes: &[u8]) {
        if !self.begun.is_empty() {
            let (head, rest) = bytes.split_at(bytes.len().min(BLOCK as usize - self.begun.len()));
            self.begun.extend_from_slice(head);
            bytes = rest;
            if self.begun.len() < BLOCK as usize {
                return;
            }
            self.sums.extend_from_slice(&sum_of(&self.begun).to_le_bytes());
            self.begun.clear();
        }
        let (blocks, rest) = bytes.as_chunks::<{ BLOCK as usize }>();
        for block in blocks {
            self.sums.extend_from_slice(&sum_of(block).to_le_bytes());
        }
        self.begun.extend_from_slice(rest);
    }

    /// Those of whole blocks so far, as they are stored; they are forgotten here.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sums)
    }

    /// The others, when nothing follows.
    pub fn finish(mut self) -> Vec<u8> {
        if !self.begun.is_empty() {
            self.sums.extend_from_slice(&sum_of(&self.begun).to_le_bytes());
        }
        self.sums
    }
}

/// Where the checksums of each file are.
#[derive(Debug, Serialize, Deserialize)]
struct Table {
    version: u32,
    block: u64,
    files: Vec<Row>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    size: u64,
}

/// What follows the sums of these files, names and sizes.
pub fn end<'a>(files: impl IntoIterator<Item = (&'a str, u64)>) -> Vec<u8> {
    let files = files.into_iter().map(|(name, size)| Row { name: name.to_string(), size }).collect();
    // Plain structs, which cannot fail.
    let mut end = serde_json::to_vec(&Table { version: 1, block: BLOCK, files }).unwrap_or_default();
    end.extend_from_slice(&(end.len() as u64).to_le_bytes());
    end.extend_from_slice(KNOWN_BY);
    end
}

/// Blocks that are not what they were.
pub struct Changed {
    first: u64,
    blocks: u64,
}

impl Changed {
    /// Which they are, in a file of this size.
    pub fn text(&self, size: u64) -> String {
        let from = self.first * BLOCK;
        let more = match self.blocks {
            1 => String::new(),
            n => format!(", and {} more blocks of {BLOCK} bytes", n - 1),
        };
        format!("bytes {from} to {} are changed{more}", (from + BLOCK).min(size))
    }
}

/// The sums of some files.
pub struct Checksums {
    object: Arc<dyn Object>,
    /// The size of each file and where its sums begin.
    files: HashMap<String, (u64, u64)>,
}

impl Checksums {
    /// Reads the table.
    ///
    /// # Errors
    /// `Corrupt` when it is not such a file, or its files have other checksums than there are.
    pub fn open(object: Arc<dyn Object>) -> Result<Checksums> {
        let corrupt = |what: String| {
            Error::corrupt(what)
                .at(object.name())
                .hint("without it the data is read as it is: leave verify out, or prepare it again")
        };
        let mut scratch = Vec::new();
        let Some(end_at) = object.size().checked_sub(END) else {
            return Err(corrupt(format!("{} bytes are not block checksums", object.size())));
        };
        let end = object.read(end_at, END as usize, &mut scratch)?;
        let (length, known_by) = end.split_at(8);
        if known_by != KNOWN_BY {
            return Err(corrupt(
                "expected block checksums, found something else at the end of the file".into(),
            ));
        }
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        let Some(table_at) = end_at.checked_sub(length).filter(|_| length <= MOST_TABLE) else {
            return Err(corrupt(format!("a table of {length} bytes in {} bytes", object.size())));
        };
        let text = object.read(table_at, length as usize, &mut scratch)?;
        let table: Table = serde_json::from_slice(text)
            .map_err(|e| corrupt("the table of block checksums cannot be understood".into()).caused_by(e))?;
        if (table.version, table.block) != (1, BLOCK) {
            return Err(corrupt(format!(
                "block checksums of version {} over {} bytes; this windrow reads version 1 over {BLOCK}",
                table.version, table.block
            )));
        }
        let mut files = HashMap::with_capacity(table.files.len());
        let mut start = 0u64;
        for row in table.files {
            let at = start;
            start = start.saturating_add(checksums_size(row.size));
            files.insert(row.name, (row.size, at));
        }
        if start != table_at {
            return Err(corrupt(format!("expected {start} bytes of sums, found {table_at}")));
        }
        Ok(Checksums { object, files })
    }

    /// Sums without a table: those of the file called `name`, of `size` bytes, alone.
    ///
    /// # Errors
    /// `Corrupt` when there are more or fewer than such a file has.
    pub fn bare(object: Arc<dyn Object>, name: &str, size: u64) -> Result<Checksums> {
        if object.size() != checksums_size(size) {
            return Err(Error::corrupt(format!(
                "{} bytes of block checksums, expected {}: those of the {size} bytes of {name}",
                object.size(),
                checksums_size(size)
            ))
            .at(object.name())
            .hint("one of the two is not whole: restore it, or make the part again"));
        }
        Ok(Checksums { object, files: HashMap::from([(name.to_string(), (size, 0))]) })
    }

    /// Takes them as kept in `folder` beside the file `name`, as [`Manifest::of_file`](super::Manifest::of_file) reads a manifest
    /// there: if one is beside them that has their names, too, they were renamed with it.
    ///
    /// # Errors
    /// As reading that manifest.
    pub fn of_file(
        self,
        store: &dyn Store,
        folder: &str,
        name: &str,
        other: Option<&str>,
    ) -> Result<Checksums> {
        if self.files.contains_key(name) {
            return Ok(self);
        }
        for file in [Some(name), other].into_iter().flatten() {
            let place = key::below(folder, &format!("{file}.{MANIFEST_FILE}"));
            let Some(object) = open_if_there(store, &place)? else { continue };
            let manifest = Manifest::read(object.as_ref())?;
            if self.files.keys().all(|sum| manifest.files.iter().any(|row| row.name == *sum)) {
                return Ok(self.renamed(name, other));
            }
        }
        Ok(self)
    }

    fn renamed(mut self, name: &str, other: Option<&str>) -> Checksums {
        let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
        let now = renamed::now(&names, name, other);
        if let Some(now) = now.map(|now| now.into_iter().map(str::to_string).collect::<Vec<_>>()) {
            self.files = now.into_iter().zip(self.files.into_values()).collect();
        }
        self
    }

    /// Names and sizes of all files.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().map(|(name, &(size, _))| (name.as_str(), size))
    }

    /// The blocks of the file whose sums begin at `at` that have other sums than these; `None` where all are equal.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn differ(&self, at: u64, found: &[u8]) -> Result<Option<Changed>> {
        const AT_ONCE: usize = 1 << 20;
        let mut scratch = Vec::new();
        let mut changed: Option<Changed> = None;
        let mut number = 0;
        for part in found.chunks(AT_ONCE) {
            let kept = self.object.read(at + number * WIDTH, part.len(), &mut scratch)?;
            for (kept, found) in kept.chunks_exact(WIDTH as usize).zip(part.chunks_exact(WIDTH as usize)) {
                if kept != found {
                    changed.get_or_insert(Changed { first: number, blocks: 0 }).blocks += 1;
                }
                number += 1;
            }
        }
        Ok(changed)
    }

    /// Where the sums of this file begin, and its size.
    pub fn find(&self, name: &str) -> Option<(u64, u64)> {
        self.files.get(name).map(|&(size, at)| (at, size))
    }

    /// Sums as they are stored, from a place within those of a file on.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn stored<'a>(&'a self, at: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.object.read(at, size, scratch)
    }

    /// The sums of the blocks from `first` on of the file whose sums begin at `at`.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn read<'a>(
        &'a self,
        at: u64,
        first: u64,
        blocks: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<impl Iterator<Item = u32> + 'a> {
        let sums = self.object.read(at + first * WIDTH, blocks * WIDTH as usize, scratch)?;
        Ok(sums.as_chunks::<{ WIDTH as usize }>().0.iter().map(|sum| u32::from_le_bytes(*sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Memory, Store};

    #[test]
    fn sums_do_not_depend_on_how_the_bytes_come() {
        let bytes: Vec<u8> = (0..20_000u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
        let want: Vec<u8> = bytes.chunks(4096).flat_map(|block| sum_of(block).to_le_bytes()).collect();
        assert_eq!(want.len() as u64, checksums_size(bytes.len() as u64));
        for parts in [1, 4095, 4096, 4097, 9_000, 20_000] {
            let mut sums = BlockChecksums::default();
            bytes.chunks(parts).for_each(|part| sums.update(part));
            assert_eq!(sums.finish(), want, "{parts}");
        }
        assert!(BlockChecksums::default().finish().is_empty());
    }

    #[test]
    fn a_table_that_is_none_is_refused() {
        let mut whole = vec![7; 12];
        whole.extend(end([("a", 4097), ("b", 0), ("c", 1)]));
        let open = |bytes: &[u8]| {
            Checksums::open(Memory::new().with("s", bytes.to_vec()).open("s").unwrap())
                .map(|sums| (sums.find("a"), sums.find("b"), sums.find("c"), sums.find("d")))
        };
        assert_eq!(open(&whole).unwrap(), (Some((0, 4097)), Some((8, 0)), Some((8, 1)), None));
        for at in 0..whole.len() {
            assert!(open(&whole[..at]).is_err(), "cut at {at}");
        }
        let table = whole.len() - 16;
        for at in 12..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x80;
            assert!(open(&other).is_err() || (12..table).contains(&at), "flipped at {at}");
        }
        assert!(open(&[&[0; 4], &whole[..]].concat()).is_err());
        // A size that no file has.
        assert!(open(&end([("a", u64::MAX), ("b", u64::MAX)])).is_err());
    }
}
