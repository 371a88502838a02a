//! A small file beside what else is in its folder: readers see the old one or the new one, whole.

use std::path::Path;

use super::absolute::absolute;
use super::{files, replaced, site};
use crate::error::{Error, Result};
use crate::manifest::{BlockChecksums, CHECKSUMS_FILE, Checksums, checksums_size, checksums_table};
use crate::store::{Local, open_if_there};

/// Writes a whole small file beside what else is there, in place of what has its name: it is seen whole, or not at all.
/// What a killed run leaves goes when the same file is written again.
///
/// ```
/// # use windrow_core::output::write_whole;
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("page.html");
/// write_whole(&path, b"old")?;
/// write_whole(&path, b"new")?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"new");
/// # Ok::<(), windrow_core::Error>(())
/// ```
///
/// # Errors
/// `Exists` when another run is writing it, and where a folder, device, pipe or socket has its name; `NotFound` without the folder
/// that it goes into; `Io`.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = absolute("write to", path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::config("expected the path of a file").at(path));
    };
    if !folder.is_dir() {
        return Err(Error::not_found("the folder that it goes into is not there").at(path));
    }
    replaced::file(&path)?;
    let (unfinished, _lock) = site::unfinished(folder, &name.to_string_lossy())?;
    let written = files::write(&unfinished, bytes, true)
        .and_then(|_| files::rename(&unfinished, &path))
        .and_then(|()| files::sync_folder(folder, true));
    if written.is_err() {
        // An error of tidying up would hide this one.
        let _ = files::remove(&unfinished);
    }
    written
}

/// Writes a whole small file of a data set as [`write_whole`] does, and its block checksums where its folder keeps them.
///
/// # Errors
/// As [`write_whole`]; `Corrupt` for block checksums that are none.
pub fn write_whole_and_checksums(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    write_whole(&folder.join(name), bytes)?;
    let Some(before) = open_if_there(&Local::new(folder), CHECKSUMS_FILE)? else { return Ok(()) };
    let before = Checksums::open(before)?;
    let mut files: Vec<(&str, u64)> = before.files().filter(|(of, _)| *of != name).collect();
    files.sort_unstable();
    let (mut text, mut scratch) = (Vec::new(), Vec::new());
    for (of, size) in &files {
        let Some((at, _)) = before.find(of) else { continue };
        text.extend_from_slice(before.stored(at, checksums_size(*size) as usize, &mut scratch)?);
    }
    let mut sums = BlockChecksums::default();
    sums.update(bytes);
    text.extend(sums.finish());
    files.push((name, bytes.len() as u64));
    text.extend(checksums_table(files));
    write_whole(&folder.join(CHECKSUMS_FILE), &text)
}
