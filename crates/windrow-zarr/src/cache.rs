//! Decoded pieces, the ones used last, up to a number of bytes.

use std::sync::{Arc, Mutex};

use lru::LruCache;
use windrow_core::Result;

/// Bytes of decoded pieces that an opened store keeps: of all its arrays together.
pub const CACHE_SIZE: usize = 256 << 20;

/// Array, chunk and piece.
pub(crate) type Key = (u8, u64, u64);

/// Pieces by key.
pub(crate) struct Cache {
    state: Mutex<State>,
    most: usize,
}

struct State {
    pieces: LruCache<Key, Arc<Vec<u8>>>,
    size: usize,
}

impl Cache {
    /// Room for `most` bytes.
    pub(crate) fn new(most: usize) -> Cache {
        Cache { state: Mutex::new(State { pieces: LruCache::unbounded(), size: 0 }), most }
    }

    /// The piece, made now where it is not there. Two threads that ask for one at the same time may both make it.
    pub(crate) fn get(&self, key: Key, make: impl FnOnce() -> Result<Vec<u8>>) -> Result<Arc<Vec<u8>>> {
        // Never waited for: after a fork the lock may stay taken for ever.
        if let Ok(mut state) = self.state.try_lock()
            && let Some(piece) = state.pieces.get(&key)
        {
            return Ok(piece.clone());
        }
        let piece = Arc::new(make()?);
        if let Ok(mut state) = self.state.try_lock() {
            state.size += piece.len();
            if let Some((_, old)) = state.pieces.push(key, piece.clone()) {
                state.size -= old.len();
            }
            while state.size > self.most && state.pieces.len() > 1 {
                match state.pieces.pop_lru() {
                    Some((_, old)) => state.size -= old.len(),
                    None => break,
                }
            }
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_when_the_bytes_are_too_many() {
        let cache = Cache::new(10);
        let made = |key: u64, size: usize| {
            let mut made = false;
            let piece = cache.get((0, key, 0), || {
                made = true;
                Ok(vec![0; size])
            });
            assert_eq!(piece.unwrap().len(), size);
            made
        };
        assert_eq!([made(1, 4), made(2, 4), made(1, 4), made(3, 4)], [true, true, false, true]);
        assert_eq!([made(1, 4), made(2, 4)], [false, true]);
        // One that is larger than all room is kept alone.
        assert_eq!([made(4, 99), made(4, 99), made(2, 4)], [true, false, true]);
    }
}
