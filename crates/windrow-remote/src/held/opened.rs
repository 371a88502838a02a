//! The files of a copy, mapped. Sectors of a granule are there once its mark says so; before their bytes are given away they are
//! compared with its checksum, so what a crash, a disk or another program spoilt is missing, and never served.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use windrow_core::PerProcess;
use windrow_core::store::copies::Id;
use windrow_core::store::{Map, whole};

use super::bits::Bits;
use super::folder::{Files, Folder, Refusal};
use super::grain::{Grain, MARK, Mark, PAGE};

pub(super) struct Opened {
    data: Map,
    sums: Map,
    data_id: Id,
    sums_id: Id,
    grain: Grain,
    /// Granules that are whole, and whose bytes were compared in this process or written by it. Others are compared each time.
    here: Bits,
    /// Two writers of one granule would each leave out what the other one adds. Between processes they may: that is fetched again.
    marking: PerProcess<Mutex<()>>,
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
        let grain = Grain::of(size);
        let is_solid = meta.blocks().saturating_mul(512) >= size;
        let no_memory = || Refusal::Failed(std::io::ErrorKind::OutOfMemory.into());
        let here = Bits::new(grain.count()).ok_or_else(no_memory)?;
        let (data_id, sums_id) = (Id::of(&data)?, Id::of(&sums)?);
        let map = |file: &File, size: u64| {
            let refused = || std::io::Error::other("its files cannot be mapped");
            Map::of(file, size).ok_or_else(refused)
        };
        let (data_map, sums_map) = (map(&data, size)?, map(&sums, grain.count() * MARK)?);
        Ok(Opened {
            data: data_map,
            sums: sums_map,
            data_id,
            sums_id,
            grain,
            here,
            marking: PerProcess::default(),
            is_solid,
            taken: AtomicU64::new(0),
            _locked: if cfg!(target_os = "linux") { None } else { Some(data) },
        })
    }

    /// Bytes of the disk that granules take of which nothing is there yet, with what their marks take.
    pub(super) fn price(&self, granules: Range<u64>) -> u64 {
        if self.is_solid {
            return 0;
        }
        let mut price = 0;
        let mut page = None;
        for granule in granules {
            if self.here.get(granule) || self.mark(granule).is_some_and(|mark| mark.sectors != 0) {
                continue;
            }
            price += self.grain.granule();
            if page.replace(granule * MARK / PAGE) != Some(granule * MARK / PAGE) && !self.is_marked(granule)
            {
                price += PAGE;
            }
        }
        price
    }

    // Whether the page that has a granule's mark has any.
    fn is_marked(&self, granule: u64) -> bool {
        let start = granule * MARK / PAGE * PAGE;
        let end = (self.grain.count() * MARK).min(start + PAGE);
        let is_there = || {
            self.sums
                .bytes()?
                .get(start as usize..end as usize)
                .map(|page| page.iter().any(|byte| *byte != 0))
        };
        whole(is_there) == Some(true)
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
        let mut granule = start / self.grain.granule();
        while granule * self.grain.granule() < end {
            if !self.here.get(granule) && !self.has(granule, &(start..end)) {
                return None;
            }
            granule += 1;
        }
        // Within the map, so it fits.
        self.data.bytes()?.get(start as usize..end as usize)
    }

    #[cold]
    fn has(&self, granule: u64, range: &Range<u64>) -> bool {
        let wanted = self.grain.touched(granule, range);
        self.compared(granule) & wanted == wanted
    }

    /// The parts of a range, which is not empty, that are there.
    pub(super) fn parts(&self, start: u64, end: u64) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        // Nothing is, once it is torn.
        if whole(|| self.data.bytes().is_none()) {
            return parts;
        }
        for granule in self.grain.granules(&(start..end)) {
            let sectors =
                if self.here.get(granule) { self.grain.all(granule) } else { self.compared(granule) };
            for run in self.grain.runs(granule, sectors) {
                let part = start.max(run.start)..end.min(run.end);
                match parts.last_mut() {
                    _ if part.is_empty() => {}
                    Some(last) if last.end == part.start => last.end = part.end,
                    _ => parts.push(part),
                }
            }
        }
        parts
    }

    fn mark(&self, granule: u64) -> Option<Mark> {
        let at = granule as usize * MARK as usize;
        whole(|| self.sums.bytes()?.get(at..)?.first_chunk().map(|bytes| Mark::of(*bytes)))
    }

    /// The sectors of a granule that are there and whose bytes have their checksum.
    #[cold]
    fn compared(&self, granule: u64) -> u64 {
        let Some(Mark { sectors, sum }) = self.mark(granule) else { return 0 };
        let all = self.grain.all(granule);
        if sectors == 0 || sectors & !all != 0 {
            return 0;
        }
        if whole(|| self.bytes_of(granule).map(|bytes| self.grain.sum(granule, sectors, bytes))) != Some(sum)
        {
            return 0;
        }
        if sectors == all {
            self.here.set(granule);
        }
        sectors
    }

    fn bytes_of(&self, granule: u64) -> Option<&[u8]> {
        let Range { start, end } = self.grain.bytes(granule);
        self.data.bytes()?.get(start as usize..end as usize)
    }

    /// Writes whole sectors from byte `start` on.
    ///
    /// # Errors
    /// What the system says; `Changed` where the files are not those that are mapped.
    pub(super) fn write(&self, folder: &Folder, start: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let files = folder.open_again(self.data_id, self.sums_id)?;
        files.data.write_all_at(bytes, start)?;
        let range = start..start + bytes.len() as u64;
        // Some file systems show what is written to files opened later to those only.
        if whole(|| {
            self.data.bytes()?.get(range.start as usize..range.end as usize).map(|found| found == bytes)
        }) != Some(true)
        {
            return Err(Refusal::Changed);
        }
        let granules = self.grain.granules(&range);
        let mut marks = Vec::with_capacity((granules.end - granules.start) as usize * MARK as usize);
        let _alone = self.marking.get().lock().unwrap_or_else(PoisonError::into_inner);
        for granule in granules.clone() {
            let (written, all) = (self.grain.touched(granule, &range), self.grain.all(granule));
            let sectors = if written == all { all } else { written | self.compared(granule) };
            let sum = whole(|| self.bytes_of(granule).map(|bytes| self.grain.sum(granule, sectors, bytes)));
            let sum = sum.ok_or(Refusal::Changed)?;
            marks.extend(Mark { sectors, sum }.to_bytes());
        }
        // After the bytes: only what has a mark is there.
        files.sums.write_all_at(&marks, granules.start * MARK)?;
        for granule in granules {
            if self.grain.touched(granule, &range) == self.grain.all(granule) {
                self.here.set(granule);
            }
        }
        Ok(())
    }
}
