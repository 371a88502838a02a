//! What is in the cache: entries and files on their way to it, for people and for whoever needs space.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::Cache;
use super::entry::{self, Note, SUFFIX};
use crate::error::{Error, Result};
use crate::store::file::open_file;
use crate::store::times::modified_ns;

/// Stands in the names of files that are being written.
const UNFINISHED: &str = ".windrow.tmp-";

/// The beginning of the name of a file that is to become `name`.
pub(super) fn draft_prefix(name: &str) -> String {
    format!(".{}{UNFINISHED}", name.strip_suffix(SUFFIX).unwrap_or(name))
}

/// A file of the cache.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) used: SystemTime,
    pub(super) is_unfinished: bool,
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
        let Some(is_unfinished) = kind_of_name(&name) else { continue };
        // Removed meanwhile, or not a file.
        let Ok(meta) = item.metadata() else { continue };
        let Ok(used) = meta.modified() else { continue };
        if meta.is_file() {
            found.push(Found { name, size: meta.len(), used, is_unfinished });
        }
    }
    Ok(found)
}

/// Whether a name is that of a file on its way, or of an entry; `None` for all others.
fn kind_of_name(name: &str) -> Option<bool> {
    let is_hex = |stem: &str| {
        let digits = stem.split('.').next().unwrap_or_default();
        digits.len() >= 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    match name.strip_suffix(SUFFIX) {
        Some(stem) => is_hex(stem).then_some(false),
        None => is_hex(name.strip_prefix('.')?.split_once(UNFINISHED)?.0).then_some(true),
    }
}

/// What is in the cache for something that was made once.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name of its file in the cache folder.
    pub name: String,
    /// What it was made from, as that was called then; empty where the file does not say.
    pub source: String,
    /// What it is: `expanded`, `converted`, `statistics`, …; `unfinished` while it is written.
    pub kind: String,
    /// Bytes that it takes.
    pub bytes: u64,
    /// When it was last opened, in nanoseconds since 1970.
    pub last_used_ns: u64,
    /// Whether any process has it open now.
    pub is_open: bool,
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
        let mut found = self.files()?;
        found.sort_by(|a, b| (b.used, &a.name).cmp(&(a.used, &b.name)));
        // What is removed meanwhile is not there.
        Ok(found.into_iter().filter_map(|file| described(&self.folder, file)).collect())
    }

    /// How many bytes it may take now, where it holds so many.
    pub fn limit(&self, held: u64) -> u64 {
        // The folder is made by the first entry; its disk is that of the one above.
        let there = self.folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        self.limit.bytes(there, held)
    }

    /// Removes all that is not open in any process, and what killed processes left.
    ///
    /// # Errors
    /// `Io` when a file cannot be removed.
    pub fn clear(&self) -> Result<Cleared> {
        let mut cleared = Cleared::default();
        for file in self.files()? {
            let path = self.folder.join(&file.name);
            match entry::remove_if_free(&path, None) {
                Ok(true) => {
                    cleared.removed += 1;
                    cleared.removed_bytes += file.size;
                }
                Ok(false) => cleared.left.extend(described(&self.folder, file)),
                Err(e) => return Err(Error::io("remove a file of the cache", &path, e)),
            }
        }
        Ok(cleared)
    }

    fn files(&self) -> Result<Vec<Found>> {
        files_in(&self.folder).map_err(|e| Error::io("list the cache folder", &self.folder, e))
    }
}

fn described(folder: &Path, file: Found) -> Option<Entry> {
    let path = folder.join(&file.name);
    let (opened, meta) = open_file(&path).ok()?;
    let note = Note::of_file(&opened, meta.len()).ok().flatten().map(|(_, note)| note);
    let Note { of, kind, .. } = match file.is_unfinished {
        true => Note::new("", "unfinished", 0),
        false => note.unwrap_or_else(|| Note::new("", "damaged", 0)),
    };
    let last_used_ns = modified_ns(&meta).unwrap_or(0);
    drop(opened);
    let is_open = entry::is_open(&path).ok()?;
    Some(Entry { name: file.name, source: of, kind, bytes: file.size, last_used_ns, is_open })
}
