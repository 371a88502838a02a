//! Pieces of many numbers decoded side by side, before the numbers are read one row after the other.

use std::sync::atomic::{AtomicUsize, Ordering};

use windrow_core::Result;
use windrow_core::threads::{beside, cores};

use super::Array;
use crate::cache::Key;

/// Less than this is decoded before a thread has started, in bytes.
const LEAST_OF_A_THREAD: u64 = 1 << 20;
/// A data loader's processes do the same beside this one.
const MOST_THREADS: u64 = 4;

impl Array {
    /// Decodes the pieces that these numbers (start and count) are in and that are not there yet, on several threads where
    /// it is worth them. Of a chunk that nobody has read from yet the first row finds out how it is cut.
    pub(crate) fn decode_ahead(&self, spans: impl Iterator<Item = (u64, u64)>) {
        let (keys, bytes) = self.missing_pieces(spans);
        let cores = cores() as u64;
        let threads = (bytes / LEAST_OF_A_THREAD).min(MOST_THREADS).min(cores);
        // What would be dropped again before it is read is not worth it.
        if threads < 2 || bytes > self.cache.most() as u64 / 2 {
            return;
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let decode = |key: &Key| -> Result<()> {
                if let (Some(object), Some(size)) = (self.object(key.1)?, self.piece_size(key.1)) {
                    self.decoded(&self.piece(key.1, key.2 * size, size), object.as_ref())?;
                }
                Ok(())
            };
            // What fails here fails again, with its place, for the one who reads it.
            while keys.get(next.fetch_add(1, Ordering::Relaxed)).is_some_and(|key| decode(key).is_ok()) {}
        };
        beside(threads as usize, work, work);
    }

    // Keys, and how many bytes they decode to at most.
    fn missing_pieces(&self, spans: impl Iterator<Item = (u64, u64)>) -> (Vec<Key>, u64) {
        let mut keys = Vec::new();
        if self.is_plain() {
            return (keys, 0);
        }
        for (start, count) in spans {
            let chunk = start / self.chunk_len;
            let Some(size) = self.piece_size(chunk) else { continue };
            let from = start % self.chunk_len * self.width();
            let end = from.saturating_add(count.saturating_mul(self.width())).min(self.chunk_size());
            keys.extend((from / size..end.div_ceil(size)).map(|number| (self.number, chunk, number)));
        }
        keys.sort_unstable();
        keys.dedup();
        self.cache.keep_missing(&mut keys);
        let bytes = keys.iter().filter_map(|key| self.piece_size(key.1)).sum();
        (keys, bytes)
    }
}
