//! Local files: mapped, or read by position. With `output` the only place that uses `std::fs`.

use std::fs::{self, File};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::allowance::{OPEN_FILES, Taken};
use super::file_system::FileSystem;
use super::map::Map;
use super::near::with_near_name;
use super::pages::Places;
use super::pipe::is_read_once;
use super::times::{changed_ns, modified_ns, since_1970};
use super::version::Version;
use super::{Entry, FolderId, Object, Store, Walked, walk};
use crate::error::{Error, Kind, Result};

/// How local files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// A memory map: one copy less, twice as fast for records of some kilobytes. A file that another program
    /// truncates is `Stale` to what reads it inside of [`whole`](super::whole), as windrow does; other reads end the
    /// process (SIGBUS). Files of other machines are read by position, and so are those beyond the number of maps that a
    /// program may have.
    #[default]
    #[serde(alias = "map")]
    Mmap,
    /// Positional reads: for files that others may truncate.
    Pread,
}

/// The files below one folder.
#[derive(Clone, Debug)]
pub struct Local {
    root: PathBuf,
    io: Io,
    outside: bool,
    cache_limit: Option<u64>,
}

impl Local {
    /// Files below `root`, mapped.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Local { root: root.into(), io: Io::default(), outside: false, cache_limit: None }
    }

    /// Reads files this way.
    #[must_use]
    pub fn io(mut self, io: Io) -> Self {
        self.io = io;
        self
    }

    /// Also opens keys that are absolute or lead outside the root.
    #[must_use]
    pub fn allow_outside(mut self, allow: bool) -> Self {
        self.outside = allow;
        self
    }

    /// Limits all of the cache to `bytes` bytes when something that is made of its files is added.
    #[must_use]
    pub fn cache_limit(mut self, bytes: Option<u64>) -> Self {
        self.cache_limit = bytes;
        self
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, key: &str) -> Result<PathBuf> {
        if key.contains('\0') {
            return Err(Error::config("a path with a NUL character").at(key.replace('\0', "\\0")));
        }
        let inside =
            Path::new(key).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if !inside && !self.outside {
            return Err(Error::config("the path leads outside the base folder")
                .at(key)
                .hint(format!("the base is {}; allow it with allow_outside", self.root.display())));
        }
        // Joining an absolute path gives that path.
        Ok(if key.is_empty() { self.root.clone() } else { self.root.join(key) })
    }
}

impl Store for Local {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        let path = self.path(key)?;
        let (file, meta) = open_file(&path).map_err(|e| named(not_text(e, &path), key, &path))?;
        log::debug!("reading {}, {} bytes", path.display(), meta.len());
        let may_map = self.io == Io::Mmap;
        let on = may_map.then(|| FileSystem::of(&file));
        let about = About { cache_limit: self.cache_limit, ..About::of(&meta, on) };
        // An empty file cannot be mapped.
        if may_map
            && meta.len() > 0
            && on != Some(FileSystem::Remote)
            && let Some(map) = Map::of(&file, meta.len())
        {
            return Ok(Arc::new(Mapped::new(path.display().to_string(), about, map, None)));
        }
        Ok(Arc::new(Opened::new(file, path, about, meta.len(), false)))
    }

    fn read_listed(&self, entry: &Entry, start: u64, out: &mut [u8]) -> Result<()> {
        let path = self.path(&entry.key)?;
        // What was listed is a regular file; where something else is in its place by now, the read fails.
        let file = open_only(&path).map_err(|e| not_text(e, &path))?;
        file.read_exact_at(out, start).map_err(|e| not_read(e, &path.display().to_string(), start))
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        let path = self.path(key)?;
        let meta = fs::metadata(&path).map_err(|e| named(Error::io("find it", &path, e), key, &path))?;
        Ok(Entry {
            key: key.to_string(),
            size: if meta.is_dir() { 0 } else { meta.len() },
            is_folder: meta.is_dir(),
            modified_ns: modified_ns(&meta),
            tag: None,
        })
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.walk_all(prefix)?.entries)
    }

    fn walk_all(&self, prefix: &str) -> Result<Walked> {
        let path = self.path(prefix)?;
        walk::walk(path.clone(), prefix).map_err(|e| named(e, prefix, &path))
    }

    fn display(&self, key: &str) -> String {
        if key.is_empty() {
            self.root.display().to_string()
        } else {
            self.root.join(key).display().to_string()
        }
    }

    fn above(&self, key: &str) -> Option<(Arc<dyn Store>, String)> {
        let path = self.path(key).ok()?.canonicalize().ok()?;
        let key = path.strip_prefix("/").ok()?.to_str()?.to_string();
        (!key.is_empty()).then(|| (Arc::new(Local::new("/")) as Arc<dyn Store>, key))
    }

    fn folder_id(&self, key: &str) -> Option<FolderId> {
        let meta = fs::metadata(self.path(key).ok()?).ok()?;
        let created_ns = meta.created().ok().and_then(since_1970);
        Some(FolderId { device: meta.dev(), inode: meta.ino(), created_ns })
    }
}

// The root is what somebody named; formats ask for what may be missing below it.
fn named(error: Error, key: &str, path: &Path) -> Error {
    if key.is_empty() { with_near_name(error, path) } else { error }
}

// A walk lists a name that is not UTF-8 with this character in place of the wrong bytes.
fn not_text(error: Error, path: &Path) -> Error {
    if path.to_string_lossy().contains(char::REPLACEMENT_CHARACTER) {
        Error::unsupported("a file name that is not UTF-8")
            .at(path)
            .hint("rename the file: data is named in UTF-8")
    } else {
        error
    }
}

fn open_only(path: &Path) -> Result<File> {
    // O_NONBLOCK: a pipe put in a data set's place must not hang the reader.
    const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0x4 };
    let opened = File::options().read(true).custom_flags(O_NONBLOCK).open(path);
    opened.map_err(|e| Error::io("open the file", path, e))
}

pub(super) fn open_file(path: &Path) -> Result<(File, fs::Metadata)> {
    let file = open_only(path)?;
    let meta = file.metadata().map_err(|e| Error::io("ask for the file's size", path, e))?;
    if !meta.is_file() {
        let what = if meta.is_dir() { "a folder" } else { "not a regular file" };
        let error = Error::unsupported(format!("expected a file, found {what}")).at(path);
        return Err(if is_read_once(path) {
            error.hint(
                "a pipe is read once, and files are read at any place: write it to a file first. `tokenize` reads lines from a pipe",
            )
        } else {
            error
        });
    }
    Ok((file, meta))
}

/// `size` bytes from `start`, or an error that says where the object ends.
pub(super) fn slice<'a>(bytes: &'a [u8], start: u64, size: usize, name: &str) -> Result<&'a [u8]> {
    usize::try_from(start)
        .ok()
        .and_then(|start| bytes.get(start..start.checked_add(size)?))
        .ok_or_else(|| ends_before(name, start, size, bytes.len() as u64))
}

fn ends_before(name: &str, start: u64, size: usize, end: u64) -> Error {
    Error::corrupt(format!("{size} bytes wanted at byte {start}, but the file ends at byte {end}"))
        .at(name)
        .byte(start)
}

fn shorter(name: &str, start: u64) -> Error {
    Error::new(Kind::Stale, "the file became shorter while it was read")
        .at(name)
        .byte(start)
        .hint("put a file in another's place by rename, and open the data again")
}

fn not_read(error: std::io::Error, name: &str, start: u64) -> Error {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => shorter(name, start),
        _ => Error::io("read the file", name, error),
    }
}

/// The first `size` bytes of a file of the cache. Its times tell when it was used, not what is in it, so it has none; what is
/// locked stays locked until the object is dropped, unless all open files are taken.
pub(super) fn open_kept(file: File, path: &Path, size: u64) -> Result<Arc<dyn Object>> {
    let meta = file.metadata().map_err(|e| Error::io("ask for the file's size", path, e))?;
    let on = FileSystem::of(&file);
    let about = About { modified_ns: None, changed_ns: None, ..About::of(&meta, Some(on)) };
    // A map holds on to the lock of its file on Linux, though the file is closed.
    let held = if cfg!(target_os = "linux") { Some(None) } else { OPEN_FILES.take().map(Some) };
    if size > 0
        && on != FileSystem::Remote
        && let Some(held) = held
        && let Some(map) = Map::of(&file, size)
    {
        let held = held.map(|taken| (file, taken));
        return Ok(Arc::new(Mapped::new(path.display().to_string(), about, map, held)));
    }
    Ok(Arc::new(Opened::new(file, path.to_path_buf(), about, size, true)))
}

/// What the system reported of a file when it was opened.
#[derive(Clone, Copy)]
struct About {
    modified_ns: Option<u64>,
    changed_ns: Option<u64>,
    inode: u64,
    size: u64,
    /// Where nobody asked yet, `None`.
    file_system: Option<FileSystem>,
    cache_limit: Option<u64>,
}

impl About {
    fn of(meta: &fs::Metadata, file_system: Option<FileSystem>) -> About {
        let (modified_ns, changed_ns) = (modified_ns(meta), changed_ns(meta));
        About { modified_ns, changed_ns, inode: meta.ino(), size: meta.len(), file_system, cache_limit: None }
    }

    fn version(&self, file_system: FileSystem) -> Option<Version> {
        let (Some(modified_ns), Some(changed_ns)) = (self.modified_ns, self.changed_ns) else { return None };
        let About { inode, size, .. } = *self;
        Some(Version { file_system, inode, size, modified_ns, changed_ns, is_expanded: false })
    }
}

struct Mapped {
    name: String,
    about: About,
    map: Map,
    places: Places,
    /// A file whose lock a map does not hold on to.
    _held: Option<(File, Taken)>,
}

impl Mapped {
    fn new(name: String, about: About, map: Map, held: Option<(File, Taken)>) -> Self {
        Mapped { name, about, map, places: Places::default(), _held: held }
    }

    /// Why there is nothing to read. A disk that cannot give a page raises the same signal as a file that ends before it.
    #[cold]
    fn lost(&self, start: u64) -> Error {
        match fs::metadata(&self.name) {
            Ok(meta) if meta.len() >= self.size() => {
                let what =
                    "a page of the file could not be read: its disk failed, or it was shorter for a while";
                Error::new(Kind::Stale, what)
                    .at(&self.name)
                    .byte(start)
                    .hint("open the data again; with @io=pread@ the system says what failed")
            }
            // A mount that has gone, for example.
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Error::io("read the file", &self.name, e),
            _ => shorter(&self.name, start),
        }
    }
}

impl Object for Mapped {
    fn size(&self) -> u64 {
        self.map.size() as u64
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn modified_ns(&self) -> Option<u64> {
        self.about.modified_ns
    }

    fn changed_ns(&self) -> Option<u64> {
        self.about.changed_ns
    }

    fn version(&self) -> Option<Version> {
        self.about.version(self.about.file_system?)
    }

    fn cache_limit(&self) -> Option<u64> {
        self.about.cache_limit
    }

    fn read<'a>(&'a self, start: u64, size: usize, _scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        match self.map.bytes() {
            Some(bytes) => slice(bytes, start, size, &self.name),
            None => Err(self.lost(start)),
        }
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.map.bytes()
    }

    fn touch(&self, start: u64, size: u64) {
        self.map.touch(start, size);
    }

    fn prefetch(&self, start: u64, size: u64) {
        // Read at random places, a file larger than memory would otherwise fill it with what lies around them.
        if start < self.size() && self.places.become_random(start, size) {
            self.map.read_at_random();
        }
        self.map.prefetch(start, size);
    }
}

/// The system copies what it reads at full speed to multiples of this number of bytes: to other places some processors copy
/// from its memory at a third of it.
const ALIGNED: usize = 64;

/// Reads of fewer bytes take no notice of it.
const LARGE: usize = 4096;

struct Opened {
    name: String,
    about: About,
    size: u64,
    handle: Handle,
    /// Of the cache: the time of its file is that of its last use.
    is_kept: bool,
}

/// How an object that is not mapped comes to its file.
enum Handle {
    Open {
        file: File,
        _taken: Taken,
    },
    /// Opened for each read: as many files are open as may be.
    ByPath(PathBuf),
}

impl Opened {
    fn new(file: File, path: PathBuf, about: About, size: u64, is_kept: bool) -> Self {
        let name = path.display().to_string();
        let handle = match OPEN_FILES.take() {
            Some(taken) => Handle::Open { file, _taken: taken },
            // From wherever the program may be by then.
            None => Handle::ByPath(std::path::absolute(&path).unwrap_or(path)),
        };
        Opened { name, about, size, handle, is_kept }
    }

    /// The file that is found at the path now, if it is still the one that was opened first.
    fn again(&self, path: &Path) -> Result<File> {
        let (file, meta) = open_file(path)?;
        let same = if self.is_kept {
            meta.ino() == self.about.inode
        } else {
            modified_ns(&meta) == self.about.modified_ns
        };
        if same && meta.len() == self.about.size {
            Ok(file)
        } else {
            Err(Error::new(Kind::Stale, "the file changed after it was opened: its size or time is another")
                .at(&self.name)
                .hint("open the data again"))
        }
    }

    fn check(&self, start: u64, size: usize) -> Result<()> {
        if start.checked_add(size as u64).is_some_and(|end| end <= self.size) {
            Ok(())
        } else {
            Err(ends_before(&self.name, start, size, self.size))
        }
    }
}

impl Object for Opened {
    fn size(&self) -> u64 {
        self.size
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn modified_ns(&self) -> Option<u64> {
        self.about.modified_ns
    }

    fn changed_ns(&self) -> Option<u64> {
        self.about.changed_ns
    }

    fn version(&self) -> Option<Version> {
        let file_system = match (self.about.file_system, &self.handle) {
            (Some(known), _) => known,
            (None, Handle::Open { file, .. }) => FileSystem::of(file),
            (None, Handle::ByPath(_)) => FileSystem::Other,
        };
        self.about.version(file_system)
    }

    fn cache_limit(&self) -> Option<u64> {
        self.about.cache_limit
    }

    fn prefetch(&self, start: u64, size: u64) {
        if let (Handle::Open { file, .. }, Some(size)) = (&self.handle, NonZeroU64::new(size)) {
            // A hint: whether the system takes it does not matter.
            let _ = rustix::fs::fadvise(file, start, Some(size), rustix::fs::Advice::WillNeed);
        }
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        // Compared before the buffer grows: a claimed size must not allocate.
        self.check(start, size)?;
        let slack = if size < LARGE { 0 } else { ALIGNED };
        let more = (size + slack).saturating_sub(scratch.len());
        let refused = |_| Error::memory(format!("{size} bytes")).at(&self.name).byte(start);
        scratch.try_reserve(more).map_err(refused)?;
        scratch.resize(scratch.len().max(size + slack), 0);
        let at = scratch.as_ptr().align_offset(ALIGNED).min(slack);
        let out = &mut scratch[at..at + size];
        self.read_into(start, out)?;
        Ok(out)
    }

    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<()> {
        self.check(start, out.len())?;
        let read = match &self.handle {
            Handle::Open { file, .. } => file.read_exact_at(out, start),
            Handle::ByPath(path) => self.again(path)?.read_exact_at(out, start),
        };
        read.map_err(|e| not_read(e, &self.name, start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_reads_are_placed_at_multiples_and_hold_the_bytes_that_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..40_000_u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(folder.path().join("x"), &bytes).unwrap();
        let object = Local::new(folder.path()).io(Io::Pread).open("x").unwrap();
        // As other reads leave it.
        let mut scratch = vec![7; 100];
        for (start, size) in [(0, 40_000), (1, 4096), (39_000, 1000), (17, 20_000), (0, 0), (5, 4095)] {
            let found = object.read(start as u64, size, &mut scratch).unwrap();
            assert_eq!(found, &bytes[start..start + size]);
            assert!(size < LARGE || found.as_ptr().addr().is_multiple_of(ALIGNED), "{size}");
        }
        assert!(object.read(1, 40_000, &mut scratch).is_err());
    }
}
