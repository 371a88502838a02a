//! Wav files whose writer never learned their length, as ffmpeg, sox and recorders write them into a pipe: which numbers
//! of the header to read instead of those that stand there.

use std::ops::Range;

use windrow_core::store::Object;
use windrow_core::{Error, Result};

/// Bytes that are read instead of those at a place.
pub(crate) type Patch = (u64, [u8; 4]);

/// What ffmpeg writes for a length that it does not know.
const UNKNOWN: u32 = u32::MAX;
/// What sox writes.
const UNKNOWN_TO_SOX: u32 = 0x7fff_f000;

/// The header's sizes as the file's end says them, where its writer did not know them; none for any other file.
///
/// # Errors
/// `Corrupt` when the sound ends within a frame, unless that is allowed; what reading says.
pub(crate) fn sizes(object: &dyn Object, sound: &Range<u64>, skip_corrupt: bool) -> Result<Vec<Patch>> {
    let riff = number(object, sound.start + 4)?;
    let Some(chunks) = find(object, sound)? else { return Ok(Vec::new()) };
    let left = sound.end.saturating_sub(chunks.data);
    // A size of the whole that ends before the samples counts none of them.
    let counts_none = riff == UNKNOWN || sound.start + 8 + u64::from(riff) <= chunks.data;
    let is_unknown = match chunks.data_size {
        0 => counts_none && left > 0,
        UNKNOWN | UNKNOWN_TO_SOX => left < u64::from(chunks.data_size),
        _ => false,
    };
    let whole = |size: u32| (sound.start + 4, size.to_le_bytes());
    match u32::try_from(left) {
        Ok(size) if is_unknown => {
            let rest = left % u64::from(chunks.frame.max(1));
            if rest != 0 && !skip_corrupt && !is_padding(object, sound.end, left, rest)? {
                return Err(Error::corrupt(format!(
                    "the file ends {rest} bytes into a frame of {}; its header does not say how long it is",
                    chunks.frame
                ))
                .at(object.name())
                .byte(sound.end)
                .hint("copy the file again, or allow what is there with skip_corrupt"));
            }
            Ok(vec![whole(UNKNOWN), (chunks.data - 4, size.to_le_bytes())])
        }
        // The samples say how many they are; only the whole does not.
        _ if riff == 0 => Ok(vec![whole(UNKNOWN)]),
        _ => Ok(Vec::new()),
    }
}

struct Chunks {
    /// Bytes of a sample of all channels.
    frame: u16,
    /// The first byte of the samples, and the size that is said of them.
    data: u64,
    data_size: u32,
}

// Where the samples begin; `None` where that cannot be known: the reader of all says what is wrong.
fn find(object: &dyn Object, sound: &Range<u64>) -> Result<Option<Chunks>> {
    // More chunks than any writer puts before the samples.
    const MOST: usize = 64;
    let (mut at, mut frame) = (sound.start + 12, 0);
    for _ in 0..MOST {
        if at.saturating_add(8) > sound.end {
            break;
        }
        let (mut scratch, size) = (Vec::new(), number(object, at + 4)?);
        match object.read(at, 4, &mut scratch)? {
            b"data" => return Ok(Some(Chunks { frame, data: at + 8, data_size: size })),
            b"fmt " if at + 24 <= sound.end => {
                let bytes = object.read(at + 20, 2, &mut scratch)?;
                frame = u16::from_le_bytes([bytes[0], bytes[1]]);
            }
            _ => {}
        }
        // Chunks begin at even bytes.
        at += 8 + u64::from(size).next_multiple_of(2);
    }
    Ok(None)
}

// Whether the last byte only makes the samples' size even.
fn is_padding(object: &dyn Object, end: u64, left: u64, rest: u64) -> Result<bool> {
    let mut scratch = Vec::new();
    Ok(rest == 1 && left.is_multiple_of(2) && object.read(end - 1, 1, &mut scratch)? == [0])
}

fn number(object: &dyn Object, at: u64) -> Result<u32> {
    if at.saturating_add(4) > object.size() {
        return Ok(0);
    }
    let mut scratch = Vec::new();
    let bytes = object.read(at, 4, &mut scratch)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
