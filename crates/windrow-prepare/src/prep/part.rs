//! One part: whether it is there, and its files; and that those of all are whole.

use windrow_core::format::write::{PartFile, Parts};
use windrow_core::manifest::{FileRow, Part, PartRow};
use windrow_core::output::hex;
use windrow_core::store::{Object, entry_if_there, key, open_if_there};
use windrow_core::{Error, Kind, Result, Watch, check};
use xxhash_rust::xxh3::Xxh3;

use super::job::Job;
use super::place::Place;
use crate::write::PART;

/// The part of a task, where it is there, of this job, and its files have their sizes.
pub(super) fn part_of(place: &dyn Place, layout: &dyn Parts, job: &Job, task: u64) -> Result<Option<Part>> {
    let store = place.store();
    let Some(object) = open_if_there(store.as_ref(), &layout.file(task, PartFile::Manifest))? else {
        return Ok(None);
    };
    let part = match Part::read(object.as_ref()) {
        Ok(part) => part,
        // Somebody removed it, or is about to write it.
        Err(e) if e.kind() == Kind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    for file in &part.files {
        let name = key::below(layout.folder(), &file.name);
        match entry_if_there(store.as_ref(), &name)? {
            Some(entry) if entry.size == file.size => {}
            _ => return Ok(None),
        }
    }
    Ok((part.job == job.hash && part.task == task).then_some(part))
}

/// A file of a part as its manifest lists it: by its name in the folder of the parts.
pub(super) fn file_of<'p>(layout: &dyn Parts, part: &'p Part, what: PartFile) -> Option<&'p FileRow> {
    let name = name_of(layout, part.task, what);
    part.files.iter().find(|file| file.name == name)
}

/// The name of a file of a part, in the folder of the parts.
pub(super) fn name_of(layout: &dyn Parts, task: u64, what: PartFile) -> String {
    key::name_of(&layout.file(task, what)).to_string()
}

/// Bytes of an object that are there.
///
/// # Errors
/// `Memory`; what reading the object says.
pub(super) fn read_whole(object: &dyn Object, start: u64, size: u64) -> Result<Vec<u8>> {
    let too_large = || Error::memory(format!("{size} bytes"));
    let size = usize::try_from(size).map_err(|_| too_large())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| too_large())?;
    bytes.resize(size, 0);
    object.read_into(start, &mut bytes)?;
    Ok(bytes)
}

/// That the values of all parts are those that were written; their lengths are compared when they are read.
///
/// # Errors
/// `Corrupt` naming the file; `Interrupted`; `Io`.
pub(super) fn is_whole(
    place: &dyn Place,
    layout: &dyn Parts,
    rows: &[PartRow],
    watch: &dyn Watch,
) -> Result<()> {
    let store = place.store();
    for (task, row) in (0..).zip(rows) {
        let object = store.open(&layout.file(task, PartFile::Values))?;
        let (mut hash, mut scratch, mut at) = (Xxh3::new(), Vec::new(), 0);
        while at < object.size() {
            check(watch)?;
            let size = (object.size() - at).min(PART);
            hash.update(object.read(at, size as usize, &mut scratch)?);
            at += size;
        }
        if (at, hash.digest()) != (row.bytes, row.xxh3) {
            let found = hex(hash.digest());
            return Err(Error::corrupt(format!(
                "{at} bytes with hash {found}, the part's manifest says {} with {}",
                row.bytes,
                hex(row.xxh3)
            ))
            .at(object.name())
            .hint("remove the part, and run its task again"));
        }
    }
    Ok(())
}
