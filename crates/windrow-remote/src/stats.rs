//! What a store was asked for, counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use windrow_core::store::Traffic;

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Bytes that reads gave.
    pub(crate) read: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) waited_ns: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) hedged: AtomicU64,
    /// A warning said that much is received in vain.
    has_warned: AtomicBool,
}

/// Bytes that opening data may take, and a run's beginning: too few to say something about.
const FEW: u64 = 16 << 20;

impl Counters {
    /// What was received and read, the first time that the one is more than twice the other, besides `ahead` bytes that may still be
    /// read.
    pub(crate) fn too_much(&self, ahead: u64) -> Option<(u64, u64)> {
        let (received, read) = (self.bytes.load(Relaxed), self.read.load(Relaxed));
        let is_much = received > read.saturating_mul(2).saturating_add(ahead).saturating_add(FEW);
        (is_much && !self.has_warned.swap(true, Relaxed)).then_some((received, read))
    }

    pub(crate) fn now(&self) -> Traffic {
        Traffic {
            requests: self.requests.load(Relaxed),
            received_bytes: self.bytes.load(Relaxed),
            read_bytes: self.read.load(Relaxed),
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
