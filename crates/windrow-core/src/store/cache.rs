//! Files made once from an object and kept in the cache: named by what they were made from, visible by one rename.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::torn::whole_at_once;
use super::{Local, Object, Store, sync_folder};
use crate::error::{Error, Kind, Result};

/// Bytes held at a time.
pub(super) const BUFFER: usize = 64 << 10;

/// What a user can do about a cache that is full or in the wrong place.
const HINT: &str = "set WINDROW_CACHE to a folder with more space";

/// The file that was made from `object`, or that `make` makes now. `what` names the way it is made and its version:
/// another way is another file, and so is another path, size, time or end of the object.
///
/// # Errors
/// What `make` says; `Io` when the disk is full; `Config` when there is no place for a cache. Nothing is left behind then.
pub(crate) fn cached(
    object: &dyn Object,
    what: &str,
    make: impl FnOnce(&mut Draft) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    cached_in(&cache_folder()?, object, what, make)
}

/// The file that was made from `object`, or that `make` writes now: for arms, and whatever takes long to make.
///
/// It lies in the cache folder (`$WINDROW_CACHE`, else `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`) and appears there by
/// one rename. `what` names the way it is made and its version: another way is another file, and so is another path, size,
/// time or end of the object.
///
/// # Errors
/// What `make` says; `Io` when the disk is full; `Config` when there is no place for a cache. Nothing is left behind then.
pub fn made_once(
    object: &dyn Object,
    what: &str,
    make: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    cached(object, what, |draft| make(draft))
}

/// A hidden file that is to become `name`: others may read it, as the umask has it, for a cache may be shared.
pub(super) fn draft_in(folder: &Path, name: &str) -> io::Result<tempfile::NamedTempFile> {
    let prefix = format!(".{name}.tmp-");
    let mut builder = tempfile::Builder::new();
    builder.permissions(PermissionsExt::from_mode(0o666));
    builder.prefix(&prefix).tempfile_in(folder)
}

/// [`cached`], in a folder that is known.
pub(super) fn cached_in(
    folder: &Path,
    object: &dyn Object,
    what: &str,
    make: impl FnOnce(&mut Draft) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    let name = format!("{:016x}", cache_key(object, what)?);
    let store = Local::new(folder);
    match store.open(&name) {
        Err(e) if e.kind() == Kind::NotFound => {}
        there => return there,
    }
    let failed = |doing: &str, e| Error::io(doing, folder, e).hint(HINT);
    fs::create_dir_all(folder).map_err(|e| failed("create the cache folder", e))?;
    // Removed when it is dropped before the rename.
    let temporary = draft_in(folder, &name).map_err(|e| failed("create a file in the cache", e))?;
    let (file, path) = temporary.into_parts();
    let mut draft = Draft::new(file, folder);
    whole_at_once(|| make(&mut draft)).map_err(|e| match e.kind() {
        Kind::Io if e.hint_text().is_none() => e.hint(HINT),
        _ => e,
    })?;
    draft.put()?;
    draft.file.sync_all().map_err(|e| failed("write the cache to disk", e))?;
    path.persist(folder.join(&name)).map_err(|e| failed("rename a file of the cache", e.error))?;
    sync_folder(folder).map_err(|e| failed("write the cache to disk", e))?;
    store.open(&name)
}

/// Where the cache is: `$WINDROW_CACHE`, else `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`.
///
/// # Errors
/// `Config` when none of them is set.
pub(crate) fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("WINDROW_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("windrow")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/windrow")))
        .ok_or_else(|| {
            Error::config("this data needs a cache folder, and neither WINDROW_CACHE nor HOME is set")
                .field("WINDROW_CACHE")
        })
}

fn cache_key(object: &dyn Object, what: &str) -> Result<u64> {
    let mut hash = Xxh3::new();
    hash.update(what.as_bytes());
    let path = std::path::absolute(object.name()).unwrap_or_else(|_| PathBuf::from(object.name()));
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update(&object.size().to_le_bytes());
    let mut scratch = Vec::new();
    match object.modified_ns() {
        Some(time) => {
            hash.update(&time.to_le_bytes());
            // An edit may set the time back, and a link may lead elsewhere.
            hash.update(&object.changed_ns().unwrap_or(0).to_le_bytes());
            // The end of a gzip stream holds a checksum of its content.
            let part = object.size().min(4096);
            hash.update(object.read(object.size() - part, part as usize, &mut scratch)?);
        }
        // Where no time is known, the content itself tells two versions apart.
        None => {
            let mut at = 0;
            while at < object.size() {
                let part = (object.size() - at).min(BUFFER as u64);
                hash.update(object.read(at, part as usize, &mut scratch)?);
                at += part;
            }
        }
    }
    Ok(hash.digest())
}

/// A file of the cache while it is made: appended to, and changed at any place.
pub(crate) struct Draft {
    file: File,
    folder: PathBuf,
    buffer: Vec<u8>,
    /// Bytes that are in the file, without those in the buffer.
    put: u64,
}

impl Draft {
    fn new(file: File, folder: &Path) -> Self {
        Draft { file, folder: folder.to_path_buf(), buffer: Vec::with_capacity(BUFFER), put: 0 }
    }

    /// An empty file beside this one that is gone when it is dropped: for what is appended to this one later.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn spill(&self) -> Result<Draft> {
        let file = tempfile::tempfile_in(&self.folder)
            .map_err(|e| Error::io("create a file in the cache", &self.folder, e).hint(HINT))?;
        Ok(Draft::new(file, &self.folder))
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.put + self.buffer.len() as u64
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
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
    pub(crate) fn append_all(&mut self, other: &mut Draft) -> Result<()> {
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
    pub(crate) fn read_at(&mut self, start: u64, out: &mut [u8]) -> Result<()> {
        self.put()?;
        self.file.read_exact_at(out, start).map_err(|e| self.failed("read", e))
    }

    /// Writes over what was written.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_at(&mut self, start: u64, bytes: &[u8]) -> Result<()> {
        self.put()?;
        self.file.write_all_at(bytes, start).map_err(|e| self.failed("write", e))
    }

    /// Cuts off what follows the first `size` bytes.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn cut(&mut self, size: u64) -> Result<()> {
        self.put()?;
        self.file.set_len(size).map_err(|e| self.failed("shorten", e))?;
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
        self.file.write_all_at(bytes, self.put).map_err(|e| self.failed("write", e))?;
        self.put += bytes.len() as u64;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;

    fn object(bytes: &[u8]) -> Arc<dyn Object> {
        Memory::new().with("x", bytes).open("x").unwrap()
    }

    #[test]
    fn a_draft_is_appended_to_changed_and_cut() {
        let folder = tempfile::tempdir().unwrap();
        let made = cached_in(folder.path(), object(b"a").as_ref(), "test", |draft| {
            draft.append(b"0123456789")?;
            let mut part = [0; 3];
            draft.read_at(4, &mut part)?;
            assert_eq!(&part, b"456");
            draft.write_at(1, b"AB")?;
            draft.cut(6)?;
            let mut other = draft.spill()?;
            other.append(&[b'x'; BUFFER + 1])?;
            other.append(b"end")?;
            draft.append_all(&mut other)?;
            assert_eq!(draft.size(), 6 + BUFFER as u64 + 4);
            Ok(())
        });
        let made = made.unwrap();
        let bytes = made.mapped().unwrap();
        assert_eq!(&bytes[..7], b"0AB345x");
        assert_eq!(&bytes[bytes.len() - 4..], b"xend");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_there_is_not_made_again_and_what_differs_is() {
        let folder = tempfile::tempdir().unwrap();
        let made = |bytes: &[u8], what: &str| {
            let mut times = 0;
            cached_in(folder.path(), object(bytes).as_ref(), what, |draft| {
                times += 1;
                draft.append(b"x")
            })
            .unwrap();
            times
        };
        assert_eq!([made(b"a", "1"), made(b"a", "1"), made(b"b", "1"), made(b"a", "2")], [1, 0, 1, 1]);
    }

    #[test]
    fn what_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let error = cached_in(folder.path(), object(b"a").as_ref(), "1", |draft| {
            draft.append(b"x")?;
            Err(Error::corrupt("no"))
        });
        assert_eq!(error.err().unwrap().kind(), Kind::Corrupt);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
