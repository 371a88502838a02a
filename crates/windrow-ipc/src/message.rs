//! The messages of a stream, one after the other, or at the places that the footer of a file says.

use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

use crate::flat::Flat;

pub(crate) const MAGIC: &[u8; 6] = b"ARROW1";
/// What a message begins with since Arrow 0.15.
pub(crate) const CONTINUES: u32 = u32::MAX;

pub(crate) const SCHEMA: u8 = 1;
pub(crate) const DICTIONARY: u8 = 2;
pub(crate) const BATCH: u8 = 3;

/// What is done with a message: its kind, its head, its body in the file.
pub(crate) type Each<'e> = &'e mut dyn FnMut(u8, Flat<'_>, Range<u64>) -> Result<()>;

/// Goes through all messages of a stream or file.
///
/// # Errors
/// `Corrupt` with the byte; what `each` says.
pub(crate) fn walk(object: &dyn Object, each: Each<'_>) -> Result<()> {
    let size = object.size();
    let mut magic = [0; MAGIC.len()];
    if size >= MAGIC.len() as u64 {
        object.read_into(0, &mut magic)?;
    }
    if magic == *MAGIC { walk_file(object, each) } else { walk_stream(object, each) }
}

fn walk_stream(object: &dyn Object, each: Each<'_>) -> Result<()> {
    let size = object.size();
    let mut at = 0;
    while at < size {
        match message(object, at, size, each)? {
            Some(next) => at = next,
            None => break,
        }
    }
    // The mark of the end, where there is one, is 8 bytes, of 4 in older streams.
    match size - at {
        0 | 4 | 8 => Ok(()),
        left => Err(Error::corrupt(format!("{left} bytes behind the end of the stream"))
            .byte(at)
            .hint("a file may hold one stream: write them as two files")),
    }
}

fn walk_file(object: &dyn Object, each: Each<'_>) -> Result<()> {
    const TAIL: u64 = 4 + MAGIC.len() as u64;
    let size = object.size();
    let cut = |byte: u64| {
        Error::corrupt("an Arrow file without its footer")
            .byte(byte)
            .hint("the copy looks unfinished: fetch it again")
    };
    let mut tail = [0; TAIL as usize];
    let at = size.checked_sub(TAIL).filter(|at| *at >= 8).ok_or_else(|| cut(size))?;
    object.read_into(at, &mut tail)?;
    let length = tail.first_chunk().map_or(0, |word| i32::from_le_bytes(*word));
    let begin =
        u64::try_from(length).ok().and_then(|length| at.checked_sub(length)).filter(|begin| *begin >= 8);
    let begin = begin.filter(|_| tail.ends_with(MAGIC)).ok_or_else(|| cut(at))?;
    let mut scratch = Vec::new();
    let footer = Flat::root(object.read(begin, (at - begin) as usize, &mut scratch)?, begin)?;
    let Some(schema) = footer.table(1)? else { return Err(footer.wrong("a footer without a schema")) };
    each(SCHEMA, schema, 0..0)?;
    for (kind, field) in [(DICTIONARY, 2), (BATCH, 3)] {
        // Each block: place, size of the message's head (4 bytes, 4 of padding), size of its body.
        for [place, _, body] in footer.words::<3>(field)? {
            let place = u64::try_from(place).ok().filter(|place| *place < begin);
            let place = place.ok_or_else(|| footer.wrong("a batch outside the file"))?;
            let check = &mut |found: u8, head: Flat<'_>, range: Range<u64>| {
                if found == kind && u64::try_from(body) == Ok(range.end - range.start) {
                    each(found, head, range)
                } else {
                    Err(head.wrong("another message than the footer says"))
                }
            };
            message(object, place, begin, check)?;
        }
    }
    Ok(())
}

/// The message at a byte; gives the byte behind it, `None` for the mark of the end.
fn message(object: &dyn Object, at: u64, end: u64, each: Each<'_>) -> Result<Option<u64>> {
    let cut = |what: String| Error::corrupt(what).byte(at).hint("the copy looks unfinished: fetch it again");
    let word = |at: u64| match end.checked_sub(at) {
        Some(4..) => {
            let mut word = [0; 4];
            object.read_into(at, &mut word)?;
            Ok(u32::from_le_bytes(word))
        }
        left => Err(cut(format!("{} bytes of a message's size, expected 4", left.unwrap_or(0)))),
    };
    let (mut size, mut head) = (word(at)?, at + 4);
    if size == CONTINUES {
        (size, head) = (word(head)?, head + 4);
    }
    if size == 0 {
        return Ok(None);
    }
    let left = end - head;
    if i32::try_from(size).is_err() || u64::from(size) > left {
        return Err(cut(format!("a message of {} bytes, {left} are there", size.cast_signed())));
    }
    let mut scratch = Vec::new();
    let table = Flat::root(object.read(head, size as usize, &mut scratch)?, head)?;
    let body = head + u64::from(size);
    let length = table.i64(3)?;
    let length =
        u64::try_from(length).map_err(|_| table.wrong(format!("a message with {length} bytes behind it")))?;
    let next = body.checked_add(length).filter(|next| *next <= end);
    let next = next.ok_or_else(|| cut(format!("a batch of {length} bytes, {} are there", end - body)))?;
    let Some(inner) = table.table(2)? else { return Err(table.wrong("a message without a head")) };
    each(table.u8(1)?, inner, body..next)?;
    Ok(Some(next))
}
