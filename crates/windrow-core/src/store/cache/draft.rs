//! A file of the cache while it is made: nobody sees it before it is whole, and it takes no more than there is.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempPath;

use super::entry::{self, Note};
use super::listing::draft_prefix;
use super::space::Space;
use super::{BUFFER, Cache, HINT, hinted};
use crate::error::{Error, Kind, Result};
use crate::store::file::open_kept;
use crate::store::{Object, sync_folder};

/// A file of the cache while it is made: appended to, and changed at any place.
pub struct Draft {
    file: File,
    folder: PathBuf,
    buffer: Vec<u8>,
    /// Bytes that are in the file, without those in the buffer.
    put: u64,
    /// What it is to become; of a file without a name nothing.
    entry: Option<Pending>,
}

struct Pending {
    name: String,
    /// Dropped before the file goes: whoever lists in between counts the file once too often, never once too little.
    space: Space,
    /// Removes the file when it is dropped before the rename.
    path: TempPath,
    /// Why there was no space for it.
    refusal: Option<Error>,
}

impl Draft {
    /// A hidden file that is to become the entry `name` of a cache: others may read it, as the umask has it, for a cache may
    /// be shared.
    pub(super) fn to(cache: &Cache, name: &str) -> Result<Draft> {
        let failed = |e| Error::io("create a file in the cache", &cache.folder, e);
        let (file, path) = locked_file(&cache.folder, name).map_err(failed)?;
        let entry = Pending { name: name.to_string(), path, space: Space::of(cache), refusal: None };
        Ok(Draft { entry: Some(entry), ..Draft::new(file, &cache.folder) })
    }

    fn new(file: File, folder: &Path) -> Self {
        Draft { file, folder: folder.to_path_buf(), buffer: Vec::with_capacity(BUFFER), put: 0, entry: None }
    }

    /// An empty file beside this one that is gone when it is dropped: for what is appended to this one later.
    ///
    /// # Errors
    /// `Io`.
    pub fn spill(&self) -> Result<Draft> {
        let file = tempfile::tempfile_in(&self.folder)
            .map_err(|e| Error::io("create a file in the cache", &self.folder, e).hint(HINT))?;
        Ok(Draft::new(file, &self.folder))
    }

    /// Why there was no space for it, where that is so.
    pub fn take_refusal(&mut self) -> Option<Error> {
        self.entry.as_mut()?.refusal.take()
    }

    /// Makes it the entry, whole and on the disk, and opens that.
    ///
    /// # Errors
    /// `Config` when there is no space for it; `Io`.
    pub fn keep(mut self, note: Note) -> Result<Arc<dyn Object>> {
        let folder = self.folder.clone();
        let failed = |doing: &str, e| hinted(Error::io(doing, &folder, e));
        let body = self.size();
        let written = self.append(&note.bytes(body)).and_then(|()| self.put());
        written.map_err(|e| self.take_refusal().unwrap_or(e))?;
        let Draft { file, entry, .. } = self;
        let Some(Pending { name, path, space, .. }) = entry else {
            return Err(Error::new(Kind::Io, "a file without a name is not kept"));
        };
        file.sync_all().map_err(|e| failed("write the cache to disk", e))?;
        let kept = space.keep(&name, || path.persist(folder.join(&name)).map_err(|e| e.error));
        kept.map_err(|e| failed("rename a file of the cache", e))?;
        sync_folder(&folder).map_err(|e| failed("write the cache to disk", e))?;
        // Not by its name: another process may have made the same by now, or removed it.
        open_kept(file, &folder.join(&name), body)
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.put + self.buffer.len() as u64
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.put()?;
        }
        if bytes.len() >= BUFFER {
            return self.put_at_end(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends all of another one.
    ///
    /// # Errors
    /// `Io`.
    pub fn append_all(&mut self, other: &mut Draft) -> Result<()> {
        let mut part = vec![0; BUFFER];
        let mut at = 0;
        while at < other.size() {
            let size = (other.size() - at).min(BUFFER as u64) as usize;
            other.read_at(at, &mut part[..size])?;
            self.append(&part[..size])?;
            at += size as u64;
        }
        Ok(())
    }

    /// Reads what was written, to the end of `out`.
    ///
    /// # Errors
    /// `Io`.
    pub fn read_at(&mut self, start: u64, out: &mut [u8]) -> Result<()> {
        self.put()?;
        self.file.read_exact_at(out, start).map_err(|e| self.failed("read", e))
    }

    /// Writes over what was written.
    ///
    /// # Errors
    /// `Io`.
    pub fn write_at(&mut self, start: u64, bytes: &[u8]) -> Result<()> {
        self.put()?;
        self.file.write_all_at(bytes, start).map_err(|e| self.failed("write", e))
    }

    /// Cuts off what follows the first `size` bytes.
    ///
    /// # Errors
    /// `Io`.
    pub fn cut(&mut self, size: u64) -> Result<()> {
        self.put()?;
        self.file.set_len(size).map_err(|e| self.failed("shorten", e))?;
        if let Some(entry) = &mut self.entry {
            entry.space.shrink(self.put.saturating_sub(size));
        }
        self.put = size;
        Ok(())
    }

    fn put(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let done = self.put_at_end(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        done
    }

    fn put_at_end(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let size = bytes.len() as u64;
        let write = || self.file.write_all_at(bytes, self.put);
        let written = match &mut self.entry {
            None => write(),
            Some(entry) => entry.space.grow(size, write).map_err(|refusal| {
                entry.refusal = Some(refusal);
                Error::config("there is no space for it in the cache")
            })?,
        };
        written.map_err(|e| self.failed("write", e))?;
        self.put += size;
        Ok(())
    }

    fn failed(&self, doing: &str, cause: io::Error) -> Error {
        // A file without a name, or one whose name nobody will see: the folder tells more.
        Error::new(Kind::Io, format!("cannot {doing} a file of the cache"))
            .at(&self.folder)
            .caused_by(cause)
            .hint(HINT)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put().map_err(io::Error::other)
    }
}

/// An empty hidden file, locked by who writes it: what killed processes left has no lock.
fn locked_file(folder: &Path, name: &str) -> io::Result<(File, TempPath)> {
    let prefix = draft_prefix(name);
    loop {
        let mut builder = tempfile::Builder::new();
        builder.permissions(PermissionsExt::from_mode(0o666));
        let (file, path) = builder.prefix(&prefix).tempfile_in(folder)?.into_parts();
        // Between both, somebody may have taken it for left, and removed it.
        if entry::share(&file)? {
            return Ok((file, path));
        }
    }
}
