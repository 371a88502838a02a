//! The only writer: growing files, whole files, renames, syncs and the lock. Nothing else here touches `std::fs`.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::disk::Disk;
use crate::error::{Error, Kind, Result};
use crate::format::FileRow;
use crate::store::{self, BlockSums};

/// Fewer, larger writes than this cost nothing and gain nothing.
const BUFFER: usize = 1 << 20;
/// From here on a copy costs more than a write of its own.
const LARGE: usize = 1 << 16;
/// Bytes that the system is told at once to bring to the disk.
const AHEAD: u64 = 8 << 20;

/// A file that is complete.
pub(super) struct Finished {
    /// Its size, hash and time. The name is left to the caller.
    pub(super) row: FileRow,
    /// The sums of its blocks that were not taken before, as they are stored.
    pub(super) sums: Vec<u8>,
}

impl Finished {
    /// Its row under this name. What windrow wrote is known by its hash, and needs no time.
    pub(super) fn row_called(self, name: impl Into<String>) -> FileRow {
        FileRow { name: name.into(), modified_ns: None, ..self.row }
    }
}

/// A file whose bytes the operating system has and the disk may lack.
pub(super) struct Unsynced {
    file: File,
    path: PathBuf,
}

impl Unsynced {
    #[cfg(test)]
    pub(super) fn new(file: File, path: PathBuf) -> Unsynced {
        Unsynced { file, path }
    }

    /// Waits until the disk has them.
    pub(super) fn sync(&self) -> Result<()> {
        sync(&self.file, &self.path, true)
    }
}

/// A file that grows by appending, hashed as it grows.
pub(super) struct Growing {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    size: u64,
    /// Bytes that the system was told to bring to the disk, or has brought there.
    begun: u64,
    hash: Box<Xxh3>,
    sums: BlockSums,
}

impl Growing {
    /// An empty file; what was there is gone.
    pub(super) fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = create(&path)?;
        Ok(Growing::new(path, file, 0, Box::new(Xxh3::new()), BlockSums::default()))
    }

    /// The first `size` bytes of a file that an earlier run left; what follows them is cut off.
    ///
    /// # Errors
    /// `Corrupt` when it is shorter.
    pub(super) fn resume(path: impl Into<PathBuf>, size: u64) -> Result<Self> {
        let path = path.into();
        let file = File::options()
            .read(true)
            .append(true)
            .open(&path)
            .map_err(|e| Error::io("open the file", &path, e))?;
        let found = file.metadata().map_err(|e| Error::io("ask for the file's size", &path, e))?.len();
        if found < size {
            return Err(Error::corrupt(format!("{found} bytes where a stopped run left {size}")).at(&path));
        }
        file.set_len(size).map_err(|e| Error::io("shorten the file", &path, e))?;
        let mut hash = Box::new(Xxh3::new());
        let mut sums = BlockSums::default();
        let mut bytes = vec![0; BUFFER];
        let mut at = 0;
        while at < size {
            let part = &mut bytes[..BUFFER.min(usize::try_from(size - at).unwrap_or(BUFFER))];
            file.read_exact_at(part, at).map_err(|e| Error::io("read the file", &path, e))?;
            hash.update(part);
            sums.update(part);
            at += part.len() as u64;
        }
        Ok(Growing::new(path, file, size, hash, sums))
    }

    fn new(path: PathBuf, file: File, size: u64, hash: Box<Xxh3>, sums: BlockSums) -> Self {
        Growing { path, file, buffer: Vec::with_capacity(BUFFER), size, begun: size, hash, sums }
    }

    /// Goes on behind the first `size` bytes, or begins where there are none.
    pub(super) fn at(path: impl Into<PathBuf>, size: u64) -> Result<Self> {
        if size == 0 { Self::create(path) } else { Self::resume(path, size) }
    }

    /// Appends.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let is_large = bytes.len() >= LARGE;
        if is_large || self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        self.size += bytes.len() as u64;
        if is_large {
            return self.put(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The sums of whole blocks that were not taken before, for files that are too large to keep all of theirs.
    pub(super) fn take_sums(&mut self) -> Vec<u8> {
        self.sums.take()
    }

    /// Size in bytes with what is not flushed yet.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Has the system begin to bring what was written to the disk, and waits for nothing: the next sync has little left
    /// to wait for. Only what a sync says is durable.
    pub(super) fn begin_sync(&mut self) {
        let written = self.size - self.buffer.len() as u64;
        if written - self.begun >= AHEAD {
            begin_sync(&self.file, self.begun, written - self.begun);
            self.begun = written;
        }
    }

    /// Hands everything to the operating system; whoever has what is given brings it to the disk.
    pub(super) fn unsynced(&mut self) -> Result<Unsynced> {
        self.flush()?;
        self.begun = self.size;
        let file = self.file.try_clone().map_err(|e| Error::io("open the file again", &self.path, e))?;
        Ok(Unsynced { file, path: self.path.clone() })
    }

    /// Hands everything to the operating system and, where `durable`, to the disk.
    pub(super) fn sync(&mut self, durable: bool) -> Result<()> {
        self.flush()?;
        sync(&self.file, &self.path, durable)?;
        if durable {
            self.begun = self.size;
        }
        Ok(())
    }

    /// Closes the file.
    pub(super) fn finish(mut self, durable: bool) -> Result<Finished> {
        self.sync(durable)?;
        Ok(self.complete()?.0)
    }

    /// Closes the file, which comes to the disk beside others.
    pub(super) fn finish_on(mut self, disk: &mut Disk) -> Result<Finished> {
        self.flush()?;
        // Closed once it is there: closing may ask a network disk, and nobody hears what it answers.
        let (finished, unsynced) = self.complete()?;
        disk.bring(unsynced)?;
        Ok(finished)
    }

    fn complete(self) -> Result<(Finished, Unsynced)> {
        let meta = self.file.metadata().map_err(|e| Error::io("ask for the file's size", &self.path, e))?;
        if meta.len() != self.size {
            return Err(Error::new(Kind::Io, format!("wrote {} bytes, found {}", self.size, meta.len()))
                .at(&self.path)
                .hint("does another program write to it?"));
        }
        let row = FileRow {
            name: String::new(),
            size: self.size,
            modified_ns: modified(&meta),
            xxh3: Some(hex(self.hash.digest())),
        };
        let unsynced = Unsynced { file: self.file, path: self.path };
        Ok((Finished { row, sums: self.sums.finish() }, unsynced))
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let done = self.put(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        done
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.sums.update(bytes);
        self.file.write_all(bytes).map_err(|e| Error::io("write the file", &self.path, e))
    }
}

#[cfg(target_os = "linux")]
fn begin_sync(file: &File, from: u64, size: u64) {
    let (Ok(from), Ok(size)) = (i64::try_from(from), i64::try_from(size)) else { return };
    // SAFETY: the descriptor is that of an open file, and no memory is handed over. What fails here fails in the sync.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), from, size, libc::SYNC_FILE_RANGE_WRITE) };
}

#[cfg(not(target_os = "linux"))]
fn begin_sync(_file: &File, _from: u64, _size: u64) {}

/// 16 hexadecimal digits.
pub(super) fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The hash of small things that decide a name.
pub(super) fn hash_of(text: &str) -> String {
    hex(xxh3_64(text.as_bytes()))
}

/// Writes a whole file under its own name.
pub(super) fn write(path: &Path, bytes: &[u8], durable: bool) -> Result<Finished> {
    let mut file = Growing::create(path)?;
    file.write(bytes)?;
    file.finish(durable)
}

/// Writes a whole file under its own name, which comes to the disk beside others.
pub(super) fn write_on(path: &Path, bytes: &[u8], disk: &mut Disk) -> Result<Finished> {
    let mut file = Growing::create(path)?;
    file.write(bytes)?;
    file.finish_on(disk)
}

/// A file that is being written by somebody else's writer.
pub(super) type Handle = File;

/// An empty file to write into; what was there is gone.
pub(super) fn create(path: &Path) -> Result<Handle> {
    File::create(path).map_err(|e| Error::io("create the file", path, e))
}

/// Brings a file to the disk that was not written from front to end; it is read again.
pub(super) fn finish(path: &Path, durable: bool) -> Result<Finished> {
    let size = fs::metadata(path).map_err(|e| Error::io("ask for the file's size", path, e))?.len();
    Growing::resume(path, size)?.finish(durable)
}

/// Writes over the bytes from `at` on in a file that is not visible yet; [`finish`] brings it to the disk.
pub(super) fn write_at(path: &Path, at: u64, bytes: &[u8]) -> Result<()> {
    let file = File::options().write(true).open(path).map_err(|e| Error::io("open the file", path, e))?;
    file.write_all_at(bytes, at).map_err(|e| Error::io("write the file", path, e))
}

/// Writes a whole file in place of another: a reader sees the old one or the new one.
pub(super) fn replace(path: &Path, bytes: &[u8], durable: bool) -> Result<FileRow> {
    let beside = path.with_extension("tmp");
    let written = write(&beside, bytes, durable)?;
    rename(&beside, path)?;
    Ok(written.row)
}

/// Writes a whole file in place of another that nobody sees; it comes to the disk beside others.
pub(super) fn replace_on(path: &Path, bytes: &[u8], disk: &mut Disk) -> Result<Finished> {
    let beside = path.with_extension("tmp");
    let written = write_on(&beside, bytes, disk)?;
    rename(&beside, path)?;
    Ok(written)
}

/// The same file under a second name; a copy where the file system gives no second names.
pub(super) fn link(from: &Path, to: &Path) -> Result<()> {
    fs::hard_link(from, to)
        .or_else(|_| fs::copy(from, to).map(|_| ()))
        .map_err(|e| Error::io(&format!("take over {}", from.display()), to, e))
}

/// Renames within one file system.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| Error::io(&format!("rename {} to it", from.display()), to, e))
}

/// Puts each of two paths in the other's place at once; `false` where the file system cannot.
pub(super) fn exchange(one: &Path, other: &Path) -> Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(e) => Err(Error::io("exchange it for the new one", other, e.into())),
    }
}

/// Makes a folder and those above it; whether the folder itself is new.
pub(super) fn make_folder(path: &Path) -> Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    fs::create_dir_all(path).map_err(|e| Error::io("make the folder", path, e))?;
    Ok(true)
}

/// Removes a file or a folder with all it holds; nothing there is fine.
pub(super) fn remove(path: &Path) -> Result<()> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Ok(()) };
    let done = if meta.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match done {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("remove it", path, e)),
        _ => Ok(()),
    }
}

/// Removes a folder if it holds nothing.
pub(super) fn remove_if_empty(path: &Path) {
    // A folder that holds something stays: that is what is wanted.
    let _ = fs::remove_dir(path);
}

/// Where a file is once links are followed; `None` where none can be found.
pub(super) fn real_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Whether anything is there, a broken link too.
pub(super) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Size in bytes of a file, where there is one.
pub(super) fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|m| m.len())
}

/// That the disk of a folder has room for what is to be written; where that cannot be known, writing tells.
///
/// # Errors
/// `Io`.
pub(super) fn enough_room(folder: &Path, needed: u64) -> Result<()> {
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
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
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
pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    fs::read(path).ok()
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path, durable: bool) -> Result<()> {
    match durable {
        true => store::sync_folder(path).map_err(|e| Error::io("bring the folder to the disk", path, e)),
        false => Ok(()),
    }
}

/// Brings a file to the disk, where that is asked for.
fn sync(file: &File, path: &Path, durable: bool) -> Result<()> {
    match durable {
        true => file.sync_all().map_err(|e| Error::io("bring it to the disk", path, e)),
        false => Ok(()),
    }
}

fn modified(meta: &fs::Metadata) -> Option<u64> {
    let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

/// Held while a task writes; the file is gone afterwards.
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock or says at once that somebody else has it.
    ///
    /// # Errors
    /// `Exists` when another run holds it.
    pub(super) fn take(path: PathBuf) -> Result<Self> {
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(|e| Error::io("create the lock file", &path, e))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::new(Kind::Exists, "another windrow is writing here")
                        .at(&path)
                        .hint("wait until it has ended, or write elsewhere"));
                }
                Err(TryLockError::Error(e)) => {
                    return Err(Error::io("lock the file", &path, e).hint(
                        "a file system without locks cannot be prepared on: write elsewhere and copy it",
                    ));
                }
            }
            // Its last holder may have removed the name between our opening and our locking.
            let held = file.metadata().map_err(|e| Error::io("ask for the lock file", &path, e))?;
            match fs::metadata(&path) {
                Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => {
                    return Ok(Lock { path, _file: file });
                }
                _ => continue,
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is still held, so that nobody removes another one's. A name that stays is harmless.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_early_is_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grown");
        let part: Vec<u8> = (0..3u32 << 20).map(|i| (i ^ (i >> 9)) as u8).collect();
        let mut file = Growing::create(&path).unwrap();
        for _ in 0..4 {
            file.write(&part).unwrap();
            file.write(b"small").unwrap();
            file.begin_sync();
        }
        // Never what is still in the buffer, and nothing twice.
        assert!((AHEAD..=fs::metadata(&path).unwrap().len()).contains(&file.begun));
        let begun = file.begun;
        file.begin_sync();
        assert_eq!(file.begun, begun);
        file.sync(true).unwrap();
        assert_eq!(file.begun, file.size());
        let mut file = Growing::resume(&path, 5 << 20).unwrap();
        assert_eq!(file.begun, 5 << 20);
        (0..3).for_each(|_| {
            file.write(&part).unwrap();
            file.begin_sync();
        });
        assert_eq!(file.begun, 14 << 20);
        let row = file.finish(true).unwrap().row;
        let mut want = [&part[..], b"small", &part].concat();
        want.truncate(5 << 20);
        (0..3).for_each(|_| want.extend_from_slice(&part));
        assert!(fs::read(&path).unwrap() == want);
        assert_eq!(row.xxh3, Some(hex(xxh3_64(&want))));
    }
}
