//! One file of the cache: the bytes, then a note of what they were made from. Locked while it is open, dated when it was used.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::error::{Error, Kind, Result};
use crate::store::Object;
use crate::store::file::{open_file, open_kept};

/// Names of entries end so, after 16 digits or more: nothing else in the folder is ever removed.
pub(crate) const SUFFIX: &str = ".windrow";

/// At the end of the file: the size of the bytes, the size of the note, a hash of content, these eight.
const MAGIC: &[u8; 8] = b"windrow\x01";
const END: u64 = 32;
/// No path is longer.
const MOST_NOTE: u64 = 1 << 16;

/// What an entry says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// What it was made from, as that was called.
    pub(super) of: String,
    /// What it is, for people.
    pub(super) kind: String,
    /// The hash of the content that it is made from, where only that says whether it is still the same; else 0.
    pub(super) content: u64,
}

impl Note {
    pub fn new(of: &str, kind: &str, content: u64) -> Note {
        let path = std::path::absolute(of).ok().filter(|path| path.exists());
        let of = path.map_or_else(|| of.to_string(), |path| path.display().to_string());
        Note { of, kind: kind.to_string(), content }
    }

    /// What comes after `size` bytes.
    pub(super) fn bytes(&self, size: u64) -> Vec<u8> {
        let mut bytes = serde_json::json!({ "of": self.of, "kind": self.kind }).to_string().into_bytes();
        let note = bytes.len() as u64;
        bytes.extend([size, note, self.content].iter().flat_map(|n| n.to_le_bytes()));
        bytes.extend(MAGIC);
        bytes
    }

    /// The number of bytes before the note, and the note; `None` where there is none.
    pub(super) fn of_file(file: &File, size: u64) -> io::Result<Option<(u64, Note)>> {
        let Some(end) = size.checked_sub(END) else { return Ok(None) };
        let mut bytes = [0; END as usize];
        file.read_exact_at(&mut bytes, end)?;
        let [(Some(body), Some(length)), (Some(content), Some(_))] =
            [0, 16].map(|at| (number(&bytes, at), number(&bytes, at + 8)))
        else {
            return Ok(None);
        };
        let is_whole = length <= MOST_NOTE && body.checked_add(length) == Some(end);
        if !is_whole || !bytes.ends_with(MAGIC) {
            return Ok(None);
        }
        let mut text = vec![0; length as usize];
        file.read_exact_at(&mut text, body)?;
        let text: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let word = |name: &str| text[name].as_str().unwrap_or_default().to_string();
        Ok(Some((body, Note { of: word("of"), kind: word("kind"), content })))
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The entry of this name, opened, locked and dated; `None` where there is none, or it is just being removed, or
/// `is_wanted` says no of its note.
pub(super) fn open(
    folder: &Path,
    name: &str,
    is_wanted: impl FnOnce(&mut Note) -> Result<bool>,
) -> Result<Option<Arc<dyn Object>>> {
    let path = folder.join(name);
    let (file, meta) = match open_file(&path) {
        Ok(opened) => opened,
        Err(e) if e.kind() == Kind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let failed = |e| Error::io("read a file of the cache", &path, e);
    if !share(&file).map_err(failed)? {
        return Ok(None);
    }
    let Some((size, mut note)) = Note::of_file(&file, meta.len()).map_err(failed)? else {
        return Err(Error::corrupt("a file of the cache is damaged")
            .at(&path)
            .hint("delete it: it is made again"));
    };
    let content = note.content;
    if !is_wanted(&mut note)? {
        return Ok(None);
    }
    if note.content != content {
        settle(&path, meta.len());
    }
    // A cache that may only be read is used, too.
    let _ = file.set_modified(SystemTime::now());
    open_kept(file, &path, size).map(Some)
}

/// Takes the lock of whoever uses a file; `false` where it is being removed. It is held as long as the file is open or mapped.
pub(super) fn share(file: &File) -> io::Result<bool> {
    const TRIES: u32 = 50;
    for _ in 0..TRIES {
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            // Where a file system has no locks, a file that was used lately counts as open.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file.metadata()?.nlink() > 0),
        }
    }
    Ok(false)
}

/// Removes the file at `path` unless it is open anywhere, or was used after `used`; whether it is gone.
pub(super) fn remove_if_free(path: &Path, used: Option<SystemTime>) -> io::Result<bool> {
    let file = match open_to_lock(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e),
    };
    let meta = file.metadata()?;
    if !is_free(&file, meta.modified().ok()) {
        return Ok(false);
    }
    // By now another one may have taken its place, or it was used and closed.
    let same = fs::metadata(path).is_ok_and(|now| (now.ino(), now.dev()) == (meta.ino(), meta.dev()));
    if !same || used.is_some_and(|used| meta.modified().is_ok_and(|found| found > used)) {
        return Ok(false);
    }
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(true),
    }
}

/// Whether a file is open anywhere.
pub(super) fn is_open(path: &Path) -> io::Result<bool> {
    let file = open_to_lock(path)?;
    Ok(!is_free(&file, file.metadata()?.modified().ok()))
}

/// Whether a file, used last then, is open nowhere. Holds the lock afterwards, until the file is closed.
pub(super) fn is_free(file: &File, used: Option<SystemTime>) -> bool {
    const LATELY: Duration = Duration::from_secs(24 * 3600);
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        // Without locks, what was used lately counts as open.
        Err(TryLockError::Error(_)) => {
            used.and_then(|used| used.elapsed().ok()).is_some_and(|since| since > LATELY)
        }
    }
}

// Some network file systems lock a file against others only for those who may write to it.
fn open_to_lock(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path).or_else(|_| File::open(path))
}

/// Notes that inode and times are enough from now on. Where that cannot be written, the content is compared each time.
fn settle(path: &Path, size: u64) {
    if let Ok(file) = File::options().write(true).open(path) {
        let _ = file.write_all_at(&[0; 8], size - 16);
    }
}
