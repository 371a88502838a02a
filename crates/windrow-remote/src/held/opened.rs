//! The files of a copy: mapped, or opened for each read where the process has all the maps that it may have. Sectors of a granule are
//! there once its mark says so; before their bytes are given away they are compared with its checksum, so what a crash, a disk or
//! another program spoilt is missing, and never served.

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
    /// Data and checksums; `None` where the files are opened for each read.
    maps: Option<(Map, Map)>,
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
        let maps = mapped(&data, &sums, grain);
        Ok(Opened {
            _locked: if cfg!(target_os = "linux") || maps.is_none() { None } else { Some(data) },
            maps,
            data_id,
            sums_id,
            grain,
            here,
            marking: PerProcess::default(),
            is_solid,
            taken: AtomicU64::new(0),
        })
    }

    // How it is read now; `None` where the files are gone.
    fn seen(&self, folder: &Folder) -> Option<Seen<'_>> {
        match &self.maps {
            Some((data, sums)) => Some(Seen::Maps(data, sums)),
            None => folder.open_again(self.data_id, self.sums_id).ok().map(Seen::Files),
        }
    }

    /// Bytes of the disk that granules take of which nothing is there yet, with what their marks take.
    pub(super) fn price(&self, folder: &Folder, granules: Range<u64>) -> u64 {
        if self.is_solid {
            return 0;
        }
        let Some(seen) = self.seen(folder) else { return self.grain.most_price(&granules) };
        let mut price = 0;
        let mut page = None;
        for granule in granules {
            if self.here.get(granule) || seen.mark(granule).is_some_and(|mark| mark.sectors != 0) {
                continue;
            }
            price += self.grain.granule();
            if page.replace(granule * MARK / PAGE) != Some(granule * MARK / PAGE)
                && !self.is_marked(&seen, granule)
            {
                price += PAGE;
            }
        }
        price
    }

    // Whether the page that has a granule's mark has any.
    fn is_marked(&self, seen: &Seen<'_>, granule: u64) -> bool {
        let start = granule * MARK / PAGE * PAGE;
        let end = (self.grain.count() * MARK).min(start + PAGE);
        seen.sums(start..end, |page| page.iter().any(|byte| *byte != 0)) == Some(true)
    }

    pub(super) fn add_taken(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn borrowed(&self, start: u64, size: usize) -> Option<&[u8]> {
        let (data, sums) = self.maps.as_ref()?;
        let end = start.checked_add(size as u64)?;
        if !self.has_all(&Seen::Maps(data, sums), start..end) {
            return None;
        }
        // Within the map, so it fits.
        data.bytes()?.get(start as usize..end as usize)
    }

    /// Copies a range that is there; whether it was.
    pub(super) fn copy(&self, folder: &Folder, start: u64, out: &mut [u8]) -> bool {
        let range = start..start + out.len() as u64;
        self.seen(folder).is_some_and(|seen| {
            self.has_all(&seen, range.clone())
                && seen.data(range, |bytes| out.copy_from_slice(bytes)).is_some()
        })
    }

    #[inline]
    fn has_all(&self, seen: &Seen<'_>, range: Range<u64>) -> bool {
        let mut granule = range.start / self.grain.granule();
        while granule * self.grain.granule() < range.end {
            if !self.here.get(granule) && !self.has(seen, granule, &range) {
                return false;
            }
            granule += 1;
        }
        true
    }

    #[cold]
    fn has(&self, seen: &Seen<'_>, granule: u64, range: &Range<u64>) -> bool {
        let wanted = self.grain.touched(granule, range);
        self.compared(seen, granule) & wanted == wanted
    }

    /// The parts of a range, which is not empty, that are there.
    pub(super) fn parts(&self, folder: &Folder, start: u64, end: u64) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        // Nothing is, once it is torn.
        let Some(seen) = self.seen(folder).filter(Seen::is_whole) else { return parts };
        for granule in self.grain.granules(&(start..end)) {
            let sectors =
                if self.here.get(granule) { self.grain.all(granule) } else { self.compared(&seen, granule) };
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

    /// The sectors of a granule that are there and whose bytes have their checksum.
    #[cold]
    fn compared(&self, seen: &Seen<'_>, granule: u64) -> u64 {
        let Some(Mark { sectors, sum }) = seen.mark(granule) else { return 0 };
        let all = self.grain.all(granule);
        if sectors == 0 || sectors & !all != 0 || self.sum(seen, granule, sectors) != Some(sum) {
            return 0;
        }
        if sectors == all {
            self.here.set(granule);
        }
        sectors
    }

    fn sum(&self, seen: &Seen<'_>, granule: u64, sectors: u64) -> Option<u64> {
        seen.data(self.grain.bytes(granule), |bytes| self.grain.sum(granule, sectors, bytes))
    }

    /// Writes whole sectors from byte `start` on.
    ///
    /// # Errors
    /// What the system says; `Changed` where the files are not those that are mapped.
    pub(super) fn write(&self, folder: &Folder, start: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let files = folder.open_again(self.data_id, self.sums_id)?;
        files.data.write_all_at(bytes, start)?;
        let range = start..start + bytes.len() as u64;
        let seen = match &self.maps {
            Some((data, sums)) => Seen::Maps(data, sums),
            None => Seen::Files(Files { data: files.data.try_clone()?, sums: files.sums.try_clone()? }),
        };
        // Some file systems show what is written to files opened later to those only.
        if seen.data(range.clone(), |found| found == bytes) != Some(true) {
            return Err(Refusal::Changed);
        }
        let granules = self.grain.granules(&range);
        let mut marks = Vec::with_capacity((granules.end - granules.start) as usize * MARK as usize);
        let _alone = self.marking.get().lock().unwrap_or_else(PoisonError::into_inner);
        for granule in granules.clone() {
            let (written, all) = (self.grain.touched(granule, &range), self.grain.all(granule));
            let sectors = if written == all { all } else { written | self.compared(&seen, granule) };
            let sum = self.sum(&seen, granule, sectors).ok_or(Refusal::Changed)?;
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

// `None` where they cannot be mapped, or not any more.
fn mapped(data: &File, sums: &File, grain: Grain) -> Option<(Map, Map)> {
    #[cfg(test)]
    if super::tests::by_position::has_no_maps() {
        return None;
    }
    Map::of(data, grain.bytes(grain.count() - 1).end).zip(Map::of(sums, grain.count() * MARK))
}

/// The files of a copy while they are read.
enum Seen<'a> {
    Maps(&'a Map, &'a Map),
    Files(Files),
}

impl Seen<'_> {
    // Nobody reads a map of which a part is gone.
    fn is_whole(&self) -> bool {
        match self {
            Seen::Maps(data, _) => whole(|| data.bytes().is_some()),
            Seen::Files(_) => true,
        }
    }

    fn data<T>(&self, range: Range<u64>, read: impl FnMut(&[u8]) -> T) -> Option<T> {
        match self {
            Seen::Maps(data, _) => of_map(data, range, read),
            Seen::Files(Files { data, .. }) => of_file(data, range, read),
        }
    }

    fn sums<T>(&self, range: Range<u64>, read: impl FnMut(&[u8]) -> T) -> Option<T> {
        match self {
            Seen::Maps(_, sums) => of_map(sums, range, read),
            Seen::Files(Files { sums, .. }) => of_file(sums, range, read),
        }
    }

    fn mark(&self, granule: u64) -> Option<Mark> {
        let range = granule * MARK..(granule + 1) * MARK;
        self.sums(range, |bytes| bytes.first_chunk().map(|bytes| Mark::of(*bytes)))?
    }
}

fn of_map<T>(map: &Map, range: Range<u64>, mut read: impl FnMut(&[u8]) -> T) -> Option<T> {
    whole(|| map.bytes()?.get(range.start as usize..range.end as usize).map(&mut read))
}

fn of_file<T>(file: &File, range: Range<u64>, mut read: impl FnMut(&[u8]) -> T) -> Option<T> {
    // A granule, or what is read at a time.
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start).ok()?;
    Some(read(&bytes))
}
