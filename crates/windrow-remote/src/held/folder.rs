//! The folder of one object's copy: which it is, what it says of itself, and how its files are opened.
//!
//! Others may write to the same cache. So no link is followed below the cache folder, and what is found is compared with what
//! it should be before it is used.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use windrow_core::store::copies::{self, ABOUT, DATA, Id, REMOTE, SUMS, open_at, open_with, remove_at};
use windrow_core::store::is_of_another_machine;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::grain::{Grain, MARK};
use super::{Identity, is_elsewhere};

/// Others make, remove and replace what is in between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);
/// How the files of a copy are written; another number for another way.
const LAYOUT: u32 = 2;

/// Why there is no copy on disk.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It is not there, or not whole. Nothing is reported.
    Absent,
    Failed(io::Error),
    OtherMachine,
    /// Another program truncated it, removed it or took its place.
    Changed,
    TooLarge(u64),
    NoFolder(String),
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Absent => f.write_str("what is fetched is kept in memory only: the cache's folder is gone"),
            Refusal::Failed(e) => write!(f, "what is fetched is kept in memory only: the cache failed: {e}"),
            Refusal::OtherMachine => {
                f.write_str("what is fetched is kept in memory only: the cache is on a network mount")
            }
            Refusal::Changed => f.write_str(
                "what is fetched is kept in memory only: another program changed or removed the cache's files",
            ),
            Refusal::TooLarge(size) => {
                write!(f, "an object of {size} bytes is kept in memory only: it is too large for the cache")
            }
            Refusal::NoFolder(why) => write!(f, "what is fetched is kept in memory only: {why}"),
            Refusal::Full => f.write_str(
                "the cache has no more room: what is in it stays, and what else is fetched goes through memory",
            ),
        }
    }
}

impl Refusal {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Refusal::Changed => "remove the folder: it is made again",
            Refusal::TooLarge(_) => "split the file into several",
            Refusal::Full => {
                "set @cache_limit@ or WINDROW_CACHE_LIMIT to more, or WINDROW_CACHE or @cache@ to a folder with more space"
            }
            _ => "set WINDROW_CACHE or @cache@ to a folder on a local disk, or @cache_limit=0@ to use none",
        }
    }

    /// Whether it is the first of its kind in this process.
    pub(super) fn is_first(&self) -> bool {
        static TOLD: AtomicU32 = AtomicU32::new(0);
        let kind = match self {
            Refusal::Absent | Refusal::Failed(_) => 0,
            Refusal::OtherMachine => 1,
            Refusal::Changed => 3,
            Refusal::TooLarge(_) => 4,
            Refusal::NoFolder(_) => 5,
            Refusal::Full => 6,
        };
        TOLD.fetch_or(1 << kind, Ordering::Relaxed) >> kind & 1 == 0
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        // Links are not followed: what one leads to is not ours, whatever it is.
        let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        match error.kind() {
            io::ErrorKind::NotFound => Refusal::Absent,
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => Refusal::Changed,
            _ if is_link => Refusal::Changed,
            _ => Refusal::Failed(error),
        }
    }
}

/// The opened files of a copy, of their right sizes.
pub(super) struct Files {
    /// Locked for others that would remove it, as long as it is open or mapped.
    pub(super) data: File,
    pub(super) sums: File,
}

pub(super) struct Folder {
    cache: PathBuf,
    name: String,
    identity: Identity,
}

impl Folder {
    pub(super) fn new(cache: PathBuf, identity: Identity) -> Folder {
        let Identity { url, size, tag } = &identity;
        // What other versions of windrow kept in another way has another name, and goes when room is needed.
        let name = format!("{url}\n{size}\n{tag}\n{LAYOUT}");
        let name = format!("{:032x}", xxh3_128(name.as_bytes()));
        Folder { cache, name, identity }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.cache.join(REMOTE).join(&self.name)
    }

    /// The cache folder that it is in.
    pub(super) fn cache(&self) -> &Path {
        &self.cache
    }

    /// A number that hardly another object has.
    pub(super) fn number(&self) -> u64 {
        xxh3_64(self.name.as_bytes())
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its files; made where they are not there, if `make` says so.
    pub(super) fn open(&self, make: bool) -> Result<Files, Refusal> {
        // Nothing is made on another machine's disk.
        if make && is_elsewhere(&self.cache) {
            return Err(Refusal::OtherMachine);
        }
        let mut last = Refusal::Changed;
        for _ in 0..TRIES {
            match self.try_open(make) {
                Ok(Some(files)) => return Ok(files),
                Ok(None) => {}
                // A folder that somebody is just removing.
                Err(Refusal::Absent) if make => last = Refusal::Absent,
                Err(refusal) => return Err(refusal),
            }
            thread::sleep(PAUSE);
        }
        Err(last)
    }

    /// `None` where it has to be looked at again.
    fn try_open(&self, make: bool) -> Result<Option<Files>, Refusal> {
        let folder = copies::open_folder(&self.cache, Some(&self.name), make)?;
        if is_of_another_machine(&File::from(folder.try_clone()?)) {
            return Err(Refusal::OtherMachine);
        }
        if !self.is_ours(&folder, make)? {
            return Ok(None);
        }
        let Some(data) = self.open_data(&folder, make)? else { return Ok(None) };
        let sums = open_at(&folder, SUMS, make)?;
        let wanted = Grain::of(self.identity.size).count() * MARK;
        if sums.metadata()?.len() < wanted {
            if make {
                // What is added are zeros: not there.
                sums.set_len(wanted)?
            } else {
                return Err(Refusal::Absent);
            }
        }
        Ok(Some(Files { data, sums }))
    }

    /// The files again, to write to them: those that were opened first, and as they were.
    pub(super) fn open_again(&self, data: Id, sums: Id) -> Result<Files, Refusal> {
        let opened = || -> Result<Files, Refusal> {
            let folder = copies::open_folder(&self.cache, Some(&self.name), false)?;
            let write = |name| open_with(&folder, name, OFlags::RDWR);
            Ok(Files { data: write(DATA)?, sums: write(SUMS)? })
        };
        let files = match opened() {
            Err(Refusal::Absent) => return Err(Refusal::Changed),
            opened => opened?,
        };
        let is_same = Id::of(&files.data)? == data
            && Id::of(&files.sums)? == sums
            && files.data.metadata()?.len() == self.identity.size;
        if is_same { Ok(files) } else { Err(Refusal::Changed) }
    }

    // What the folder says of itself, which is written where it says nothing: then `false`, it is to be read once more.
    fn is_ours(&self, folder: &OwnedFd, make: bool) -> Result<bool, Refusal> {
        let about = open_at(folder, ABOUT, make)?;
        match serde_json::from_slice::<Identity>(&copies::read_about(&about)?) {
            Ok(found) if found == self.identity => {}
            _ if !make => return Err(Refusal::Absent),
            // One that somebody is just writing, or that a crash left: whatever it was to say, it says the same then. The folder's name is
            // a hash of this identity: another one in it is damage, and what is here may be of other data.
            found => {
                if found.is_ok() {
                    forget_all(&open_at(folder, SUMS, make)?)?;
                }
                let text = serde_json::to_vec_pretty(&self.identity).map_err(io::Error::from)?;
                about.write_all_at(&text, 0)?;
                about.set_len(text.len() as u64)?;
                return Ok(false);
            }
        }
        // Of a cache that may only be read, nobody removes anything either.
        let _ = about.set_modified(SystemTime::now());
        Ok(true)
    }

    fn open_data(&self, folder: &OwnedFd, make: bool) -> Result<Option<File>, Refusal> {
        let data = open_at(folder, DATA, make)?;
        let size = self.identity.size;
        if !make && data.metadata()?.len() != size {
            return Err(Refusal::Absent);
        }
        if make && data.metadata()?.len() == 0 {
            // Nobody has it mapped whom zeros could deceive: whoever has locks it.
            match data.try_lock() {
                Ok(()) if data.metadata()?.len() == 0 => grow(&data, size)?,
                Ok(()) => {}
                Err(TryLockError::Error(_)) => grow(&data, size)?,
                Err(TryLockError::WouldBlock) => {
                    // Somebody is just making it. Or it was truncated while it is used.
                    thread::sleep(PAUSE);
                }
            }
        }
        if !share(&data)? {
            return Ok(None);
        }
        let meta = data.metadata()?;
        if meta.len() == size {
            return Ok(Some(data));
        }
        // Never made longer: whoever has it mapped would read zeros in place of what is gone.
        remove_at(folder, DATA, Id::of(&data)?)?;
        Ok(None)
    }
}

/// Makes each sum that of nothing. Never shorter: others may have it mapped.
fn forget_all(sums: &File) -> io::Result<()> {
    let (zeros, size) = (vec![0; 64 << 10], sums.metadata()?.len());
    let mut at = 0;
    while at < size {
        let part = (size - at).min(zeros.len() as u64);
        sums.write_all_at(&zeros[..part as usize], at)?;
        at += part;
    }
    Ok(())
}

/// Gives a new file its size. Its last page, that maps look at, has room on the disk: where a file system in memory is full, a
/// hole cannot even be read.
fn grow(data: &File, size: u64) -> io::Result<()> {
    data.set_len(size)?;
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(data, rustix::fs::FallocateFlags::empty(), size - 1, 1) {
        Err(e) if e == rustix::io::Errno::NOSPC || e == rustix::io::Errno::DQUOT => return Err(e.into()),
        // Some file systems cannot, and do not need it.
        _ => {}
    }
    Ok(())
}

/// Takes the lock of whoever uses a file; `false` where it is being removed or made.
fn share(data: &File) -> io::Result<bool> {
    match data.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // Where a file system has no locks, what was used lately counts as used.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(data.metadata()?.nlink() > 0),
    }
}
