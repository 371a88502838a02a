//! Chunks whose items are compressed several at a time: `LDFZ01`, the ends of the items, a table of frames, the frames.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::store::Object;
use windrow_core::{Error, Result};

/// How such a chunk begins.
pub(super) const MAGIC: &[u8; 8] = b"LDFZ01\0\0";
/// Bytes before the ends of the items.
const HEADER: u64 = 24;
/// Bytes of a row of the table.
const ROW: u64 = 24;
/// Frames that stay expanded: items that come one after the other are in the same one.
const KEPT: usize = 8;
/// A frame may expand to this much, or to [`MOST_RATIO`] times its size; more is refused.
const MOST_EXPANDED: u64 = 64 << 20;
const MOST_RATIO: u64 = 1000;

/// The layout of a chunk of frames.
pub(super) struct Frames {
    items: u64,
    /// Items of a frame.
    each: u64,
    frames: u64,
}

/// A frame as the table describes it.
struct Row {
    first: u64,
    items: u64,
    start: u64,
    packed: u64,
    unpacked: u64,
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 4)
        .and_then(|word| word.first_chunk())
        .map_or(0, |word| u64::from(u32::from_le_bytes(*word)))
}

fn wrong(object: &dyn Object, what: String, byte: u64) -> Error {
    Error::corrupt(what).at(object.name()).byte(byte).hint("the chunk is damaged: copy it again")
}

impl Frames {
    /// Reads the header of a chunk, compared with its size.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported` for another version.
    pub(super) fn of(object: &dyn Object, items: u64) -> Result<Frames> {
        let mut scratch = Vec::new();
        if object.size() < HEADER {
            return Err(wrong(object, format!("expected a header, found {} bytes", object.size()), 0));
        }
        let head = object.read(0, HEADER as usize, &mut scratch)?;
        let version = u32_at(head, 8) & 0xffff;
        if !head.starts_with(MAGIC) || version != 1 {
            return Err(
                Error::unsupported(format!("frames of version {version}; 1 is read")).at(object.name())
            );
        }
        let (found, each, frames) = (u32_at(head, 12), u32_at(head, 16), u32_at(head, 20));
        if found != items {
            return Err(wrong(object, format!("{found} items, the index says {items}"), 12));
        }
        let is_whole = items == 0 || (each > 0 && frames == items.div_ceil(each));
        let table_end = HEADER + 4 * (items + 1) + ROW * frames;
        if is_whole && table_end <= object.size() {
            Ok(Frames { items, each, frames })
        } else {
            Err(wrong(object, format!("{frames} frames of {each} for {items} items"), 16))
        }
    }

    fn row(&self, object: &dyn Object, frame: u64) -> Result<Row> {
        let at = HEADER + 4 * (self.items + 1) + ROW * frame;
        let mut scratch = Vec::new();
        let bytes = object.read(at, ROW as usize, &mut scratch)?;
        let start =
            bytes.get(8..16).and_then(|word| word.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word));
        let row = Row {
            first: u32_at(bytes, 0),
            items: u32_at(bytes, 4),
            start,
            packed: u32_at(bytes, 16),
            unpacked: u32_at(bytes, 20),
        };
        let is_right = row.first == frame * self.each
            && row.items == self.each.min(self.items - row.first)
            && row.start.checked_add(row.packed).is_some_and(|end| end <= object.size());
        if is_right && frame < self.frames {
            Ok(row)
        } else {
            Err(wrong(object, format!("a frame of items {} to {}", row.first, row.first + row.items), at))
        }
    }

    // Where an item is in the expanded items of the chunk.
    fn ends(&self, object: &dyn Object, item: u64) -> Result<u64> {
        let mut scratch = Vec::new();
        Ok(u32_at(object.read(HEADER + 4 * item, 4, &mut scratch)?, 0))
    }

    /// The frame of an item, where that is in the chunk, and where the item is in the expanded frame.
    ///
    /// # Errors
    /// `Corrupt` with the place of the table or of the ends.
    pub(super) fn place(&self, object: &dyn Object, item: u64) -> Result<(Frame, Range<u64>)> {
        let number = item / self.each.max(1);
        let row = self.row(object, number)?;
        let base = self.ends(object, row.first)?;
        let last = self.ends(object, row.first + row.items)?;
        let (start, end) = (self.ends(object, item)?, self.ends(object, item + 1)?);
        let is_right = base <= start && start <= end && end <= last && last - base == row.unpacked;
        if is_right {
            let frame = Frame { number, place: row.start..row.start + row.packed, unpacked: row.unpacked };
            Ok((frame, start - base..end - base))
        } else {
            Err(wrong(object, format!("an item at {start} to {end} of {last}"), HEADER + 4 * item))
        }
    }
}

/// A frame in its chunk.
pub(super) struct Frame {
    number: u64,
    /// Its bytes in the chunk.
    pub(super) place: Range<u64>,
    unpacked: u64,
}

/// A frame that was expanded: its chunk, its number, its bytes.
type Expanded = (usize, u64, Arc<Vec<u8>>);

/// The frames that were expanded last.
#[derive(Default)]
pub(super) struct Kept {
    frames: Mutex<VecDeque<Expanded>>,
}

impl Kept {
    /// A frame of chunk `chunk`, expanded.
    ///
    /// # Errors
    /// `Corrupt` when it is not a frame, or expands to another size than the table says.
    pub(super) fn frame(&self, object: &dyn Object, chunk: usize, frame: &Frame) -> Result<Arc<Vec<u8>>> {
        let kept = || self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, found)) =
            kept().iter().find(|(of, number, _)| (*of, *number) == (chunk, frame.number))
        {
            return Ok(found.clone());
        }
        let mut scratch = Vec::new();
        let packed = frame.place.end - frame.place.start;
        // Below 4 GiB, as the table counts.
        let bytes = object.read(frame.place.start, packed as usize, &mut scratch)?;
        let found = Arc::new(expand(object, bytes, frame.place.start)?);
        if found.len() as u64 != frame.unpacked {
            return Err(wrong(
                object,
                format!("a frame expands to {} bytes, the table says {}", found.len(), frame.unpacked),
                frame.place.start,
            ));
        }
        let mut frames = kept();
        if frames.len() == KEPT {
            frames.pop_front();
        }
        frames.push_back((chunk, frame.number, found.clone()));
        Ok(found)
    }
}

/// What a zstd frame at `byte` of an object expands to.
///
/// # Errors
/// `Corrupt` when it is not a frame, or expands to very many times its size.
pub(super) fn expand(object: &dyn Object, frame: &[u8], byte: u64) -> Result<Vec<u8>> {
    let most = MOST_EXPANDED.max((frame.len() as u64).saturating_mul(MOST_RATIO));
    let mut out = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(frame);
    match decoder.and_then(|decoder| decoder.take(most + 1).read_to_end(&mut out)) {
        Ok(found) if found as u64 <= most => Ok(out),
        Ok(_) => Err(wrong(object, format!("{} bytes that expand to more than {most}", frame.len()), byte)),
        Err(cause) => Err(wrong(object, "expected a zstd frame".to_string(), byte).caused_by(cause)),
    }
}
