//! Locks of ranges of one file that the processes of a machine see. Those of a process that ended are free.

use std::fs::File;
use std::io;
use std::ops::Range;

/// Locks of one process. The child of a fork opens the file again: what it inherits is its parent's.
#[derive(Debug)]
pub struct RangeLocks(File);

impl RangeLocks {
    /// In a file that is open for writing. Nothing is written to it, and ranges may be anywhere.
    pub fn new(file: File) -> RangeLocks {
        RangeLocks(file)
    }

    /// Takes a range, which is not empty, if no other process has some of it; whether it did. Of one's own ranges none keeps
    /// another out.
    ///
    /// # Errors
    /// `Unsupported` where the system has no such locks; what it says.
    pub fn try_lock(&self, range: &Range<u64>) -> io::Result<bool> {
        match set(&self.0, true, range) {
            Ok(()) => Ok(true),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Gives a range back.
    pub fn unlock(&self, range: &Range<u64>) {
        // Whoever took it has a system that gives it back; the end of the process does so, too.
        let _ = set(&self.0, false, range);
    }
}

// They belong to the opened file, not to the process: that would lose all of them with the first file that it closes.
#[cfg(target_os = "linux")]
fn set(file: &File, is_taken: bool, range: &Range<u64>) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let place = |at: u64| i64::try_from(at).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = if is_taken { libc::F_WRLCK } else { libc::F_UNLCK } as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    (lock.l_start, lock.l_len) = (place(range.start)?, place(range.end - range.start)?);
    // SAFETY: the file is open, and the structure is read during the call alone.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn set(_: &File, _: bool, _: &Range<u64>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_are_one_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let file = File::options().create(true).truncate(false).write(true).open(folder.path().join("x"));
            RangeLocks::new(file.unwrap())
        };
        let (one, other) = (open(), open());
        let far = 1 << 62;
        assert!(one.try_lock(&(far..far + 10)).unwrap() && one.try_lock(&(20..30)).unwrap());
        let mut tried = [far - 1..far, far - 1..far + 1, far + 9..far + 10, far + 10..far + 11, 0..25]
            .map(|range| other.try_lock(&range).unwrap());
        assert_eq!(tried, [true, false, false, true, false]);
        one.unlock(&(far..far + 10));
        tried[0] = other.try_lock(&(far..far + 10)).unwrap();
        assert!(tried[0] && !other.try_lock(&(29..30)).unwrap());
        drop(one);
        assert!(other.try_lock(&(29..30)).unwrap());
    }
}
