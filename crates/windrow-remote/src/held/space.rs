//! How much of the disk copies may take: all of them below one limit, those of this process below its part of that.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use windrow_core::PerProcess;

use super::scan::{self, Found};

/// What copies of one object may take.
pub(super) struct Share {
    cache: PathBuf,
    most: Option<u64>,
    processes: u64,
    is_full: AtomicBool,
}

/// The caches of this process.
static SPACES: PerProcess<Mutex<BTreeMap<PathBuf, Space>>> = PerProcess::new(Mutex::default);

struct Space {
    /// Bytes of all copies, as far as this process knows.
    total: u64,
    /// Bytes that this process wrote for objects that it has open.
    own: u64,
    /// Half of what was free and what copies took.
    half: u64,
    /// Copies that may be in nobody's use, the one used least recently first.
    oldest: VecDeque<Found>,
    looked: Instant,
    took: Duration,
    /// Something that was in use may be free by now.
    is_stale: bool,
}

impl Share {
    pub(super) fn new(cache: &Path, most: Option<u64>) -> Share {
        Share::of_processes(cache, most, processes(std::env::var("LOCAL_WORLD_SIZE").ok().as_deref()))
    }

    /// That of one of so many processes.
    pub(super) fn of_processes(cache: &Path, most: Option<u64>, processes: u64) -> Share {
        Share { cache: cache.to_path_buf(), most, processes, is_full: AtomicBool::new(false) }
    }

    /// Whether all that was asked for last was there.
    pub(super) fn may_take(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Space) -> T) -> T {
        let mut spaces = SPACES.get().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(space) = spaces.get_mut(&self.cache) {
            return work(space);
        }
        work(spaces.entry(self.cache.clone()).or_insert_with(|| Space::of(&self.cache)))
    }

    /// Bytes of all objects that this process may have.
    pub(super) fn room(&self) -> u64 {
        self.most.unwrap_or_else(|| self.with(|space| space.half)) / self.processes
    }

    /// Takes up to `wanted` bytes, in multiples of `unit`; how many. Other data's copies go where they are in the way.
    pub(super) fn take(&self, wanted: u64, unit: u64) -> u64 {
        if wanted == 0 {
            return 0;
        }
        let granted = self.with(|space| {
            let may = |space: &Space| {
                let limit = self.most.unwrap_or(space.half);
                let own = (limit / self.processes).saturating_sub(space.own);
                (wanted.min(own) / unit * unit, limit.saturating_sub(space.total))
            };
            loop {
                let (wanted, left) = may(space);
                if wanted <= left || !space.remove_oldest(&self.cache) {
                    let granted = wanted.min(left / unit * unit);
                    space.total += granted;
                    space.own += granted;
                    return granted;
                }
            }
        });
        self.is_full.store(granted < wanted, Ordering::Relaxed);
        granted
    }

    /// Gives back what was taken and not used.
    pub(super) fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.with(|space| {
                space.total = space.total.saturating_sub(bytes);
                space.own = space.own.saturating_sub(bytes);
            });
        }
    }

    /// The object is closed: what was taken for it may go when others need room.
    pub(super) fn close(&self, taken: u64) {
        self.with(|space| {
            space.own = space.own.saturating_sub(taken);
            space.is_stale = true;
        });
    }

    /// Removes a copy that is in nobody's use, where there is one.
    pub(super) fn make_room(&self) -> bool {
        self.with(|space| space.remove_oldest(&self.cache))
    }
}

impl Space {
    fn of(cache: &Path) -> Space {
        let mut space = Space {
            total: 0,
            own: 0,
            half: 0,
            oldest: VecDeque::new(),
            looked: Instant::now(),
            took: Duration::ZERO,
            is_stale: false,
        };
        space.look(cache);
        space
    }

    fn look(&mut self, cache: &Path) {
        let began = Instant::now();
        // What cannot be listed takes nothing, as far as anybody knows; a disk that is full says so.
        let mut found = scan::list(cache).unwrap_or_default();
        found.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
        self.total = found.iter().map(|copy| copy.bytes).sum();
        self.oldest = found.into();
        self.half = free(cache).map_or(u64::MAX, |free| free.saturating_add(self.total) / 2);
        (self.looked, self.took, self.is_stale) = (began, began.elapsed(), false);
    }

    fn remove_oldest(&mut self, cache: &Path) -> bool {
        /// Other processes end without a word.
        const SOON: Duration = Duration::from_secs(60);
        loop {
            while let Some(oldest) = self.oldest.pop_front() {
                // What cannot be removed stays. Nothing is logged under a lock.
                if scan::remove(cache, &oldest).unwrap_or(false) {
                    self.total = self.total.saturating_sub(oldest.bytes);
                    return true;
                }
            }
            if !self.is_stale && self.looked.elapsed() < SOON.max(20 * self.took) {
                return false;
            }
            self.look(cache);
        }
    }
}

fn free(cache: &Path) -> Option<u64> {
    // The folder is made by the first copy; its disk is that of the one above.
    let there = cache.ancestors().find(|folder| folder.is_dir())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// How many processes of this machine share the limit: what launchers say.
pub(super) fn processes(said: Option<&str>) -> u64 {
    said.and_then(|said| said.trim().parse().ok()).unwrap_or(1).max(1)
}

/// Whether a disk, or what a user may take of it, is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
