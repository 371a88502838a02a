//! What was asked of stores, counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What a store was asked for so far, in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests sent, the failed ones too.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Reads that found all their bytes here.
    pub hits: u64,
    /// Reads that waited for a store.
    pub misses: u64,
    /// How long those waited, all threads together.
    pub waited: Duration,
    /// Requests that were sent again because the first one failed.
    pub retries: u64,
    /// Requests that were sent beside a slow one.
    pub hedged: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) waited_ns: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) hedged: AtomicU64,
}

impl Counters {
    pub(crate) fn now(&self) -> Stats {
        Stats {
            requests: self.requests.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Relaxed)),
            retries: self.retries.load(Relaxed),
            hedged: self.hedged.load(Relaxed),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
