//! The records for which a condition holds: looked up in the cache, or read once and kept there.

use std::io::Write;

use xxhash_rust::xxh3::Xxh3;

use super::compare::{Condition, matching};
use super::{FileInfo, Kind, Numbers, Source, whole};
use crate::error::{Error, Result};
use crate::store::{self, Object};

const MAGIC: &[u8; 16] = b"windrow where \0\0";
/// Matches of another version are looked for again.
const VERSION: u32 = 1;
/// Remote records above this are worth a word before all of them are read.
const MUCH: u64 = 1 << 30;

impl Numbers {
    /// The numbers of the records for which a condition holds, ascending: in one pass over its column, on all cores, or from the
    /// cache, which keeps 4 bytes for each.
    ///
    /// # Errors
    /// `Config` for a column that no record has, with those that there are, and for values of another kind, with the record; what
    /// reading says; `Interrupted` when `stop` says so.
    pub fn matching(source: &dyn Source, condition: &Condition, stop: &dyn Fn() -> bool) -> Result<Numbers> {
        let n = source.len();
        let key = key(source, condition)?;
        let head = [&MAGIC[..], &key.to_le_bytes(), &n.to_le_bytes()].concat();
        let name = format!("{key:016x}.where");
        if let Some(kept) = store::if_kept(&name, &head)
            && let Some(numbers) = read(kept.as_ref(), head.len() as u64, n)?
        {
            return Ok(numbers);
        }
        warn_of_much(source);
        let numbers = Numbers::list(matching(source, condition, stop)?);
        let size = head.len() as u64 + 8 + numbers.len() * width(n) as u64;
        let of = source.files().into_iter().next().map_or_else(String::new, |first| first.file);
        store::kept(&name, &of, &head, size, &mut |out| write(&numbers, width(n), out))?;
        Ok(numbers)
    }
}

// Bytes of a number of `of` records.
fn width(of: u64) -> usize {
    if of <= 1 << 32 { 4 } else { 8 }
}

fn write(numbers: &Numbers, width: usize, out: &mut dyn Write) -> Result<()> {
    let failed = |e| Error::new(crate::error::Kind::Io, "cannot write which records match").caused_by(e);
    out.write_all(&numbers.len().to_le_bytes()).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut first = 0;
    while first < numbers.len() {
        let end = numbers.len().min(first + (1 << 14));
        bytes.clear();
        for place in first..end {
            bytes.extend_from_slice(&numbers.at(place).to_le_bytes()[..width]);
        }
        out.write_all(&bytes).map_err(failed)?;
        first = end;
    }
    Ok(())
}

// What was kept behind the head; `None` where it is not as it was written.
fn read(kept: &dyn Object, head: u64, of: u64) -> Result<Option<Numbers>> {
    let mut scratch = Vec::new();
    let Some(left) = kept.size().checked_sub(head + 8) else { return Ok(None) };
    let n = kept.read(head, 8, &mut scratch)?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let width = width(of);
    if n.checked_mul(width as u64) != Some(left) || n > of {
        return Ok(None);
    }
    let mut some: Vec<u8> = Vec::new();
    let (mut from, mut at) = (0u64, 0usize);
    let numbers = Numbers::collect(n, of, |place| {
        if at == some.len() {
            from = place * width as u64;
            let size = (left - from).min(1 << 20) as usize;
            some = kept.read(head + 8 + from, size, &mut scratch)?.to_vec();
            at = 0;
        }
        let mut number = [0; 8];
        number[..width].copy_from_slice(&some[at..at + width]);
        at += width;
        Ok(u64::from_le_bytes(number))
    })?;
    Ok(Some(numbers))
}

// A fingerprint looks at the ends of files; their times tell of an edit in the middle.
fn key(source: &dyn Source, condition: &Condition) -> Result<u64> {
    let mut hash = Xxh3::new();
    hash.update(&VERSION.to_le_bytes());
    hash.update(&whole(|| source.fingerprint())?.to_le_bytes());
    hash.update(&source.len().to_le_bytes());
    hash.update(condition.to_string().as_bytes());
    for FileInfo { file, size } in source.files() {
        hash.update(&size.to_le_bytes());
        hash.update(&store::changed_ns(&file).unwrap_or(0).to_le_bytes());
    }
    Ok(hash.digest())
}

// Of records that are not rows of columns all is read.
fn warn_of_much(source: &dyn Source) {
    let schema = source.schema();
    if schema.kind == Kind::Rows && !schema.is_value() {
        return;
    }
    let far: u64 = source.files().iter().filter(|file| file.is_far()).map(|file| file.size).sum();
    if far > MUCH {
        crate::warn!("a condition reads all of the {far} bytes of these records once, from where they are");
    }
}
