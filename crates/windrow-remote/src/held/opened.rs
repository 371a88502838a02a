//! The files of a copy, mapped. A granule is there once its sum is written; before its bytes are given away for the first time
//! they are compared with it, so what a crash, a disk or another program spoilt is missing, and never served.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_core::store::copies::Id;
use windrow_core::store::{Map, whole};
use xxhash_rust::xxh3::xxh3_64;

use super::GRANULE;
use super::bits::Bits;
use super::folder::{Files, Folder, Refusal};

pub(super) struct Opened {
    data: Map,
    sums: Map,
    data_id: Id,
    sums_id: Id,
    size: u64,
    /// Granules whose bytes were compared in this process, or written by it.
    here: Bits,
    /// The file system has no holes: it gave all of the room at once.
    is_solid: bool,
    /// Bytes that this process took of its share.
    taken: AtomicU64,
    /// Where a map does not hold on to the lock of its file.
    _locked: Option<File>,
}

impl Opened {
    pub(super) fn new(files: Files) -> Result<Opened, Refusal> {
        let Files { data, sums } = files;
        let meta = data.metadata()?;
        let size = meta.len();
        let is_solid = meta.blocks().saturating_mul(512) >= size;
        let no_memory = || Refusal::Failed(std::io::ErrorKind::OutOfMemory.into());
        let granules = size.div_ceil(GRANULE);
        let here = Bits::new(granules).ok_or_else(no_memory)?;
        let (data_id, sums_id) = (Id::of(&data)?, Id::of(&sums)?);
        let map = |file: &File, size: u64| {
            let refused = || std::io::Error::other("its files cannot be mapped");
            Map::of(file, size).ok_or_else(refused)
        };
        let (data_map, sums_map) = (map(&data, size)?, map(&sums, granules * 8)?);
        Ok(Opened {
            data: data_map,
            sums: sums_map,
            data_id,
            sums_id,
            size,
            here,
            is_solid,
            taken: AtomicU64::new(0),
            _locked: if cfg!(target_os = "linux") { None } else { Some(data) },
        })
    }

    /// Bytes of the disk that granules take which are not there yet.
    pub(super) fn price(&self, granules: Range<u64>) -> u64 {
        if self.is_solid {
            0
        } else {
            granules.filter(|granule| !self.here.get(*granule)).count() as u64 * GRANULE
        }
    }

    pub(super) fn add_taken(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn borrowed(&self, start: u64, size: usize) -> Option<&[u8]> {
        let end = start.checked_add(size as u64)?;
        let mut granule = start / GRANULE;
        while granule * GRANULE < end {
            if !self.here.get(granule) && !self.compare(granule) {
                return None;
            }
            granule += 1;
        }
        // Within the map, so it fits.
        self.data.bytes()?.get(start as usize..end as usize)
    }

    /// The parts of a range, which is not empty, that are there.
    pub(super) fn parts(&self, start: u64, end: u64) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        // Nothing is, once it is torn.
        if whole(|| self.data.bytes().is_none()) {
            return parts;
        }
        for granule in start / GRANULE..end.div_ceil(GRANULE) {
            if self.here.get(granule) || self.compare(granule) {
                let part = start.max(granule * GRANULE)..end.min((granule + 1) * GRANULE);
                match parts.last_mut() {
                    Some(last) if last.end == part.start => last.end = part.end,
                    _ => parts.push(part),
                }
            }
        }
        parts
    }

    /// Whether a granule's bytes have their sum.
    #[cold]
    fn compare(&self, granule: u64) -> bool {
        let is_right = whole(|| {
            let at = granule as usize * 8;
            let sum = self.sums.bytes()?.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
            Some(sum != 0 && sum_of(self.granule(granule)?) == sum)
        });
        let is_right = is_right == Some(true);
        if is_right {
            self.here.set(granule);
        }
        is_right
    }

    fn granule(&self, granule: u64) -> Option<&[u8]> {
        let start = granule * GRANULE;
        self.data.bytes()?.get(start as usize..self.size.min(start + GRANULE) as usize)
    }

    /// Writes whole granules from the granule `first` on.
    ///
    /// # Errors
    /// What the system says; `Changed` where the files are not those that are mapped.
    pub(super) fn write(&self, folder: &Folder, first: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let files = folder.open_again(self.data_id, self.sums_id)?;
        let granules = bytes.chunks(GRANULE as usize);
        let mut sums = Vec::with_capacity(granules.len() * 8);
        for granule in granules.clone() {
            sums.extend(sum_of(granule).to_le_bytes());
        }
        files.data.write_all_at(bytes, first * GRANULE)?;
        // After the bytes: only what has a sum is there.
        files.sums.write_all_at(&sums, first * 8)?;
        for (granule, written) in (first..).zip(granules) {
            // Some file systems show what is written to files opened later to those only.
            match whole(|| self.granule(granule).map(|found| found == written)) {
                Some(true) => self.here.set(granule),
                _ => return Err(Refusal::Changed),
            }
        }
        Ok(())
    }
}

/// 0 means that nothing is there.
fn sum_of(bytes: &[u8]) -> u64 {
    xxh3_64(bytes).max(1)
}
