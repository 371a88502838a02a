//! What of an object is here already: in a sparse copy on disk, that the processes of a machine share, or in memory.
//!
//! The order needs each byte once an epoch, so whatever is kept is as good as what would take its place: the disk takes bytes
//! until its limit and keeps them. What finds no room there goes through memory.

mod bits;
mod disk;
mod folder;
mod grain;
mod opened;
mod pieces;
mod space;
mod total;
mod turns;

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use windrow_core::store::{Cache, is_of_another_machine};

use self::disk::Disk;
use self::grain::Grain;
use self::pieces::{Pieces, Reading};
use self::space::Share;
use self::total::Counted;
pub(crate) use self::turns::Turn;

/// One version of one object.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity {
    pub(crate) url: String,
    pub(crate) size: u64,
    /// An ETag, a generation or a commit; `""` where the store names none, and then nothing is kept on disk.
    pub(crate) tag: String,
}

/// How much may be kept, and where.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The cache folder; `None` is the usual one.
    pub(crate) folder: Option<PathBuf>,
    /// Bytes that all of the cache folder may take, what others keep in it too; `None` is as the environment has it, 0 keeps all
    /// in memory.
    pub(crate) disk: Option<u64>,
    /// Bytes in memory, of all objects of this process.
    pub(crate) memory: u64,
}

/// Bytes that this process may keep on disk, of all objects.
pub(crate) fn room(cache: Option<PathBuf>, most: Option<u64>) -> u64 {
    match Cache::new(cache, most) {
        Ok(cache) if most != Some(0) && !is_elsewhere(cache.folder()) => Share::new(cache).room(),
        _ => 0,
    }
}

// Whether the folder, or the one that it will be made in, is on a mount of another machine.
fn is_elsewhere(cache: &Path) -> bool {
    let there = cache.ancestors().find_map(|folder| File::open(folder).ok());
    there.is_some_and(|folder| is_of_another_machine(&folder))
}

/// What of one object is here. Any number of threads may ask and put at once.
pub(crate) struct Held {
    size: u64,
    disk: Option<Disk>,
    pieces: Pieces,
    /// Bytes that this process may have on disk, of all objects.
    room: OnceLock<u64>,
    _counted: Counted,
}

impl Held {
    /// Looks at nothing yet: files are opened when they are first asked for, and made when there is something to put.
    pub(crate) fn new(identity: Identity, limits: &Limits) -> Held {
        Held {
            size: identity.size,
            _counted: Counted::new(identity.size),
            pieces: Pieces::new(limits.memory),
            disk: Disk::new(identity, limits),
            room: OnceLock::new(),
        }
    }

    /// A range as it lies on disk, where all of it does. To be read inside of [`whole`](windrow_core::store::whole), as
    /// every map.
    #[inline]
    pub(crate) fn borrowed(&self, start: u64, size: usize) -> Option<&[u8]> {
        self.disk.as_ref()?.borrowed(start, size)
    }

    /// Copies a range; whether all of it was here. `out` holds anything where it was not.
    pub(crate) fn copy(&self, start: u64, out: &mut [u8]) -> bool {
        let end = start + out.len() as u64;
        let mut at = start;
        for (part, is_on_disk) in self.parts(start, end) {
            let out = &mut out[(at - start) as usize..(part - start) as usize];
            let is_here = if is_on_disk {
                self.disk.as_ref().is_some_and(|disk| disk.copy(at, out))
            } else {
                self.pieces.copy(at, out)
            };
            if !is_here {
                return false;
            }
            at = part;
        }
        true
    }

    /// What must be fetched so that a range is here: rounded outwards to sectors, within the object, sorted, without overlaps.
    pub(crate) fn missing(&self, start: u64, size: u64) -> Vec<Range<u64>> {
        let end = start.saturating_add(size).min(self.size);
        let mut gaps = Vec::new();
        let mut at = start;
        for (part, is_on_disk) in self.parts(start, end) {
            if !is_on_disk {
                self.pieces.gaps(at..part, &mut gaps);
            }
            at = part;
        }
        rounded(gaps, Grain::of(self.size).sector(), self.size)
    }

    /// Takes what was fetched, all of a part of such a range. What the disk does not take goes to memory.
    pub(crate) fn put(&self, start: u64, bytes: Vec<u8>) {
        let on_disk = self.disk.as_ref().map_or(start..start, |disk| disk.put(start, &bytes));
        if on_disk.is_empty() {
            return self.pieces.put(start, bytes);
        }
        // It fits into memory, and so do its ends.
        let (first, last) = ((on_disk.start - start) as usize, (on_disk.end - start) as usize);
        for (at, part) in [(start, &bytes[..first]), (on_disk.end, &bytes[last..])] {
            if !part.is_empty() {
                self.pieces.put(at, part.to_vec());
            }
        }
    }

    /// Whose turn it is to fetch a range that this process has claimed: the processes of a machine share what is on its disk.
    pub(crate) fn turn(&self, range: &Range<u64>) -> Turn {
        match &self.disk {
            Some(disk) if disk.takes_more() => disk.turn(range),
            _ => Turn::Unknown,
        }
    }

    /// Whether all of the object may be here at a time.
    pub(crate) fn has_room(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::takes_more) || self.pieces.most() >= self.size
    }

    /// Whether all of the object may be here and stay.
    pub(crate) fn takes_all(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::takes_all) || self.pieces.most() >= self.size
    }

    /// Whether what is fetched stays until it is read again: all objects that this process reads fit on the disk and in memory.
    pub(crate) fn keeps_all(&self) -> bool {
        let on_disk = match &self.disk {
            Some(disk) if disk.takes_more() => *self.room.get_or_init(|| disk.room()),
            _ => 0,
        };
        total::total() <= on_disk.saturating_add(self.pieces.most())
    }

    /// Bytes that this process holds in memory, of all objects.
    pub(crate) fn memory(&self) -> u64 {
        self.pieces.most()
    }

    /// A range will be read: what of it is in memory is not dropped as what was read.
    pub(crate) fn want(&self, start: u64, size: u64) {
        self.pieces.want(start..start.saturating_add(size).min(self.size));
    }

    /// Of a range that is about to be read nothing leaves memory until this is dropped, however much it is.
    pub(crate) fn reading(&self, start: u64, size: u64) -> Reading<'_> {
        self.pieces.reading(start..start.saturating_add(size).min(self.size))
    }

    // Where each part of a range ends, and whether it is on disk.
    fn parts(&self, start: u64, end: u64) -> Vec<(u64, bool)> {
        let on_disk = self.disk.as_ref().map(|disk| disk.parts(start, end)).unwrap_or_default();
        let mut parts = Vec::new();
        let mut at = start;
        for part in on_disk {
            if at < part.start {
                parts.push((part.start, false));
            }
            parts.push((part.end, true));
            at = part.end;
        }
        if at < end {
            parts.push((end, false));
        }
        parts
    }
}

/// Rounded outwards to multiples of `unit`, and joined where they meet then.
fn rounded(ranges: Vec<Range<u64>>, unit: u64, size: u64) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        let end = range.end.checked_next_multiple_of(unit).unwrap_or(size).min(size);
        let range = range.start / unit * unit..end;
        match found.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => found.push(range),
        }
    }
    found
}

#[cfg(test)]
mod tests;
