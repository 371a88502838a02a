//! Decoded pieces, the ones used last, up to a number of bytes.

use std::sync::{Arc, Mutex, MutexGuard};

use lru::LruCache;
use windrow_core::{Result, store};

use crate::piece::Piece;

/// Bytes of decoded pieces that an opened store keeps by default: of all its arrays together.
const CACHE_SIZE: u64 = 256 << 20;
/// How often a thread asks for the lock: it is held for less than a microsecond.
const TRIES: usize = 1000;

/// Array, chunk and piece.
pub(crate) type Key = (u8, u64, u64);

/// Pieces by key.
pub(crate) struct Cache {
    state: Mutex<State>,
    most: usize,
}

struct State {
    pieces: LruCache<Key, Arc<Piece>>,
    size: usize,
}

impl Cache {
    /// Room for `limit` bytes, if it is given.
    pub(crate) fn new(limit: Option<u64>) -> Cache {
        let most = usize::try_from(limit.unwrap_or(CACHE_SIZE)).unwrap_or(usize::MAX);
        Cache { state: Mutex::new(State { pieces: LruCache::unbounded(), size: 0 }), most }
    }

    /// The piece, made now where it is not there. Two threads that ask for one at the same time may both make it.
    pub(crate) fn get(&self, key: Key, make: impl FnMut() -> Result<Piece>) -> Result<Arc<Piece>> {
        if let Some(mut state) = self.lock()
            && let Some(piece) = state.pieces.get(&key)
        {
            return Ok(piece.clone());
        }
        // Nothing is kept that was made of a torn map.
        let piece = Arc::new(store::whole(make)?);
        if let Some(mut state) = self.lock() {
            state.size += piece.size();
            if let Some((_, old)) = state.pieces.push(key, piece.clone()) {
                state.size -= old.size();
            }
            while state.size > self.most && state.pieces.len() > 1 {
                match state.pieces.pop_lru() {
                    Some((_, old)) => state.size -= old.size(),
                    None => break,
                }
            }
        }
        Ok(piece)
    }

    /// The piece, where it is there and the lock is free: for hints, which nobody waits for.
    pub(crate) fn peek(&self, key: Key) -> Option<Arc<Piece>> {
        self.state.try_lock().ok()?.pieces.peek(&key).cloned()
    }

    /// Keeps those keys whose pieces are not there; none where the lock is taken.
    pub(crate) fn keep_missing(&self, keys: &mut Vec<Key>) {
        match self.lock() {
            Some(state) => keys.retain(|key| !state.pieces.contains(key)),
            None => keys.clear(),
        }
    }

    /// Bytes of pieces that it keeps at most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    // Not waited for without end: after a fork the lock may stay taken for ever.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        for attempt in 0..TRIES {
            if let Ok(state) = self.state.try_lock() {
                return Some(state);
            }
            match attempt % 64 {
                63 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_when_the_bytes_are_too_many() {
        let cache = Cache::new(Some(10));
        let made = |key: u64, size: usize| {
            let mut made = false;
            let piece = cache.get((0, key, 0), || {
                made = true;
                Ok(Piece::numbers(vec![0; size]))
            });
            assert_eq!(piece.unwrap().size(), size);
            made
        };
        assert_eq!([made(1, 4), made(2, 4), made(1, 4), made(3, 4)], [true, true, false, true]);
        assert_eq!([made(1, 4), made(2, 4)], [false, true]);
        // One that is larger than all room is kept alone.
        assert_eq!([made(4, 99), made(4, 99), made(2, 4)], [true, false, true]);
    }
}
