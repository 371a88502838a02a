//! What of an object is here already.

mod memory;

use std::ops::Range;
use std::path::PathBuf;

use memory::Pieces;

/// One version of one object.
#[expect(dead_code, reason = "what is kept on disk is found by it")]
pub(crate) struct Identity {
    pub(crate) url: String,
    pub(crate) size: u64,
    /// An ETag, a generation or a commit; `""` where the store tells none.
    pub(crate) tag: String,
}

/// How much may be kept, and where.
#[expect(dead_code, reason = "what is kept on disk goes there")]
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The cache folder; `None` is the usual one.
    pub(crate) folder: Option<PathBuf>,
    /// Bytes on disk; `None` is half of what is free, 0 keeps all in memory.
    pub(crate) disk: Option<u64>,
    /// Bytes in memory, of all objects of this process.
    pub(crate) memory: u64,
}

/// What of one object is here.
pub(crate) struct Held {
    identity: Identity,
    pieces: Pieces,
}

impl Held {
    pub(crate) fn new(identity: Identity, limits: &Limits) -> Held {
        Held { identity, pieces: Pieces::new(limits.memory) }
    }

    /// A range as it lies here, where it can be lent.
    pub(crate) fn lent(&self, start: u64, size: usize) -> Option<&[u8]> {
        let _ = (start, size);
        None
    }

    /// Copies a range; whether all of it was here.
    pub(crate) fn copy(&self, start: u64, out: &mut [u8]) -> bool {
        self.pieces.copy(start, out)
    }

    /// What must be fetched so that a range is here: rounded outwards, sorted, without overlaps.
    pub(crate) fn missing(&self, start: u64, size: u64) -> Vec<Range<u64>> {
        self.pieces.missing(start, start.saturating_add(size).min(self.identity.size), self.identity.size)
    }

    /// Takes what was fetched, all of a part of such a range.
    pub(crate) fn put(&self, start: u64, bytes: Vec<u8>) {
        self.pieces.put(start, bytes);
    }
}
