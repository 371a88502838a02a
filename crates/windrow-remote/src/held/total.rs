//! Bytes of all objects that this process reads: whether they fit into what it may keep.

use std::sync::atomic::{AtomicU64, Ordering};

use windrow_core::PerProcess;

static TOTAL: PerProcess<AtomicU64> = PerProcess::new(AtomicU64::default);

/// Bytes of all objects.
pub(super) fn total() -> u64 {
    TOTAL.get().load(Ordering::Relaxed)
}

/// An object among them, until this is dropped.
pub(super) struct Counted(u64);

impl Counted {
    pub(super) fn new(size: u64) -> Counted {
        change(|total| total.saturating_add(size));
        Counted(size)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // The child of a fork counts from 0.
        change(|total| total.saturating_sub(self.0));
    }
}

fn change(to: impl Fn(u64) -> u64) {
    // It never refuses.
    let _ = TOTAL.get().fetch_update(Ordering::Relaxed, Ordering::Relaxed, |total| Some(to(total)));
}
