//! What an object whose server names no version was when it was fetched first: other bytes in the same place are noticed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

/// What was fetched is remembered by parts that end at multiples of this: later requests seldom have the same ends.
const PART: u64 = 64 << 10;
/// Parts that are remembered of an object: about 3 MiB of memory.
const MOST: usize = 1 << 16;

/// The parts of an object that were fetched: their sizes and hashes, by their first byte.
#[derive(Default)]
pub(crate) struct Seen(Mutex<BTreeMap<u64, (u64, u64)>>);

impl Seen {
    /// Where bytes that begin at `start` are others than those that came before, as far as these are remembered.
    pub(crate) fn differs(&self, start: u64, bytes: &[u8]) -> Option<u64> {
        let end = start + bytes.len() as u64;
        let part = |at: u64, size: u64| &bytes[(at - start) as usize..][..size as usize];
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (&at, &(size, hash)) in seen.range(start..end) {
            if at + size <= end && xxh3_64(part(at, size)) != hash {
                return Some(at);
            }
        }
        let mut at = start;
        while at < end {
            let next = (at / PART + 1).saturating_mul(PART).min(end);
            let is_known = seen.get(&at).is_some_and(|(size, _)| *size >= next - at);
            if !is_known && (seen.len() < MOST || seen.contains_key(&at)) {
                seen.insert(at, (next - at, xxh3_64(part(at, next - at))));
            }
            at = next;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_in_a_place_that_was_seen_differ() {
        let mut bytes: Vec<u8> = (0..3 * PART).map(|i| (i % 251) as u8).collect();
        let seen = Seen::default();
        let at = |from: u64, to: u64, bytes: &[u8]| seen.differs(from, &bytes[from as usize..to as usize]);
        assert_eq!(at(100, 2 * PART + 5, &bytes), None);
        assert_eq!(at(0, 3 * PART, &bytes), None);
        for changed in [100, PART + 7, 2 * PART + 4] {
            bytes[changed as usize] ^= 1;
            assert_eq!(at(50, 3 * PART, &bytes), Some((changed / PART * PART).max(100)));
            bytes[changed as usize] ^= 1;
        }
        assert_eq!(at(50, 3 * PART, &bytes), None);
        // What lies within a part that is remembered, nobody can compare.
        bytes[200] ^= 1;
        assert_eq!(at(200, 201, &bytes), None);
    }
}
