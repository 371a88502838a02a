//! Whole files, renames, folders and their syncs: the only place beside the store that touches `std::fs`.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::growing::{Finished, Growing};
use super::handle::Unsynced;
pub use super::handle::{Handle, create};
use crate::error::{Error, Kind, Result};
use crate::manifest::FileRow;
use crate::store;

/// Writes a whole file under its own name.
pub fn write(path: &Path, bytes: &[u8], fsync: bool) -> Result<Finished> {
    let mut file = Growing::create(path)?;
    file.write(bytes)?;
    file.finish(fsync)
}

/// Writes a whole file under its own name, which comes to the disk beside others.
pub fn write_on(path: &Path, bytes: &[u8], disk: &mut Disk) -> Result<Finished> {
    let mut file = Growing::create(path)?;
    file.write(bytes)?;
    file.finish_on(disk)
}

/// Brings a file to the disk that was not written from front to end; it is read again.
pub fn finish(path: &Path, fsync: bool) -> Result<Finished> {
    let size = fs::metadata(path).map_err(|e| Error::io("ask for the file's size", path, e))?.len();
    Growing::resume(path, size)?.finish(fsync)
}

/// Writes over the bytes from `at` on in a file that is not visible yet; [`finish`] brings it to the disk.
pub fn write_at(path: &Path, at: u64, bytes: &[u8]) -> Result<()> {
    let file = File::options().write(true).open(path).map_err(|e| Error::io("open the file", path, e))?;
    file.write_all_at(bytes, at).map_err(|e| Error::io("write the file", path, e))
}

/// Writes a whole file in place of another: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8], fsync: bool) -> Result<FileRow> {
    let beside = path.with_extension("tmp");
    let written = write(&beside, bytes, fsync)?;
    rename(&beside, path)?;
    Ok(written.row)
}

/// Writes a whole file in place of another that nobody sees; it comes to the disk beside others.
pub fn replace_on(path: &Path, bytes: &[u8], disk: &mut Disk) -> Result<Finished> {
    let beside = path.with_extension("tmp");
    let written = write_on(&beside, bytes, disk)?;
    rename(&beside, path)?;
    Ok(written)
}

/// Links a file under a second name; where the file system has no links, makes a copy, which is synced with the others.
pub fn link_on(from: &Path, to: &Path, disk: &mut Disk) -> Result<()> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    let copied = fs::copy(from, to).and_then(|_| File::open(to));
    let copy = copied.map_err(|e| Error::io(&format!("take over {}", from.display()), to, e))?;
    disk.bring(Unsynced::new(copy, to.to_path_buf()))
}

/// Gives a file its name where nothing has that name yet; `false` where something has. Its other name may stay.
pub fn link_new(from: &Path, to: &Path) -> Result<bool> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        // The file system gives no second names: whoever comes between the two steps shows the same bytes.
        Err(_) if exists(to) => Ok(false),
        Err(_) => rename(from, to).map(|()| true),
    }
}

/// Renames within one file system.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| Error::io(&format!("rename {} to it", from.display()), to, e))
}

/// Puts each of two paths in the other's place at once; `false` where the file system cannot.
pub fn exchange(one: &Path, other: &Path) -> Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(e) => Err(Error::io("exchange it for the new one", other, e.into())),
    }
}

/// Makes a folder and those above it; whether the folder itself is new.
pub fn make_folder(path: &Path) -> Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    fs::create_dir_all(path).map_err(|e| Error::io("make the folder", path, e))?;
    Ok(true)
}

/// Makes a folder that results become visible in: its name, and those of new folders above it, are synced to the disk.
pub fn make_folder_to_stay(path: &Path, fsync: bool) -> Result<bool> {
    let new: Vec<&Path> =
        path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    let is_new = make_folder(path)?;
    for folder in new {
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_folder(above, fsync)?;
    }
    Ok(is_new)
}

/// Removes a file or a folder with all it holds; nothing there is fine.
pub fn remove(path: &Path) -> Result<()> {
    let done = fs::symlink_metadata(path)
        .and_then(|found| if found.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) });
    match done {
        Err(e) if !is_absent(&e) => Err(Error::io("remove it", path, e)),
        _ => Ok(()),
    }
}

// Whether the system says that there is no such thing.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Removes a folder if it holds nothing.
pub fn remove_if_empty(path: &Path) {
    // A folder that holds something stays: that is what is wanted.
    let _ = fs::remove_dir(path);
}

/// Where a file is once links are followed; `None` where none can be found.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Whether anything is there, a broken link too.
pub fn exists(path: &Path) -> bool {
    is_there(path).unwrap_or(false)
}

/// Whether anything is there, where a wrong answer would lose data.
///
/// # Errors
/// `Io` where the system cannot say.
pub fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if is_absent(&e) => Ok(false),
        Err(e) => Err(Error::io("ask for it", path, e)),
    }
}

/// Size in bytes of a file, where there is one.
pub fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len())
}

/// That the disk of a folder has room for what is to be written; where that cannot be known, writing tells.
///
/// # Errors
/// `Io`.
pub fn enough_room(folder: &Path, needed: u64) -> Result<()> {
    let disk = rustix::fs::statvfs(folder).ok();
    match disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)) {
        Some(free) if free < needed => Err(Error::new(
            Kind::Io,
            format!("at least {needed} bytes are to be written, the disk has room for {free}"),
        )
        .at(folder)
        .hint("make room, write to another disk, or choose a narrower dtype")),
        _ => Ok(()),
    }
}

/// The names in a folder, sorted, with those that start with a dot; none where there is no folder.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list the folder", folder, e)),
    };
    let mut names = Vec::new();
    for item in listing {
        let item = item.map_err(|e| Error::io("list the folder", folder, e))?;
        names.push(item.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// All of a small file, where there is one.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    fs::read(path).ok()
}

/// All of a small file that is there.
///
/// # Errors
/// `NotFound`, `Io`.
pub fn read_what_is_there(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| Error::io("read the file", path, e))
}

/// Makes the names in a folder durable.
pub fn sync_folder(path: &Path, fsync: bool) -> Result<()> {
    if fsync {
        store::sync_folder(path).map_err(|e| Error::io("bring the folder to the disk", path, e))
    } else {
        Ok(())
    }
}
