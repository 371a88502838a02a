//! The bound: what a new entry takes is made free first, of what was used least recently.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::entry::remove_if_free;
use super::limit::{Limit, VARIABLE};
use super::listing::{Found, files_in};
use super::{Cache, is_full};
use crate::error::{Error, Result};

/// The listing that was used last, in this process: thousands of entries that are made one after the other do not list all
/// others each time. Taken out while it is used, so that the lock is never held for long.
static LAST: Mutex<Option<Listing>> = Mutex::new(None);

/// What lay in a cache a moment ago, without the one file that is being written here.
struct Listing {
    folder: PathBuf,
    /// The least recently used first.
    entries: VecDeque<Found>,
    /// Bytes of all of them, and of what others are writing.
    total: u64,
    at: Instant,
    took: Duration,
    /// When names in the folder last changed, where nobody else changed one since.
    changed: Option<SystemTime>,
}

impl Listing {
    fn of(folder: &Path, own: &str) -> io::Result<Listing> {
        let (at, changed) = (Instant::now(), time_of(folder));
        let mut found = files_in(folder)?;
        let mut total = 0;
        found.retain(|file| {
            if file.is_unfinished && file.name != own {
                // What a killed process left: whoever writes holds the lock.
                let is_gone = remove_if_free(&folder.join(&file.name), None).unwrap_or(false);
                total += if is_gone { 0 } else { file.size };
            }
            !file.is_unfinished
        });
        found.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
        total += found.iter().map(|file| file.size).sum::<u64>();
        let folder = folder.to_path_buf();
        Ok(Listing { folder, entries: found.into(), total, at, took: at.elapsed(), changed })
    }

    /// Whether it can be used for a file of `size` bytes: nothing changed, or little can have changed since and most of the
    /// limit is left anyway. Listing takes no more than a twentieth of the time then.
    fn serves(&self, size: u64, limit: u64) -> bool {
        let lately = self.at.elapsed() < (20 * self.took).max(Duration::from_secs(1));
        self.is_current() || (lately && self.total.saturating_add(size) <= limit / 2)
    }

    fn is_current(&self) -> bool {
        /// Within a step of its clock a folder may change twice and have one time.
        const STEP: Duration = Duration::from_millis(20);
        self.changed.is_some_and(|changed| {
            time_of(&self.folder) == Some(changed) && changed.elapsed().is_ok_and(|since| since > STEP)
        })
    }

    /// Does what changes names in the folder.
    fn change<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let was_current = self.is_current();
        let done = work();
        self.changed = if was_current { time_of(&self.folder) } else { None };
        done
    }
}

fn time_of(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).ok()?.modified().ok()
}

/// What may be taken of a cache by one file that is being written.
pub(super) struct Space {
    listing: Listing,
    limit: Limit,
    bytes: u64,
    /// The name of the file.
    own: String,
    /// The listing is of this very file's time, not of one before.
    is_own_listing: bool,
}

impl Space {
    /// That of a new file, with what `create` gives, which names it.
    pub(super) fn of<T>(
        cache: &Cache,
        create: impl FnOnce() -> io::Result<(T, String)>,
    ) -> io::Result<(T, Space)> {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        let last = last.filter(|listing| listing.folder == cache.folder);
        let last = last.filter(|listing| listing.serves(0, cache.limit.bytes(&cache.folder, listing.total)));
        let is_own_listing = last.is_none();
        let mut listing = match last {
            Some(listing) => listing,
            None => Listing::of(&cache.folder, "")?,
        };
        let (created, own) = listing.change(create)?;
        let bytes = cache.limit.bytes(&cache.folder, listing.total);
        Ok((created, Space { listing, limit: cache.limit, bytes, own, is_own_listing }))
    }

    /// Makes free what is needed for the file to have `size` bytes.
    ///
    /// # Errors
    /// `Config` when it is larger than the limit, or than what those that are open leave of it; `Io`.
    pub(super) fn take(&mut self, size: u64) -> Result<()> {
        while size > self.bytes.saturating_sub(self.listing.total) {
            if size > self.bytes {
                return Err(self.refusal(format!(
                    "its entry in the cache takes at least {size} bytes, more than the limit of {} bytes",
                    self.bytes
                )));
            }
            if !self.evict()? {
                let (bytes, total) = (self.bytes, self.listing.total);
                return Err(self.refusal(format!(
                    "its entry in the cache takes at least {size} bytes, and {total} bytes of the limit of {bytes} are open"
                )));
            }
        }
        Ok(())
    }

    fn refusal(&self, message: String) -> Error {
        Error::config(message).field(VARIABLE).hint(self.limit.hint())
    }

    /// Removes the entry that was used least recently and is not open; `false` where there is none.
    pub(super) fn evict(&mut self) -> Result<bool> {
        let folder = self.listing.folder.clone();
        let failed = |e| Error::io("make space in the cache folder", &folder, e);
        loop {
            while let Some(oldest) = self.listing.entries.pop_front() {
                let path = folder.join(&oldest.name);
                if self.listing.change(|| remove_if_free(&path, Some(oldest.used))).map_err(failed)? {
                    log::info!(
                        "removed {} ({} bytes) from the cache {}",
                        oldest.name,
                        oldest.size,
                        folder.display()
                    );
                    self.listing.total = self.listing.total.saturating_sub(oldest.size);
                    return Ok(true);
                }
            }
            if self.is_own_listing {
                return Ok(false);
            }
            self.list_again().map_err(failed)?;
        }
    }

    /// Looks again, where that matters, before the file of `size` bytes is there: what was added meanwhile counts.
    pub(super) fn refresh(&mut self, size: u64) -> io::Result<()> {
        if self.listing.serves(size, self.bytes) { Ok(()) } else { self.list_again() }
    }

    fn list_again(&mut self) -> io::Result<()> {
        self.listing = Listing::of(&self.listing.folder, &self.own)?;
        self.is_own_listing = true;
        let written = fs::metadata(self.listing.folder.join(&self.own)).map_or(0, |meta| meta.len());
        self.bytes = self.limit.bytes(&self.listing.folder, self.listing.total.saturating_add(written));
        Ok(())
    }

    /// Makes the file the entry `name` by what `put` does.
    ///
    /// # Errors
    /// What `put` says.
    pub(super) fn put(
        mut self,
        name: &str,
        size: u64,
        put: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        self.listing.change(put)?;
        let replaced = self.listing.entries.iter().position(|entry| entry.name == name);
        if let Some(replaced) = replaced.and_then(|i| self.listing.entries.remove(i)) {
            self.listing.total = self.listing.total.saturating_sub(replaced.size);
        }
        self.listing.total += size;
        let found = Found { name: name.to_string(), size, used: SystemTime::now(), is_unfinished: false };
        self.listing.entries.push_back(found);
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.listing);
        Ok(())
    }
}

/// As after a while.
#[cfg(test)]
pub(super) fn forget_listing() {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Does `write`; where the disk is full, as often as there is something to remove.
///
/// # Errors
/// What `write` says in the end.
pub(super) fn with_space(
    space: Option<&mut Space>,
    mut write: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let Some(space) = space else { return write() };
    loop {
        match write() {
            Err(e) if is_full(&e) => {
                if !space.evict().unwrap_or(false) {
                    return Err(e);
                }
            }
            done => return done,
        }
    }
}
