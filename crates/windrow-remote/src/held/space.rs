//! How much of the disk the copies of this process may take: its part of what the limit of the cache leaves to copies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use windrow_core::PerProcess;
use windrow_core::store::Cache;

/// What copies of one object may take.
pub(super) struct Share {
    cache: Cache,
    processes: u64,
    is_full: AtomicBool,
}

/// Bytes that this process took in each cache for objects that it has open.
static OWN: PerProcess<Mutex<BTreeMap<PathBuf, u64>>> = PerProcess::new(Mutex::default);

impl Share {
    pub(super) fn new(cache: Cache) -> Share {
        Share::of_processes(cache, processes(std::env::var("LOCAL_WORLD_SIZE").ok().as_deref()))
    }

    /// The share of one of `processes` processes.
    pub(super) fn of_processes(cache: Cache, processes: u64) -> Share {
        Share { cache, processes, is_full: AtomicBool::new(false) }
    }

    /// Whether all that was asked for last was there.
    pub(super) fn may_take(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }

    /// Bytes of all objects that this process may have.
    pub(super) fn room(&self) -> u64 {
        self.cache.room() / self.processes
    }

    fn with_own<T>(&self, work: impl FnOnce(&mut u64) -> T) -> T {
        let mut own = OWN.get().lock().unwrap_or_else(PoisonError::into_inner);
        work(own.entry(self.cache.folder().to_path_buf()).or_default())
    }

    fn less(&self, bytes: u64) {
        self.with_own(|own| *own = own.saturating_sub(bytes));
    }

    /// Takes up to `wanted` bytes, in multiples of `unit`; how many. What is in the cache goes where it is in the way.
    pub(super) fn take(&self, wanted: u64, unit: u64) -> u64 {
        if wanted == 0 {
            return 0;
        }
        let room = self.room();
        let asked = self.with_own(|own| {
            let asked = wanted.min(room.saturating_sub(*own)) / unit * unit;
            *own += asked;
            asked
        });
        let granted = self.cache.take(asked, unit);
        self.less(asked - granted);
        self.is_full.store(granted < wanted, Ordering::Relaxed);
        granted
    }

    /// Notes that of the `taken` bytes `written` are on the disk now; the others are given back.
    pub(super) fn wrote(&self, taken: u64, written: u64) {
        self.cache.wrote(taken, written);
        self.less(taken - written);
    }

    /// The object is about to be closed: what was taken for it may go when others need room.
    pub(super) fn close(&self, taken: u64) {
        if taken > 0 {
            self.less(taken);
            self.cache.settle();
        }
        self.cache.closed();
    }

    /// Removes something that is in nobody's use, where there is something.
    pub(super) fn make_room(&self) -> bool {
        self.cache.make_space()
    }
}

/// How many processes of this machine share the limit: what launchers say.
pub(super) fn processes(said: Option<&str>) -> u64 {
    said.and_then(|said| said.trim().parse().ok()).unwrap_or(1).max(1)
}
