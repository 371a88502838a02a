//! Files that grow by appending, with their hash and block checksums.

use std::fs::{self, File};
use std::io::Write;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::disk::Disk;
use super::handle::{Unsynced, create, sync};
use crate::error::{Error, Kind, Result};
use crate::manifest::{BlockChecksums, FileRow};

/// Fewer, larger writes than this cost nothing and gain nothing.
const BUFFER: usize = 1 << 20;
/// From here on a copy costs more than a write of its own.
const LARGE: usize = 1 << 16;
/// Bytes that the system is asked at once to write to the disk.
const AHEAD: u64 = 8 << 20;

/// A file that is complete.
pub struct Finished {
    /// Its size, hash and time. The name is left to the caller.
    pub row: FileRow,
    /// The sums of its blocks that were not taken before, as they are stored.
    pub sums: Vec<u8>,
}

impl Finished {
    /// Its row under this name. What windrow wrote is known by its hash, and needs no time.
    pub fn row_called(self, name: impl Into<String>) -> FileRow {
        FileRow { name: name.into(), modified_ns: None, ..self.row }
    }
}

/// A file that grows by appending, hashed as it grows.
pub struct Growing {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    size: u64,
    /// Bytes that the system was asked to write to the disk, or has written.
    begun: u64,
    hash: Box<Xxh3>,
    sums: BlockChecksums,
}

impl Growing {
    /// An empty file; what was there is gone.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = create(&path)?;
        Ok(Growing::new(path, file, 0, Box::new(Xxh3::new()), BlockChecksums::default()))
    }

    /// The first `size` bytes of a file that an earlier run left; what follows them is cut off.
    ///
    /// # Errors
    /// `Corrupt` when it is shorter.
    pub fn resume(path: impl Into<PathBuf>, size: u64) -> Result<Self> {
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
        let mut sums = BlockChecksums::default();
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

    fn new(path: PathBuf, file: File, size: u64, hash: Box<Xxh3>, sums: BlockChecksums) -> Self {
        Growing { path, file, buffer: Vec::with_capacity(BUFFER), size, begun: size, hash, sums }
    }

    /// Continues after the first `size` bytes, or begins where there are none.
    pub fn at(path: impl Into<PathBuf>, size: u64) -> Result<Self> {
        if size == 0 { Self::create(path) } else { Self::resume(path, size) }
    }

    /// Appends.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
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
    pub fn take_sums(&mut self) -> Vec<u8> {
        self.sums.take()
    }

    /// Size in bytes with what is not flushed yet.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Has the system begin to bring what was written to the disk, and waits for nothing: the next sync has little left
    /// to wait for. Only what a sync says is durable.
    pub fn begin_sync(&mut self) {
        let written = self.size - self.buffer.len() as u64;
        if written - self.begun >= AHEAD {
            begin_sync(&self.file, self.begun, written - self.begun);
            self.begun = written;
        }
    }

    /// Hands everything to the operating system; whoever has what is given brings it to the disk.
    pub fn unsynced(&mut self) -> Result<Unsynced> {
        self.flush()?;
        self.begun = self.size;
        let file = self.file.try_clone().map_err(|e| Error::io("open the file again", &self.path, e))?;
        Ok(Unsynced::new(file, self.path.clone()))
    }

    /// Hands everything to the operating system and, where `fsync`, to the disk.
    pub fn sync(&mut self, fsync: bool) -> Result<()> {
        self.flush()?;
        sync(&self.file, &self.path, fsync)?;
        if fsync {
            self.begun = self.size;
        }
        Ok(())
    }

    /// Closes the file.
    pub fn finish(mut self, fsync: bool) -> Result<Finished> {
        self.sync(fsync)?;
        Ok(self.complete()?.0)
    }

    /// Closes the file, which comes to the disk beside others.
    pub fn finish_on(mut self, disk: &mut Disk) -> Result<Finished> {
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
            ..FileRow::default()
        };
        let unsynced = Unsynced::new(self.file, self.path);
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
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The hash of small things that decide a name.
pub fn hash_of(what: impl AsRef<[u8]>) -> String {
    hex(xxh3_64(what.as_ref()))
}

fn modified(meta: &fs::Metadata) -> Option<u64> {
    let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
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
