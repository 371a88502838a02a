//! Blocks of Riegeli: at every multiple of 64 KiB 24 bytes of a header interrupt what is there, and are no part of it.

use highway::{HighwayHash, HighwayHasher, Key};
use windrow_core::store::Object;
use windrow_core::{Error, Result};

/// Bytes of a block.
pub(super) const BLOCK: u64 = 1 << 16;
/// Bytes of its header: a hash of the rest, how far back the interrupted chunk began, and how far ahead it ends.
pub(super) const HEADER: u64 = 24;
const USABLE: u64 = BLOCK - HEADER;
/// `Riegeli/` and `records\n`, twice.
const KEY: [u64; 4] =
    [0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572, 0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572];

/// The hash of Riegeli.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    HighwayHasher::new(Key(KEY)).hash64(bytes)
}

/// A number of 64 bits; 0 where there is none.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Where `size` bytes that begin at `start` end, with the headers between them; `None` where nothing can begin there, or
/// nothing can be so large.
pub(super) fn end_of(start: u64, size: u64) -> Option<u64> {
    let within = start % BLOCK;
    if within > 0 && within < HEADER {
        return None;
    }
    let before = start / BLOCK * USABLE + within.saturating_sub(HEADER);
    let end = before.checked_add(size)?;
    let blocks = (end / USABLE).checked_mul(BLOCK)?;
    // What ends with a block ends before the header of the next one.
    match end % USABLE {
        0 => Some(blocks),
        rest => blocks.checked_add(HEADER + rest),
    }
}

/// `size` bytes from `start`, without the headers of blocks, each compared with its hash. The caller knows that they are in
/// the file.
///
/// # Errors
/// `Corrupt` for a header with another hash; what [`Object::read`] says.
pub(super) fn read<'a>(
    object: &'a dyn Object,
    start: u64,
    size: usize,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8]> {
    let within = start % BLOCK;
    if within > 0 && size as u64 <= BLOCK - within {
        return object.read(start, size, scratch);
    }
    let end = end_of(start, size as u64).and_then(|end| usize::try_from(end - start).ok());
    let end =
        end.ok_or_else(|| wrong(object, "bytes that begin in the header of a block".to_string(), start))?;
    let mut buffer = Vec::new();
    let mut bytes = object.read(start, end, &mut buffer)?;
    scratch.clear();
    scratch.reserve_exact(size);
    let mut at = start;
    while !bytes.is_empty() {
        if at.is_multiple_of(BLOCK) {
            let (header, rest) = bytes.split_at(bytes.len().min(HEADER as usize));
            if header.get(8..).is_none_or(|rest| hash(rest) != word(header, 0)) {
                return Err(wrong(
                    object,
                    "the header of a block has another hash than was written".to_string(),
                    at,
                ));
            }
            (bytes, at) = (rest, at + HEADER);
        }
        let part = bytes.len().min((BLOCK - at % BLOCK) as usize);
        let (content, rest) = bytes.split_at(part);
        scratch.extend_from_slice(content);
        (bytes, at) = (rest, at + part as u64);
    }
    Ok(scratch)
}

/// That a file is damaged at a byte.
pub(super) fn wrong(object: &dyn Object, what: String, byte: u64) -> Error {
    Error::corrupt(what).at(object.name()).byte(byte).hint("the file is damaged: copy it again")
}
