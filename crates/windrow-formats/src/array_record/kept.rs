//! The chunks of several records that were read last: records that come one after the other are in the same one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::Result;

/// Chunks that are kept at most.
const MOST: usize = 8;
/// And their bytes; a larger one is not kept.
const MOST_BYTES: usize = 64 << 20;

/// A file and a chunk of it, its value, and the bytes of that.
type Entry<T> = ((usize, usize), Arc<T>, usize);

/// A few values by file and chunk, each with its bytes.
pub(super) struct Kept<T> {
    found: Mutex<VecDeque<Entry<T>>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { found: Mutex::default() }
    }
}

impl<T> Kept<T> {
    /// The value of a chunk, made where it is not kept; `size` says its bytes.
    ///
    /// # Errors
    /// What making it says.
    pub(super) fn get(
        &self,
        chunk: (usize, usize),
        size: impl FnOnce(&T) -> usize,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let kept = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value, _)) = kept().iter().find(|(of, ..)| *of == chunk) {
            return Ok(value.clone());
        }
        let value = Arc::new(make()?);
        let size = size(&value);
        if size > MOST_BYTES {
            return Ok(value);
        }
        let mut kept = kept();
        while kept.len() == MOST || kept.iter().map(|(.., size)| size).sum::<usize>() + size > MOST_BYTES {
            kept.pop_front();
        }
        kept.push_back((chunk, value.clone(), size));
        Ok(value)
    }
}
