//! What is in the cache: entries, files on their way to it, and copies, for people and for whoever needs space.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::entry::{self, Note, SUFFIX};
use super::{Cache, copies};
use crate::error::{Error, Result};
use crate::store::file::open_file;
use crate::store::times::since_1970;

/// Stands in the names of files that are being written.
const UNFINISHED: &str = ".windrow.tmp-";

/// The beginning of the name of a file that is to become `name`.
pub(super) fn draft_prefix(name: &str) -> String {
    format!(".{}{UNFINISHED}", name.strip_suffix(SUFFIX).unwrap_or(name))
}

/// Something of the cache.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) name: String,
    /// Bytes that it takes.
    pub(super) bytes: u64,
    pub(super) used: SystemTime,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Entry,
    /// A file on its way.
    Unfinished,
    /// The folder of an object of another machine.
    Copy,
}

impl Found {
    /// Removes it unless it is open anywhere, or was used after `used`; whether it is gone.
    pub(super) fn remove(&self, cache: &Path, used: Option<SystemTime>) -> io::Result<bool> {
        match self.what {
            What::Copy => copies::remove(cache, &self.name, used),
            _ => entry::remove_if_free(&cache.join(&self.name), used),
        }
    }
}

/// All that is in a cache.
pub(super) fn all_in(folder: &Path) -> io::Result<Vec<Found>> {
    let mut found = files_in(folder)?;
    let copies = copies::list(folder)?.into_iter();
    found.extend(copies.map(|(name, bytes, used)| Found { name, bytes, used, what: What::Copy }));
    Ok(found)
}

/// All files of a cache. Files of other names are not its own, and no folder is.
pub(super) fn files_in(folder: &Path) -> io::Result<Vec<Found>> {
    let items = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        items => items?,
    };
    let mut found = Vec::new();
    for item in items {
        let item = item?;
        let Ok(name) = item.file_name().into_string() else { continue };
        let Some(what) = what_of_name(&name) else { continue };
        // Removed meanwhile, or not a file.
        let Ok(meta) = item.metadata() else { continue };
        let Ok(used) = meta.modified() else { continue };
        if meta.is_file() {
            found.push(Found { name, bytes: meta.len(), used, what });
        }
    }
    Ok(found)
}

/// Whether a name is that of a file on its way, or of an entry; `None` for all others.
fn what_of_name(name: &str) -> Option<What> {
    let is_hex = |stem: &str| {
        let digits = stem.split('.').next().unwrap_or_default();
        digits.len() >= 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    match name.strip_suffix(SUFFIX) {
        Some(stem) => is_hex(stem).then_some(What::Entry),
        None => is_hex(name.strip_prefix('.')?.split_once(UNFINISHED)?.0).then_some(What::Unfinished),
    }
}

/// What is in the cache for something that was made once, or of an object that was fetched.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name of its file or folder in the cache folder.
    pub name: String,
    /// What it was made from, as that was called then, or the URL that it is of; empty where it does not say.
    pub source: String,
    /// What it is: `expanded`, `converted`, `statistics`, …; `fetched`; `unfinished` while it is written.
    pub kind: String,
    /// Bytes of the disk that it takes.
    pub bytes: u64,
    /// When it was last opened, in nanoseconds since 1970.
    pub last_used_ns: u64,
    /// Whether any process has it open now.
    pub is_open: bool,
}

/// What a cache holds, and how much it may.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Held {
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes of the disk that it takes.
    pub bytes: u64,
    /// Bytes that it may take.
    pub limit_bytes: u64,
    /// What is in it, the last used first.
    pub entries: Vec<Entry>,
}

/// What [`Cache::clear`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cleared {
    /// Entries that were removed.
    pub removed: u64,
    /// Bytes that they took.
    pub removed_bytes: u64,
    /// What is open, and was left.
    pub left: Vec<Entry>,
}

impl Cache {
    /// What is in it, the last used first.
    ///
    /// # Errors
    /// `Io` when the folder cannot be listed; one that is not there is empty.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut found = self.all()?;
        found.sort_by(|a, b| (b.used, &a.name).cmp(&(a.used, &b.name)));
        // What is removed meanwhile is not there.
        Ok(found.into_iter().filter_map(|found| described(&self.folder, found)).collect())
    }

    /// What is in it, how much that takes, and how much it may take.
    ///
    /// # Errors
    /// As [`Cache::entries`].
    pub fn held(&self) -> Result<Held> {
        let entries = self.entries()?;
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        Ok(Held { folder: self.folder.clone(), bytes, limit_bytes: self.limit(bytes), entries })
    }

    /// Removes all that is not open in any process, and what killed processes left.
    ///
    /// # Errors
    /// `Io` when something cannot be removed.
    pub fn clear(&self) -> Result<Cleared> {
        let mut cleared = Cleared::default();
        for found in self.all()? {
            match found.remove(&self.folder, None) {
                Ok(true) => {
                    cleared.removed += 1;
                    cleared.removed_bytes += found.bytes;
                }
                Ok(false) => cleared.left.extend(described(&self.folder, found)),
                Err(e) => {
                    return Err(Error::io("remove a file of the cache", self.folder.join(found.name), e));
                }
            }
        }
        Ok(cleared)
    }

    fn all(&self) -> Result<Vec<Found>> {
        all_in(&self.folder).map_err(|e| Error::io("list the cache folder", &self.folder, e))
    }
}

fn described(folder: &Path, found: Found) -> Option<Entry> {
    let Found { name, bytes, used, what } = found;
    let last_used_ns = since_1970(used).unwrap_or(0);
    if what == What::Copy {
        let (source, is_open) = copies::described(folder, &name, used)?;
        let (name, kind) = (format!("{}/{name}", copies::REMOTE), "fetched".to_string());
        return Some(Entry { name, source, kind, bytes, last_used_ns, is_open });
    }
    let path = folder.join(&name);
    let (opened, meta) = open_file(&path).ok()?;
    let note = Note::of_file(&opened, meta.len()).ok().flatten().map(|(_, note)| note);
    let Note { of, kind, .. } = match what {
        What::Unfinished => Note::new("", "unfinished", 0),
        _ => note.unwrap_or_else(|| Note::new("", "damaged", 0)),
    };
    drop(opened);
    let is_open = entry::is_open(&path).ok()?;
    Some(Entry { name, source: of, kind, bytes, last_used_ns, is_open })
}
