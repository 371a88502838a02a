//! What lies below `remote/` of a cache: the copies of all objects, what they take, and their removal.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};

use super::folder::{ABOUT, DATA, Id, REMOTE, Refusal, SUMS, open_at, remove_at};

/// The copy of one object.
pub(super) struct Found {
    pub(super) name: String,
    /// Bytes of the disk that it takes.
    pub(super) bytes: u64,
    /// When it was last opened, in seconds since 1970.
    pub(super) used: i64,
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

fn remote(cache: &Path) -> io::Result<OwnedFd> {
    let cache = rustix::fs::openat(CWD, cache, FOLDER, Mode::empty())?;
    Ok(rustix::fs::openat(cache, REMOTE, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
}

/// All copies. Folders of other names are none, and are never touched.
pub(super) fn list(cache: &Path) -> io::Result<Vec<Found>> {
    let remote = match remote(cache) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        remote => remote?,
    };
    let mut found = Vec::new();
    for item in Dir::read_from(&remote)? {
        let item = item?;
        let Ok(name) = item.file_name().to_str() else { continue };
        if name.len() != 32 || !name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            continue;
        }
        // Removed meanwhile, or something else.
        let Ok(folder) = rustix::fs::openat(&remote, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) else {
            continue;
        };
        let (mut bytes, mut used) = (0, 0);
        for file in [DATA, SUMS, ABOUT] {
            if let Ok(meta) = rustix::fs::statat(&folder, file, AtFlags::SYMLINK_NOFOLLOW) {
                // Of 512 bytes, whatever the file system's own blocks are.
                bytes += u64::try_from(meta.st_blocks).unwrap_or(0).saturating_mul(512);
                used = used.max(if file == ABOUT { meta.st_mtime } else { 0 });
            }
        }
        found.push(Found { name: name.to_string(), bytes, used });
    }
    Ok(found)
}

/// Removes a copy that no process has open; whether it did.
pub(super) fn remove(cache: &Path, found: &Found) -> io::Result<bool> {
    let remote = remote(cache)?;
    let folder = rustix::fs::openat(&remote, &found.name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    let data = match open_at(&folder, DATA, false) {
        Ok(data) => Some(data),
        Err(Refusal::Absent) => None,
        Err(_) => return Ok(false),
    };
    if let Some(data) = &data
        && !is_free(data, found.used)
    {
        return Ok(false);
    }
    let now = rustix::fs::statat(&folder, ABOUT, AtFlags::SYMLINK_NOFOLLOW).map_or(0, |meta| meta.st_mtime);
    if now > found.used {
        return Ok(false);
    }
    // Sums first: what is left of a copy then, if this process ends here, has nothing in it.
    for name in [SUMS, DATA, ABOUT] {
        if name == DATA
            && let Some(data) = &data
        {
            remove_at(&folder, DATA, Id::of(data)?)?;
            continue;
        }
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Err(e) if e != rustix::io::Errno::NOENT => return Err(e.into()),
            _ => {}
        }
    }
    // One that holds something else, or is being filled again, stays.
    let _ = rustix::fs::unlinkat(&remote, &found.name, AtFlags::REMOVEDIR);
    Ok(true)
}

// Holds the lock afterwards, until the file is closed: whoever opens it meanwhile waits for that.
fn is_free(data: &File, used: i64) -> bool {
    const LATELY: Duration = Duration::from_secs(24 * 3600);
    match data.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        // Without locks, what was opened lately counts as open.
        Err(TryLockError::Error(_)) => {
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(used).unwrap_or(0));
            used.elapsed().is_ok_and(|since| since > LATELY)
        }
    }
}
