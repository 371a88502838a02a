//! One part by itself, by what its task says of it in the file beside it.

use windrow_core::format::Probe;
use windrow_core::format::write::PartFile;
use windrow_core::manifest::{FileRow, Part, PartRow};
use windrow_core::store::{entry_if_there, key, open_if_there};
use windrow_core::{Error, Result};

use super::files::Files;
use super::lengths::{AGAIN, WIDTH};
use super::names::{file_name, task_of};
use super::table::{Stored, Table};

/// Whether this file holds the values of a part: of its name, with what its task says beside it.
pub(super) fn is_one(probe: &Probe) -> bool {
    let Some(task) = task_of(key::name_of(&probe.key), PartFile::Values) else { return false };
    let beside = |what| key::below(key::folder_of(&probe.key), &file_name(task, what));
    let store = probe.store.as_ref();
    match open_if_there(store, &beside(PartFile::Manifest)) {
        Ok(Some(object)) => {
            // One that is damaged is one all the same, where the other files of a part are there.
            Part::read(object.as_ref()).is_ok()
                || entry_if_there(store, &beside(PartFile::Lengths)).is_ok_and(|entry| entry.is_some())
        }
        _ => false,
    }
}

/// The part that this file holds.
///
/// # Errors
/// As [`row`]; `Corrupt` when the files are not those that it says.
pub(super) fn open(probe: &Probe) -> Result<Files> {
    let (row, Said { task, stored, at }) = row(probe)?;
    let table = Table::new(&[row], stored).map_err(|e| e.at(at))?;
    let folder = key::folder_of(&probe.key).to_string();
    Ok(Files::new(probe.store.clone(), folder, task, table, stored))
}

/// What else the task of a part says.
pub(super) struct Said {
    task: u64,
    stored: Stored,
    /// Where it says so.
    at: String,
}

/// What the task of the part in this file says of it.
///
/// # Errors
/// `Corrupt` when that contradicts itself; `NotFound`; `Io`.
pub(super) fn row(probe: &Probe) -> Result<(PartRow, Said)> {
    let name = key::name_of(&probe.key);
    let folder = key::folder_of(&probe.key);
    let task = task_of(name, PartFile::Values).ok_or_else(|| {
        Error::not_found(format!(
            "expected a folder with windrow.json, or a part such as 000017.bin, found {name:?}"
        ))
        .at(probe.display())
    })?;
    let beside = key::below(folder, &file_name(task, PartFile::Manifest));
    let part = Part::read(probe.store.open(&beside)?.as_ref())?;
    let corrupt = |what: String, field: &str| {
        Error::corrupt(what).at(probe.store.display(&beside)).field(field).hint(AGAIN)
    };
    if part.task != task {
        return Err(corrupt(format!("it speaks of task {}, its name of {task}", part.task), "task"));
    }
    let stored = Stored::of(part.dtype, part.channels).map_err(|e| e.at(probe.store.display(&beside)))?;
    let values =
        row_of(&part, PartFile::Values).ok_or_else(|| corrupt(format!("{name} is not listed"), "files"))?;
    let lengths = row_of(&part, PartFile::Lengths)
        .ok_or_else(|| corrupt("no lengths are listed".to_string(), "files"))?;
    if part.records.checked_mul(WIDTH) != Some(lengths.size) {
        let (n, size) = (part.records, lengths.size);
        return Err(corrupt(format!("{size} bytes of lengths of {n} records, {WIDTH} bytes each"), "files"));
    }
    let hash = |row: &FileRow| {
        let hash = row.xxh3.as_deref().and_then(|text| u64::from_str_radix(text, 16).ok());
        hash.ok_or_else(|| corrupt(format!("expected the hash of {}, found none", row.name), "files"))
    };
    let row = PartRow {
        records: part.records,
        values: part.values,
        bytes: values.size,
        xxh3: hash(values)?,
        lengths_xxh3: hash(lengths)?,
    };
    Ok((row, Said { task, stored, at: probe.store.display(&beside) }))
}

/// What a part says of one of its files.
pub(super) fn row_of(part: &Part, what: PartFile) -> Option<&FileRow> {
    let name = file_name(part.task, what);
    part.files.iter().find(|row| key::name_of(&row.name) == name)
}
