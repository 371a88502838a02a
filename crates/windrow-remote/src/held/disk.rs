//! The copy of one object on disk, opened when it is first asked for and made when there is something to put.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use windrow_core::store::{Cache, is_full};

use super::folder::{Folder, Refusal};
use super::grain::{Grain, PAGE};
use super::opened::Opened;
use super::space::Share;
use super::turns::Turn;
use super::{Identity, Limits};

/// Larger objects have no copy: what is noted of each granule would take more than 32 MiB of memory.
const LARGEST: u64 = 1 << 44;

pub(super) struct Disk {
    folder: Folder,
    share: Share,
    /// No lock: the child of a fork finds it either there or not.
    opened: AtomicPtr<Opened>,
    /// Nothing is opened or written any more. What is opened is still read.
    is_off: AtomicBool,
    /// How often it was asked for and was not there.
    asked: AtomicU32,
}

impl Disk {
    /// `None` where nothing of this object is to be on disk.
    pub(super) fn new(identity: Identity, limits: &Limits) -> Option<Disk> {
        // Without a tag nobody knows whether what lies there is of this version.
        if identity.tag.is_empty() || identity.size == 0 || limits.disk == Some(0) {
            return None;
        }
        if identity.size > LARGEST {
            report(&Refusal::TooLarge(identity.size), &identity.url);
            return None;
        }
        let cache = Cache::new(limits.folder.clone(), limits.disk)
            .inspect_err(|e| report(&Refusal::NoFolder(e.to_string()), &identity.url))
            .ok()?;
        Some(Disk {
            folder: Folder::new(cache.folder().to_path_buf(), identity),
            share: Share::new(cache),
            opened: AtomicPtr::new(ptr::null_mut()),
            is_off: AtomicBool::new(false),
            asked: AtomicU32::new(0),
        })
    }

    #[inline]
    fn opened(&self) -> Option<&Opened> {
        // SAFETY: null, or from a box that is dropped with `self` alone, which is borrowed here.
        unsafe { self.opened.load(Ordering::Acquire).as_ref() }
    }

    /// Whether it may take more, as far as is known.
    pub(super) fn takes_more(&self) -> bool {
        !self.is_off.load(Ordering::Relaxed) && self.share.may_take()
    }

    /// Whether it may take all of the object, as far as is known.
    pub(super) fn takes_all(&self) -> bool {
        self.takes_more() && self.share.room() >= self.folder.identity().size
    }

    /// Whose turn it is to fetch a range; the copy is made for it, so that all processes find what one of them puts.
    pub(super) fn turn(&self, range: &Range<u64>) -> Turn {
        match self.found_or_made() {
            Some(_) => Turn::take(self.folder.cache(), self.folder.number(), range),
            None => Turn::Unknown,
        }
    }

    /// Bytes that this process may have on disk, of all objects.
    pub(super) fn room(&self) -> u64 {
        self.share.room()
    }

    #[inline]
    pub(super) fn borrowed(&self, start: u64, size: usize) -> Option<&[u8]> {
        self.opened()?.borrowed(start, size)
    }

    /// Copies a range that is there; whether it still was.
    pub(super) fn copy(&self, start: u64, out: &mut [u8]) -> bool {
        self.opened().is_some_and(|opened| opened.copy(&self.folder, start, out))
    }

    /// The parts of a range that are there and have their checksums, in order.
    pub(super) fn parts(&self, start: u64, end: u64) -> Vec<Range<u64>> {
        match self.found() {
            Some(opened) if start < end => opened.parts(&self.folder, start, end),
            _ => Vec::new(),
        }
    }

    /// Writes the sectors that are in these bytes, as far as there is room; gives the bytes that are there now.
    pub(super) fn put(&self, start: u64, bytes: &[u8]) -> Range<u64> {
        let nothing = start..start;
        let end = start + bytes.len() as u64;
        let size = self.folder.identity().size;
        let grain = Grain::of(size);
        let sector = grain.sector();
        let range = start.next_multiple_of(sector)..if end == size { size } else { end / sector * sector };
        if range.is_empty() || self.is_off.load(Ordering::Relaxed) {
            return nothing;
        }
        let granules = grain.granules(&range);
        let wanted = match self.found() {
            Some(opened) => opened.price(&self.folder, granules.clone()),
            None => grain.most_price(&granules),
        };
        let granted = self.share.take(wanted, PAGE);
        if granted == 0 && wanted > 0 {
            report(&Refusal::Full, &self.folder.path().display().to_string());
            return nothing;
        }
        let Some(opened) = self.found_or_made() else {
            self.share.wrote(granted, 0);
            return nothing;
        };
        // Up to the granule that finds no room. What is there by now is written once more, and paid for once more.
        let (until, used) = affordable(opened, &self.folder, granules, granted);
        opened.add_taken(used);
        let range = range.start..range.end.min(until * grain.granule());
        if range.is_empty() {
            self.share.wrote(granted, used);
            return nothing;
        }
        let part = &bytes[(range.start - start) as usize..(range.end - start) as usize];
        let written = self.write(opened, range.start, part);
        // Some of it may be there where it failed.
        self.share.wrote(granted, used);
        match written {
            Ok(()) => range,
            Err(refusal) => {
                self.turn_off(&refusal);
                nothing
            }
        }
    }

    fn write(&self, opened: &Opened, start: u64, bytes: &[u8]) -> Result<(), Refusal> {
        loop {
            match opened.write(&self.folder, start, bytes) {
                Err(Refusal::Failed(e)) if is_full(&e) && self.share.make_room() => {}
                done => return done,
            }
        }
    }

    // Opened, where it is there. Another process may make it at any time; it is looked for now and then.
    fn found(&self) -> Option<&Opened> {
        const NOW_AND_THEN: u32 = 16;
        self.opened().or_else(|| {
            let is_now = self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(NOW_AND_THEN);
            if is_now { self.open(false) } else { None }
        })
    }

    fn found_or_made(&self) -> Option<&Opened> {
        self.opened().or_else(|| self.open(true))
    }

    fn open(&self, make: bool) -> Option<&Opened> {
        if self.is_off.load(Ordering::Relaxed) {
            return None;
        }
        let opened = loop {
            match self.folder.open(make) {
                Err(Refusal::Failed(e)) if make && is_full(&e) && self.share.make_room() => {}
                opened => break opened.and_then(Opened::new),
            }
        };
        match opened {
            Ok(opened) => {
                let opened = Box::into_raw(Box::new(opened));
                let null = ptr::null_mut();
                if self.opened.compare_exchange(null, opened, Ordering::AcqRel, Ordering::Acquire).is_err() {
                    // SAFETY: it came from the box above, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(opened) });
                }
                self.opened()
            }
            Err(Refusal::Absent) if !make => None,
            Err(refusal) => {
                self.turn_off(&refusal);
                None
            }
        }
    }

    fn turn_off(&self, refusal: &Refusal) {
        self.is_off.store(true, Ordering::Relaxed);
        report(refusal, &self.folder.path().display().to_string());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let opened = *self.opened.get_mut();
        if !opened.is_null() {
            // SAFETY: it came from a box, and nobody borrows it any more.
            let opened = unsafe { Box::from_raw(opened) };
            self.share.close(opened.taken());
        }
    }
}

/// Up to which of these granules `bytes` bytes are enough, and how many they take.
fn affordable(opened: &Opened, folder: &Folder, granules: Range<u64>, bytes: u64) -> (u64, u64) {
    let all = opened.price(folder, granules.clone());
    if all <= bytes {
        return (granules.end, all);
    }
    let (mut until, mut used, mut too_far) = (granules.start, 0, granules.end);
    while until + 1 < too_far {
        let middle = until.midpoint(too_far);
        match opened.price(folder, granules.start..middle) {
            price if price <= bytes => (until, used) = (middle, price),
            _ => too_far = middle,
        }
    }
    (until, used)
}

/// Says once for each kind of reason why bytes go through memory.
fn report(refusal: &Refusal, at: &str) {
    if refusal.is_first() {
        windrow_core::warn!("{refusal}\n  at: {at}\n  hint: {}", refusal.hint());
    }
}
