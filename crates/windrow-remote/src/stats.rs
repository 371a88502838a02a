//! What a store was asked for, counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use windrow_core::store::Traffic;

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
    pub(crate) fn now(&self) -> Traffic {
        Traffic {
            requests: self.requests.load(Relaxed),
            received_bytes: self.bytes.load(Relaxed),
            cache_hits: self.hits.load(Relaxed),
            cache_misses: self.misses.load(Relaxed),
            store_waited_secs: Duration::from_nanos(self.waited_ns.load(Relaxed)).as_secs_f64(),
            retries: self.retries.load(Relaxed),
            hedged: self.hedged.load(Relaxed),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
