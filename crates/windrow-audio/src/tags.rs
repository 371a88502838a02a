//! Where the sound lies between the tags that players put before and behind it.

use std::ops::Range;

use windrow_core::Result;
use windrow_core::store::Object;

/// The bytes of `object` without ID3v2 tags at its beginning, and ID3v1 and APE tags at its end.
///
/// # Errors
/// What reading says.
pub(crate) fn without_tags(object: &dyn Object) -> Result<Range<u64>> {
    let mut sound = 0..object.size();
    // Some writers put a second tag behind the first; nobody puts a third.
    for _ in 0..4 {
        match id3v2_size(object, sound.start)? {
            Some(size) if size <= sound.end - sound.start => sound.start += size,
            _ => break,
        }
    }
    let mut scratch = Vec::new();
    if sound.end - sound.start >= 128 && object.read(sound.end - 128, 3, &mut scratch)? == b"TAG" {
        sound.end -= 128;
    }
    if sound.end - sound.start >= 32 {
        let footer = object.read(sound.end - 32, 32, &mut scratch)?;
        if footer.starts_with(b"APETAGEX") {
            // The size counts the footer, the header only where a flag says that there is one.
            let number =
                |at: usize| u32::from_le_bytes([footer[at], footer[at + 1], footer[at + 2], footer[at + 3]]);
            let size = u64::from(number(12)) + if number(20) >> 31 == 1 { 32 } else { 0 };
            if (32..=sound.end - sound.start).contains(&size) {
                sound.end -= size;
            }
        }
    }
    Ok(sound)
}

fn id3v2_size(object: &dyn Object, at: u64) -> Result<Option<u64>> {
    if object.size().saturating_sub(at) < 10 {
        return Ok(None);
    }
    let mut scratch = Vec::new();
    let head = object.read(at, 10, &mut scratch)?;
    if !head.starts_with(b"ID3") || head[6..10].iter().any(|b| b & 0x80 != 0) {
        return Ok(None);
    }
    let size = head[6..10].iter().fold(0_u64, |size, b| size << 7 | u64::from(*b));
    let footer = if head[5] & 0x10 != 0 { 10 } else { 0 };
    Ok(Some(10 + size + footer))
}
