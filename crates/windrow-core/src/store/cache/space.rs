//! The bound: what is added is made free first, of what was used least recently, be it a file made once or a copy.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::limit::half_of_free;
use super::listing::{Found, What, all_in};
use super::{Cache, is_full};
use crate::error::Result;
use crate::per_process::PerProcess;

/// What this process knows of each cache: thousands of entries that are made one after the other do not list all others each
/// time.
static KNOWN: PerProcess<Mutex<BTreeMap<PathBuf, Known>>> = PerProcess::new(Mutex::default);

#[derive(Default)]
struct Known {
    folder: PathBuf,
    /// What may be open nowhere, the least recently used first.
    oldest: VecDeque<Found>,
    /// How many there were.
    count: usize,
    /// Bytes of all that is there.
    total: u64,
    /// Bytes that this process may write, and did not yet.
    pending: u64,
    /// Half of what was free and what was there.
    half: u64,
    looked: Option<Instant>,
    took: Duration,
    /// Something that was open may be free by now.
    is_stale: bool,
    removed: Vec<Found>,
}

impl Known {
    fn look(&mut self) {
        let began = Instant::now();
        // What cannot be listed takes nothing, as far as anybody knows; a disk that is full says so.
        let mut found = all_in(&self.folder).unwrap_or_default();
        // What a killed process left: whoever writes holds the lock.
        found.retain(|found| {
            found.what != What::Unfinished || !found.remove(&self.folder, None).unwrap_or(false)
        });
        self.total = found.iter().map(|found| found.bytes).sum();
        self.half = half_of_free(&self.folder, self.total);
        found.retain(|found| found.what != What::Unfinished);
        found.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
        (self.count, self.oldest) = (found.len(), found.into());
        (self.looked, self.took, self.is_stale) = (Some(began), began.elapsed(), false);
    }

    fn age(&self) -> Duration {
        self.looked.map_or(Duration::MAX, |looked| looked.elapsed())
    }

    /// Looks at what other processes did, now where that matters, else now and then. To list more than a few takes no more than
    /// a twentieth of the time.
    fn refresh(&mut self, does_matter: bool) {
        const FEW: usize = 64;
        let least = if self.count <= FEW { Duration::ZERO } else { 20 * self.took };
        let least = if does_matter { least } else { least.max(Duration::from_secs(1)) };
        if self.age() > least {
            self.look();
        }
    }

    fn all(&self) -> u64 {
        self.total.saturating_add(self.pending)
    }

    /// Grants up to `wanted` bytes of those below `limit`, in multiples of `unit`.
    fn take(&mut self, wanted: u64, unit: u64, limit: u64) -> u64 {
        let left = |known: &Known| limit.saturating_sub(known.all());
        // Others may have made space by now. Where all is open, that is found out more rarely.
        if wanted > left(self) && !self.oldest.is_empty() {
            self.refresh(true);
        }
        while wanted > left(self) && self.remove_oldest() {}
        let granted = wanted.min(left(self) / unit * unit);
        self.pending += granted;
        granted
    }

    /// Removes what was used least recently and is not open; `false` where there is nothing.
    fn remove_oldest(&mut self) -> bool {
        /// Other processes end without a word.
        const SOON: Duration = Duration::from_secs(60);
        loop {
            while let Some(oldest) = self.oldest.pop_front() {
                // What cannot be removed stays.
                if oldest.remove(&self.folder, Some(oldest.used)).unwrap_or(false) {
                    self.total = self.total.saturating_sub(oldest.bytes);
                    self.removed.push(oldest);
                    return true;
                }
            }
            if !self.is_stale && self.age() < SOON.max(20 * self.took) {
                return false;
            }
            self.look();
        }
    }
}

/// For whoever fills copies, and for entries that are made.
impl Cache {
    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        let mut all = KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(self.folder.clone()).or_default();
        if known.looked.is_none() {
            known.folder.clone_from(&self.folder);
            known.look();
        }
        let done = work(known);
        let removed = std::mem::take(&mut known.removed);
        drop(all);
        // Whoever takes the log may wait for a thread that waits for the lock.
        for Found { name, bytes, .. } in removed {
            log::info!("removed {name} ({bytes} bytes) from the cache {}", self.folder.display());
        }
        done
    }

    /// How many bytes it may take now, where it holds `held` bytes.
    pub fn limit(&self, held: u64) -> u64 {
        self.limit.bytes(half_of_free(&self.folder, held))
    }

    /// Bytes of the limit that granules of copies may take. The rest is for what copies take besides, and for what processes
    /// that take the last bytes at once do not know of each other.
    pub fn room(&self) -> u64 {
        self.with(|known| room_of(self.limit.bytes(known.half)))
    }

    /// Takes up to `wanted` bytes for copies, in multiples of `unit`; how many. What was used least recently goes where it is in
    /// the way.
    pub fn take(&self, wanted: u64, unit: u64) -> u64 {
        self.with(|known| {
            known.refresh(false);
            known.take(wanted, unit, room_of(self.limit.bytes(known.half)))
        })
    }

    /// Notes that of the `taken` bytes `written` are on the disk now; the others are given back.
    pub fn wrote(&self, taken: u64, written: u64) {
        self.with(|known| {
            known.pending = known.pending.saturating_sub(taken);
            known.total = known.total.saturating_add(written);
        });
    }

    /// Removes what was used least recently and is not open, where there is something: a disk is full.
    pub fn make_space(&self) -> bool {
        self.with(Known::remove_oldest)
    }

    /// Looks, after something was added, at what others added meanwhile, and removes what is too much.
    pub fn settle(&self) {
        self.with(|known| {
            known.refresh(known.all() > self.limit.bytes(known.half) / 2);
            while known.all() > self.limit.bytes(known.half) && known.remove_oldest() {}
        });
    }

    /// Something was closed that may go when others need space.
    pub fn closed(&self) {
        self.with(|known| known.is_stale = true);
    }
}

fn room_of(limit: u64) -> u64 {
    limit - limit / 256
}

/// What one file that is being written takes of a cache. When it is dropped, the file is gone.
pub(super) struct Space {
    cache: Cache,
    bytes: u64,
}

impl Space {
    pub(super) fn of(cache: &Cache) -> Space {
        Space { cache: cache.clone(), bytes: 0 }
    }

    /// Does `write`, which adds `bytes` to the file: the space is made free first, and more of it as long as the disk is full.
    ///
    /// # Errors
    /// `Config` when the file would be larger than the limit, or than what is open leaves of it; inside, what `write` says.
    pub(super) fn grow(
        &mut self,
        more: u64,
        mut write: impl FnMut() -> io::Result<()>,
    ) -> Result<io::Result<()>> {
        let size = self.bytes + more;
        let needs = format!("its entry in the cache takes at least {size} bytes");
        let refused = self.cache.with(|known| {
            known.refresh(false);
            // Entries are closed without a word.
            known.is_stale = true;
            let limit = self.cache.limit.bytes(known.half);
            if size > limit {
                return Some(format!("{needs}, more than the limit of {limit} bytes"));
            }
            let others = |known: &Known| known.all().saturating_sub(self.bytes);
            (known.take(more, more, limit) < more)
                .then(|| format!("{needs}, and {} bytes of the limit of {limit} are open", others(known)))
        });
        if let Some(refused) = refused {
            return Err(self.cache.limit.refusal(refused));
        }
        let written = loop {
            match write() {
                Err(e) if is_full(&e) && self.cache.make_space() => {}
                done => break done,
            }
        };
        let written_bytes = if written.is_ok() { more } else { 0 };
        self.cache.wrote(more, written_bytes);
        self.bytes += written_bytes;
        Ok(written)
    }

    /// Notes that the file lost `bytes` bytes.
    pub(super) fn shrink(&mut self, bytes: u64) {
        self.cache.with(|known| known.total = known.total.saturating_sub(bytes));
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Makes the file the entry `name` by what `put` does.
    ///
    /// # Errors
    /// What `put` says.
    pub(super) fn keep(mut self, name: &str, put: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let bytes = self.bytes;
        self.cache.with(|known| {
            put()?;
            let replaced = known.oldest.iter().position(|found| found.name == name);
            if let Some(replaced) = replaced.and_then(|i| known.oldest.remove(i)) {
                known.total = known.total.saturating_sub(replaced.bytes);
            }
            let name = name.to_string();
            known.oldest.push_back(Found { name, bytes, used: SystemTime::now(), what: What::Entry });
            Ok::<(), io::Error>(())
        })?;
        self.bytes = 0;
        self.cache.settle();
        Ok(())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.shrink(self.bytes);
        }
    }
}

/// As after a while.
#[cfg(test)]
pub(super) fn forget_listing(cache: &Cache) {
    KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner).remove(&cache.folder);
}
