//! Blosc streams (version 1): whole, by blocks, and of bit-shuffled ones only the values that are asked for.
//!
//! The layout is that of c-blosc's README_CHUNK_FORMAT. Its library decodes; it has no call that stops before values are
//! put together again, and for a row of a thousand IDs in a block of a hundred thousand that is most of the work. So the
//! blocks of lz4 streams that were bit-shuffled, which is how flat-tokens are written, are kept as planes of bits.

use std::cell::RefCell;

use windrow_core::{Error, Result};
use zarrs::array::codec::{blosc_decompress_bytes, blosc_decompress_bytes_partial, blosc_validate};

use crate::decode_error::{broken, wrong_size};
use crate::piece::{Piece, VALUE_SIZES};

/// Pieces are blocks of blosc, or as many as make this.
const LEAST_PIECE: usize = 16 << 10;
/// Before the table of blocks.
const HEADER: usize = 16;
/// Values of more bytes are not split into streams, nor are blocks with fewer values.
const MOST_SPLIT: usize = 16;
const LEAST_SPLIT: usize = 128;

/// Blocks up to this size are decoded into memory that a thread keeps: new memory costs more than lz4 does.
const MOST_KEPT: usize = 4 << 20;

thread_local! {
    static PLANES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A stream whose header was compared with what it must give.
pub(crate) struct Blosc<'a> {
    stored: &'a [u8],
    size: usize,
    value_size: usize,
    block_size: usize,
    flags: u8,
}

impl<'a> Blosc<'a> {
    /// # Errors
    /// `Corrupt` for what is no such stream, or would decode to more than `most` bytes.
    pub(crate) fn of(stored: &'a [u8], most: u64) -> Result<Blosc<'a>> {
        let (size, block_size, stored_size) = (number(stored, 4), number(stored, 8), number(stored, 12));
        if stored_size != Some(stored.len()) || blosc_validate(stored) != size {
            return Err(Error::corrupt(format!(
                "no blosc stream of {} bytes: its header says {}",
                stored.len(),
                stored_size.unwrap_or(0)
            )));
        }
        let size = size.unwrap_or(0);
        if size as u64 > most {
            return Err(wrong_size(size as u64, most));
        }
        let block_size = block_size.unwrap_or(0);
        if block_size > size {
            return Err(Error::corrupt(format!("blosc blocks of {block_size} bytes in a stream of {size}")));
        }
        let byte = |at: usize| stored.get(at).copied().unwrap_or(0);
        let (flags, value_size) = (byte(2), usize::from(byte(3)).max(1));
        Ok(Blosc { stored, size, value_size, block_size, flags })
    }

    /// Of all of it.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The size of a piece that can be decoded without the rest.
    pub(crate) fn piece_size(&self) -> u64 {
        let piece = match self.block_size {
            0 => self.size,
            block => block.saturating_mul(LEAST_PIECE.div_ceil(block)),
        };
        // The last piece too must hold whole values: the declared size of a value may not divide the chunk.
        match (piece % self.value_size, self.size % self.value_size) {
            (0, 0) => piece.min(self.size) as u64,
            _ => self.size as u64,
        }
    }

    /// Bytes `start..start + size` of what it gives: a piece, or all.
    pub(crate) fn piece(&self, start: u64, size: u64) -> Result<Piece> {
        // Both lie within the stream's size, which fits.
        let (start, size) = (start as usize, size as usize);
        if self.has_planes(start, size) {
            return self.planes(start, size);
        }
        if (start, size) == (0, self.size) {
            return self.all().map(Piece::numbers);
        }
        let bytes =
            blosc_decompress_bytes_partial(self.stored, start, size, self.value_size).map_err(broken)?;
        if bytes.len() == size {
            Ok(Piece::numbers(bytes))
        } else {
            Err(wrong_size(bytes.len() as u64, size as u64))
        }
    }

    /// All that it gives.
    pub(crate) fn all(&self) -> Result<Vec<u8>> {
        blosc_decompress_bytes(self.stored, self.size, 1).map_err(broken)
    }

    // What begins at `start` is a block that was bit-shuffled and put down by lz4.
    fn has_planes(&self, start: usize, size: usize) -> bool {
        let (copied, bits, lz4) = (self.flags & 0x02 != 0, self.flags & 0x04 != 0, self.flags >> 5 == 1);
        let is_block = self.block_size != 0
            && start.is_multiple_of(self.block_size)
            && (size == self.block_size || (size < self.block_size && start + size == self.size));
        // What is not a multiple of eight values was left as it is.
        let is_usual = VALUE_SIZES.contains(&self.value_size) && size.is_multiple_of(8 * self.value_size);
        !copied && bits && lz4 && is_block && is_usual
    }

    fn planes(&self, start: usize, size: usize) -> Result<Piece> {
        let block_size = self.block_size;
        let whole = size == block_size;
        let is_split = whole
            && self.flags & 0x10 == 0
            && self.value_size <= MOST_SPLIT
            && block_size / self.value_size >= LEAST_SPLIT;
        let part_size = if is_split { size / self.value_size } else { size };
        let cut = || Error::corrupt("the blosc stream ends within a block");
        let mut at = number(self.stored, HEADER + start / block_size * 4).ok_or_else(cut)?;
        PLANES.with_borrow_mut(|planes| {
            // No larger than the stream's size, which was compared with what the chunk may be.
            if planes.len() < size {
                planes.resize(size, 0);
            }
            for part in planes[..size].chunks_mut(part_size) {
                let stored_size = number(self.stored, at).ok_or_else(cut)?;
                let end = (at + 4).checked_add(stored_size).ok_or_else(cut)?;
                let stored = self.stored.get(at + 4..end).ok_or_else(cut)?;
                if stored.len() == part.len() {
                    part.copy_from_slice(stored);
                } else {
                    let found = lz4::block::decompress_to_buffer(stored, Some(part.len() as i32), part)
                        .map_err(broken)?;
                    if found != part.len() {
                        return Err(wrong_size(found as u64, part.len() as u64));
                    }
                }
                at = end;
            }
            let piece = Piece::planes(&planes[..size], self.value_size);
            if planes.len() > MOST_KEPT {
                *planes = Vec::new();
            }
            Ok(piece)
        })
    }
}

// Four bytes, little-endian.
fn number(stored: &[u8], at: usize) -> Option<usize> {
    let bytes = stored.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(|bytes| u32::from_le_bytes(bytes) as usize)
}
