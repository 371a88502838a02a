//! Whether an ogg file is whole: its pages join up, have their checksums, and the last one says that it is the last.
//!
//! A reader that is made for playing leaves out what it cannot use, and a file that was cut short ends for it like any other.

use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

// Signature, version, flags, position, stream, number, checksum, and the number of segments.
const HEAD: u64 = 27;
const LAST: u8 = 4;

/// Nothing when all pages are whole.
///
/// # Errors
/// `Corrupt` naming the byte where the first bad page begins, or where the file ends too early.
pub(crate) fn check(object: &dyn Object, sound: &Range<u64>) -> Result<()> {
    let wrong = |at: u64, what: &str| {
        Error::corrupt(what)
            .at(object.name())
            .byte(at)
            .hint("copy the file again, or allow what is there with skip_corrupt")
    };
    let cut = "the ogg stream has no last page: the file was cut short or not written to its end";
    let mut scratch = Vec::new();
    let (mut at, mut is_last) = (sound.start, false);
    while at < sound.end {
        let left = sound.end - at;
        if left < HEAD {
            return Err(wrong(sound.end, cut));
        }
        let head = object.read(at, HEAD as usize, &mut scratch)?;
        if !head.starts_with(b"OggS\0") {
            return Err(wrong(at, "no page of ogg begins where one must"));
        }
        is_last = head[5] & LAST != 0;
        let n_segments = u64::from(head[26]);
        if left < HEAD + n_segments {
            return Err(wrong(sound.end, cut));
        }
        let sizes = object.read(at + HEAD, n_segments as usize, &mut scratch)?;
        let size = HEAD + n_segments + sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
        if left < size {
            return Err(wrong(sound.end, cut));
        }
        // At most 65,307 bytes.
        let page = object.read(at, size as usize, &mut scratch)?;
        let claimed = u32::from_le_bytes([page[22], page[23], page[24], page[25]]);
        // The checksum counts as zeros in itself.
        let found = [&page[..22], &[0; 4], &page[26..]].iter().fold(0, |crc, part| checksum(crc, part));
        if found != claimed {
            return Err(wrong(at, "a page of ogg does not have its checksum"));
        }
        at += size;
    }
    if is_last { Ok(()) } else { Err(wrong(sound.end, cut)) }
}

// CRC-32 with the polynomial 0x04c11db7, highest bit first.
fn checksum(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, byte| crc << 8 ^ TABLE[usize::from((crc >> 24) as u8 ^ byte)])
}

static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};
