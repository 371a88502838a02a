//! Where the sound lies between the tags that players put before and behind it.

use std::ops::Range;

use windrow_core::Result;
use windrow_core::store::Object;

use crate::window::Window;

/// The bytes of `object` without ID3v2 tags at its beginning, and ID3v1 and APE tags at its end.
///
/// # Errors
/// As reading.
pub(crate) fn without_tags(object: &dyn Object) -> Result<Range<u64>> {
    let mut sound = 0..object.size();
    // Some writers put a second tag behind the first; nobody puts a third.
    let mut scratch = Vec::new();
    for _ in 0..4 {
        let size = (sound.end - sound.start).min(10) as usize;
        match id3v2_size(object.read(sound.start, size, &mut scratch)?) {
            Some(size) if size <= sound.end - sound.start => sound.start += size,
            _ => break,
        }
    }
    if sound.end - sound.start >= 128 && object.read(sound.end - 128, 3, &mut scratch)? == b"TAG" {
        sound.end -= 128;
    }
    if sound.end - sound.start >= 32 {
        let footer = object.read(sound.end - 32, 32, &mut scratch)?;
        if footer.starts_with(b"APETAGEX") {
            // The size counts the footer, the header only where a flag says that there is one.
            let number =
                |at: usize| u32::from_le_bytes([footer[at], footer[at + 1], footer[at + 2], footer[at + 3]]);
            let has_header = number(20) >> 31 == 1;
            let size = u64::from(number(12)) + if has_header { 32 } else { 0 };
            let is_within = (32..=sound.end - sound.start).contains(&size);
            // What is declared must be where a tag begins: else it is sound.
            let is_tag = is_within && is_ape_start(object, sound.end - size, has_header)?;
            sound.end -= if is_tag { size } else { 32 };
        }
    }
    Ok(sound)
}

// A header, or the first item: two numbers, and a name that ends with a zero.
fn is_ape_start(object: &dyn Object, at: u64, has_header: bool) -> Result<bool> {
    let mut scratch = Vec::new();
    let size = (object.size() - at).min(8 + 256) as usize;
    let start = object.read(at, size, &mut scratch)?;
    if has_header || start.starts_with(b"APETAGEX") {
        return Ok(start.starts_with(b"APETAGEX"));
    }
    let name = start[8..].split(|b| *b == 0).next().unwrap_or_default();
    Ok(name.len() > 1 && name.iter().all(|b| (0x20..0x7f).contains(b)))
}

/// Bytes of the tag that begins at a place, as joined files have them between their sounds.
///
/// # Errors
/// As reading.
pub(crate) fn size_at(file: &mut Window, at: u64) -> Result<Option<u64>> {
    const LONGEST_LYRICS: usize = 1 << 14;
    let left = file.end().saturating_sub(at);
    let size = match file.get(at, 32)? {
        head if head.starts_with(b"TAG+") => Some(227),
        head if head.starts_with(b"TAG") => Some(128),
        head if head.starts_with(b"APETAGEX") && head.len() == 32 => {
            // The size counts all but a header, which is here where a flag says so.
            let is_header = head[23] & 0x20 != 0;
            let size = u64::from(u32::from_le_bytes([head[12], head[13], head[14], head[15]]));
            Some(if is_header { 32 + size } else { 32 })
        }
        head if head.starts_with(b"LYRICSBEGIN") => {
            let lyrics = file.get(at, LONGEST_LYRICS)?;
            let end = lyrics.windows(9).position(|w| w == b"LYRICS200" || w == b"LYRICSEND");
            end.map(|end| end as u64 + 9)
        }
        head => id3v2_size(head),
    };
    Ok(size.map(|size| size.min(left)))
}

// By the first ten bytes.
fn id3v2_size(head: &[u8]) -> Option<u64> {
    if head.len() < 10 || !head.starts_with(b"ID3") || head[6..10].iter().any(|b| b & 0x80 != 0) {
        return None;
    }
    let size = head[6..10].iter().fold(0_u64, |size, b| size << 7 | u64::from(*b));
    let footer = if head[5] & 0x10 != 0 { 10 } else { 0 };
    Some(10 + size + footer)
}
