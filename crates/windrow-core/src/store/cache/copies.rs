//! Copies of objects of other machines: a folder each below `remote/`. Who fetches them fills them; here they are found, measured
//! and removed.
//!
//! Others may write to the same cache. So no link is followed below the cache folder, and what has another name is never touched.
//! Errors are what the system says, and `IsADirectory` for what is no regular file.

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::entry::is_free;

/// Below the cache folder: the copies, each named by 32 hexadecimal digits.
pub const REMOTE: &str = "remote";
/// The bytes of a copy. Whoever has it open holds a shared lock.
pub const DATA: &str = "data";
/// Checksums of the bytes that are there.
pub const SUMS: &str = "sums";
/// Which object it is of: JSON, with its `url`. Its time is when the copy was last opened.
pub const ABOUT: &str = "about.json";

/// No URL is longer.
const MOST_ABOUT: u64 = 1 << 16;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// The folder of one copy, or of all where no name is given; made where it is not there, if `make` says so.
pub fn open_folder(cache: &Path, name: Option<&str>, make: bool) -> io::Result<OwnedFd> {
    if make {
        DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
    }
    let mut folder = rustix::fs::openat(CWD, cache, FOLDER, Mode::empty())?;
    for name in [Some(REMOTE), name].into_iter().flatten() {
        folder = match open_below(&folder, name) {
            Err(Errno::NOENT) if make => match rustix::fs::mkdirat(&folder, name, Mode::RWXU) {
                Err(e) if e != Errno::EXIST => return Err(e.into()),
                _ => open_below(&folder, name)?,
            },
            opened => opened?,
        };
    }
    Ok(folder)
}

fn open_below(folder: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
}

/// A regular file of a folder, no link: to read and write it, or where that may not be, to read it.
pub fn open_at(folder: &OwnedFd, name: &str, make: bool) -> io::Result<File> {
    let how = if make { OFlags::CREATE } else { OFlags::empty() };
    match open_with(folder, name, OFlags::RDWR | how) {
        Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            open_with(folder, name, OFlags::RDONLY)
        }
        opened => opened,
    }
}

/// A regular file of a folder, no link, opened just so.
pub fn open_with(folder: &OwnedFd, name: &str, how: OFlags) -> io::Result<File> {
    // Without NONBLOCK a pipe in its place would be waited for.
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    Ok(file)
}

/// What a copy says of itself.
pub fn read_about(about: &File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    about.take(MOST_ABOUT).read_to_end(&mut text)?;
    Ok(text)
}

/// Which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(u64, u64);

impl Id {
    /// That of an opened one.
    pub fn of(file: &File) -> io::Result<Id> {
        file.metadata().map(|meta| Id(meta.dev(), meta.ino()))
    }
}

/// Removes a name, if that file has it.
pub fn remove_at(folder: &OwnedFd, name: &str, id: Id) -> io::Result<()> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "other systems have other types")]
    if (found.st_dev as u64, found.st_ino as u64) != (id.0, id.1) {
        return Ok(());
    }
    unlink(folder, name)
}

fn unlink(folder: &OwnedFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(e) if e != Errno::NOENT => Err(e.into()),
        _ => Ok(()),
    }
}

/// The name of each copy, the bytes of the disk that it takes, and when it was last opened. Folders of other names are none.
pub(super) fn list(cache: &Path) -> io::Result<Vec<(String, u64, SystemTime)>> {
    let remote = match open_folder(cache, None, false) {
        Ok(remote) => remote,
        // Nothing there, or something that is not ours, or another user's.
        Err(e) if is_other(&e) => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut found = Vec::new();
    for item in Dir::read_from(&remote)? {
        let item = item?;
        let Ok(name) = item.file_name().to_str() else { continue };
        if name.len() != 32 || !name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            continue;
        }
        // Removed meanwhile, or something else.
        let Ok(folder) = open_below(&remote, name) else { continue };
        let (bytes, used) = measured(&folder);
        found.push((name.to_string(), bytes, used));
    }
    Ok(found)
}

fn is_other(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotADirectory | NotFound | PermissionDenied)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "other systems have other types")]
fn measured(folder: &OwnedFd) -> (u64, SystemTime) {
    let (mut bytes, mut used) = (0, SystemTime::UNIX_EPOCH);
    for file in [DATA, SUMS, ABOUT] {
        let Ok(meta) = rustix::fs::statat(folder, file, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        // Of 512 bytes, whatever the file system's own blocks are.
        bytes += u64::try_from(meta.st_blocks).unwrap_or(0).saturating_mul(512);
        if file == ABOUT {
            let (seconds, ns) = (u64::try_from(meta.st_mtime), u32::try_from(meta.st_mtime_nsec));
            used += Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_nanos(ns.unwrap_or(0).into());
        }
    }
    (bytes, used)
}

/// Removes a copy that no process has open, and none used after `used`; whether it is gone.
pub(super) fn remove(cache: &Path, name: &str, used: Option<SystemTime>) -> io::Result<bool> {
    let remote = open_folder(cache, None, false)?;
    let folder = match open_below(&remote, name) {
        Err(Errno::NOENT) => return Ok(true),
        folder => folder?,
    };
    let data = match open_at(&folder, DATA, false) {
        Ok(data) => Some(data),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return Ok(false),
    };
    // The lock is held until the file is closed: whoever opens it meanwhile waits for that.
    let is_open = data.as_ref().is_some_and(|data| !is_free(data, Some(measured(&folder).1)));
    if is_open || used.is_some_and(|used| measured(&folder).1 > used) {
        return Ok(false);
    }
    // Sums first: what is left of a copy then, if this process ends here, has nothing in it.
    unlink(&folder, SUMS)?;
    if let Some(data) = &data {
        remove_at(&folder, DATA, Id::of(data)?)?;
    }
    unlink(&folder, ABOUT)?;
    // One that holds something else, or is being filled again, stays.
    let _ = rustix::fs::unlinkat(&remote, name, AtFlags::REMOVEDIR);
    Ok(true)
}

/// What a copy, last opened then, is of, and whether any process has it open; `None` where it is gone.
pub(super) fn described(cache: &Path, name: &str, used: SystemTime) -> Option<(String, bool)> {
    let folder = open_folder(cache, Some(name), false).ok()?;
    let about = open_with(&folder, ABOUT, OFlags::RDONLY).and_then(|about| read_about(&about));
    let about: serde_json::Value = serde_json::from_slice(&about.unwrap_or_default()).unwrap_or_default();
    let data = open_at(&folder, DATA, false);
    let is_open = data.is_ok_and(|data| !is_free(&data, Some(used)));
    Some((about["url"].as_str().unwrap_or_default().to_string(), is_open))
}
