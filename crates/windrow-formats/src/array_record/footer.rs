//! The end of an ArrayRecord file: the postscript in its last block says where the footer is, and that lists the chunks.

use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

use super::blocks::{BLOCK, HEADER, wrong};
use super::chunk::Chunk;
use super::simple::{self, Records};
use crate::protobuf::{Fields, Wire};

/// What the postscript ends with.
pub(super) const MAGIC: u64 = 0x7193_0e70_4fda_e05e;
/// The version of the layout.
pub(super) const VERSION: u64 = 1;
/// Where the first chunk may begin: behind the signature of Riegeli.
const FIRST: u64 = 64;
const POSTSCRIPT: &str = "the postscript of an ArrayRecord";
const FOOTER: &str = "the footer of an ArrayRecord";

/// The chunks of a file, as its footer lists them: compared with each other and with the size of the file.
#[derive(Default)]
pub(super) struct Footer {
    /// Where each chunk begins, and the bytes of its records.
    starts: Vec<u64>,
    decoded: Vec<u64>,
    /// Records of every chunk but the last; 0 where they differ.
    each: u64,
    /// The first record of each chunk, where they differ.
    firsts: Vec<u64>,
    records: u64,
    /// Where the chunks end.
    end: u64,
}

impl Footer {
    /// Reads the end of a file.
    ///
    /// # Errors
    /// `Corrupt` for what contradicts itself or the size of the file; `Unsupported` for another version, and for chunks
    /// that are not read.
    pub(super) fn of(object: &dyn Object) -> Result<Footer> {
        let size = object.size();
        if size < 2 * BLOCK || !size.is_multiple_of(BLOCK) {
            let what = format!("a file of {size} bytes, expected whole blocks of {BLOCK}, at least 2");
            return Err(Error::corrupt(what).at(object.name()).hint("the copy looks unfinished"));
        }
        let last = size - BLOCK;
        let end = postscript(object, last..size)?;
        let chunk = Chunk::at(object, end..last)?;
        let mut scratch = Vec::new();
        let parts = chunk.parts(&mut scratch)?;
        let records = simple::Records::of(&parts).map_err(|e| chunk.placed(e))?;
        let footer = Footer::parse(&records, end).map_err(|e| chunk.placed(e))?;
        footer.must_be_read(object)?;
        Ok(footer)
    }

    // The records of the footer's chunk: the description of the file, and of each chunk that begins before `end`.
    fn parse(records: &Records, end: u64) -> Result<Footer> {
        let mut records = records.iter();
        let (chunks, count) = metadata(records.next().unwrap_or_default())?;
        if chunks != records.len() as u64 {
            let what = format!("a footer of {} chunks that says there are {chunks}", records.len());
            return Err(Error::corrupt(what));
        }
        let mut found = Footer {
            starts: Vec::with_capacity(records.len()),
            decoded: Vec::with_capacity(records.len()),
            each: 0,
            firsts: Vec::new(),
            records: 0,
            end,
        };
        let mut counts = Vec::with_capacity(records.len());
        for record in records {
            let [start, decoded, count] = numbers(FOOTER, record)?;
            found.starts.push(start);
            found.decoded.push(decoded);
            counts.push(count);
        }
        for (chunk, count) in counts.iter().enumerate() {
            let Range { start, end } = found.place(chunk);
            let (decoded, count) = (found.decoded[chunk], *count);
            // A chunk takes a byte of the file for every record, so that places tell records apart.
            if start < FIRST
                || start >= end
                || count > end - start
                || decoded > simple::most_expanded(end - start)
            {
                let what = format!(
                    "chunk {chunk} of {count} records of {decoded} bytes, from byte {start} to {end}"
                );
                return Err(Error::corrupt(what));
            }
            found.records += count;
        }
        if found.records != count {
            let what =
                format!("{} records in the chunks of a footer that says there are {count}", found.records);
            return Err(Error::corrupt(what));
        }
        let each = counts.first().copied().unwrap_or_default();
        let (last, others) = counts.split_last().map_or((0, &[][..]), |(last, others)| (*last, others));
        if each > 0 && last <= each && others.iter().all(|count| *count == each) {
            found.each = each
        } else {
            let firsts = counts.iter().scan(0, |next, count| {
                let first = *next;
                *next += count;
                Some(first)
            });
            found.firsts = firsts.collect();
        }
        Ok(found)
    }

    // Chunks that are not read are refused before a record is asked for.
    fn must_be_read(&self, object: &dyn Object) -> Result<()> {
        if self.starts.is_empty() || !Chunk::at(object, self.place(0))?.is_transposed() {
            Ok(())
        } else {
            Err(Error::unsupported("it holds transposed chunks, which are not read")
                .at(object.name())
                .byte(self.starts[0])
                .hint("write it again without `transpose` in the options of ArrayRecordWriter"))
        }
    }

    /// Records in the file.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// The bytes of a chunk that is there, with the padding behind it.
    pub(super) fn place(&self, chunk: usize) -> Range<u64> {
        self.starts[chunk]..self.starts.get(chunk + 1).copied().unwrap_or(self.end)
    }

    /// The chunk of a record that is there, and the records of that chunk.
    pub(super) fn chunk_of(&self, record: u64) -> (usize, Range<u64>) {
        let (chunk, first, next) = match self.each {
            0 => {
                let chunk = self.firsts.partition_point(|first| *first <= record) - 1;
                (chunk, self.firsts[chunk], self.firsts.get(chunk + 1).copied())
            }
            each => (((record / each) as usize), record / each * each, (record / each + 1).checked_mul(each)),
        };
        (chunk, first..next.unwrap_or(self.records).min(self.records))
    }

    /// The bytes of the records of a chunk that is there.
    pub(super) fn decoded(&self, chunk: usize) -> u64 {
        self.decoded[chunk]
    }

    /// That the header of a chunk says what the footer says.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(super) fn check(&self, number: usize, chunk: &Chunk<'_>, records: u64) -> Result<()> {
        let decoded = self.decoded[number];
        if (chunk.records, chunk.decoded) == (records, decoded) {
            Ok(())
        } else {
            Err(chunk.wrong(format!(
                "a chunk of {} records of {} bytes, the footer says {records} of {decoded}",
                chunk.records, chunk.decoded
            )))
        }
    }
}

// Where the footer is, as the last block says.
fn postscript(object: &dyn Object, block: Range<u64>) -> Result<u64> {
    let chunk = Chunk::at(object, block.clone())
        .map_err(|e| e.hint("expected ArrayRecord, which ends in a postscript: the copy looks unfinished"))?;
    let mut scratch = Vec::new();
    let parts = chunk.parts(&mut scratch)?;
    let records = simple::Records::of(&parts).map_err(|e| chunk.placed(e))?;
    let mut found = None;
    for record in records.iter() {
        let [start, magic, _] = numbers(POSTSCRIPT, record).map_err(|e| chunk.placed(e))?;
        if magic != MAGIC {
            return Err(chunk.wrong(format!("expected {POSTSCRIPT}, found the magic number {magic:#x}")));
        }
        if found.is_some_and(|found| found != start) {
            return Err(chunk.wrong("a postscript that says two places of the footer".to_string()));
        }
        found = Some(start);
    }
    let start = found.ok_or_else(|| chunk.wrong(format!("expected {POSTSCRIPT}, found nothing")))?;
    if (FIRST..block.start).contains(&start) {
        Ok(start)
    } else {
        Err(wrong(
            object,
            format!("a footer at byte {start}, expected {FIRST} to {}", block.start),
            block.start + HEADER,
        ))
    }
}

// Chunks and records, of the first record of the footer.
fn metadata(record: &[u8]) -> Result<(u64, u64)> {
    for field in Fields::of(FOOTER, record, 0) {
        let (1, Wire::Bytes(message, _)) = field? else { continue };
        let [version, chunks, records] = numbers(FOOTER, message)?;
        if version != VERSION {
            return Err(Error::unsupported(format!("ArrayRecord of version {version}; {VERSION} is read")));
        }
        return Ok((chunks, records));
    }
    Err(Error::corrupt(format!("expected {FOOTER}, found no metadata in it")))
}

// Fields 1 to 3 of a message of numbers; what is left out is 0.
fn numbers(what: &'static str, message: &[u8]) -> Result<[u64; 3]> {
    let mut found = [0; 3];
    for field in Fields::of(what, message, 0) {
        if let (at @ 1..=3, Wire::Number(number)) = field? {
            found[at as usize - 1] = number;
        }
    }
    Ok(found)
}
