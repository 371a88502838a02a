//! Files made once from an object and kept in the cache: found by the version they were made from, visible by one rename,
//! bounded in size.

pub mod copies;
mod draft;
mod entry;
mod key;
mod limit;
mod listing;
mod space;
mod turn;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::draft::Draft;
pub(super) use self::entry::{Note, SUFFIX};
pub use self::listing::{Cleared, Entry, Held};

use self::key::Key;
use self::limit::Limit;
use self::turn::Turn;
use super::Object;
use super::home::at_home;
use super::torn::whole_at_once;
use crate::error::{Error, Kind, Result};

/// Bytes held at a time.
pub(super) const BUFFER: usize = 64 << 10;

/// What a user can do about a cache that is full or in the wrong place.
const HINT: &str = "set WINDROW_CACHE to a folder with more space";

/// The folder that holds what was made once (what compressed files expand to, series that were converted, tables, statistics) and
/// copies of what was fetched from other machines.
///
/// Entries are found by the version of the file they were made from, not by its path. All together, copies too, stay below a
/// limit: what was used least recently goes first, and nothing that is open in any process.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: Limit,
}

impl Cache {
    /// The one that the environment names: `$WINDROW_CACHE`, else `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`, of at
    /// most `$WINDROW_CACHE_LIMIT` bytes, else half of what is free on its disk and what it holds already.
    ///
    /// # Errors
    /// `Config` when no folder is known, or the limit is not a size.
    pub fn of_environment() -> Result<Cache> {
        Cache::new(None, None)
    }

    /// A cache in this folder, of at most `limit` bytes; what is not given, or is 0 bytes, is as the environment has it.
    ///
    /// # Errors
    /// As [`Cache::of_environment`].
    pub fn new(folder: Option<PathBuf>, limit: Option<u64>) -> Result<Cache> {
        let folder = folder.map_or_else(cache_folder, Ok)?;
        // From wherever the program may be by then.
        let folder = std::path::absolute(at_home(&folder)).unwrap_or(folder);
        Ok(Cache { folder, limit: Limit::of(limit)? })
    }

    /// One in this folder, with the usual limit.
    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Cache {
        Cache { folder: folder.to_path_buf(), limit: Limit::HalfOfFree }
    }

    /// Sets a limit in bytes.
    #[cfg(test)]
    pub(super) fn limited_to(self, bytes: u64) -> Cache {
        Cache { limit: Limit::Set(bytes), ..self }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that was made from `object`, or that `make` makes now: once, however many processes ask for it.
    pub(super) fn made(
        &self,
        object: &dyn Object,
        kind: &str,
        what: &str,
        make: impl FnOnce(&mut Draft) -> Result<()>,
    ) -> Result<Arc<dyn Object>> {
        let what = format!("{what}{}", if object.is_compared() { ", of compared blocks" } else { "" });
        let key = Key::of(object, kind, &what)?;
        if let Some(found) = self.open(&key.name(), |note| key.is_of(note, object))? {
            log::debug!("{}: {kind}, from the cache {}", object.name(), self.folder.display());
            return Ok(found);
        }
        self.create()?;
        let turn = Turn::take(&self.folder, &key.name());
        if turn.waited
            && let Some(found) = self.open(&key.name(), |note| key.is_of(note, object))?
        {
            return Ok(found);
        }
        let note = Note::new(object.name(), kind, key.content_to_verify(object)?);
        let mut draft = self.draft(&key.name()).map_err(hinted)?;
        let made = whole_at_once(|| make(&mut draft)).and_then(|()| key.check_unchanged(object));
        made.map_err(|error| match draft.take_refusal() {
            // Whoever wrote may have wrapped it.
            Some(refusal) => refusal.at(object.name()),
            None if error.kind() == Kind::Io => hinted(error),
            None => error,
        })?;
        draft.keep(note).map_err(|e| e.or_at(object.name()))
    }

    /// What is there under this name, if `is_wanted` says so of its note; locked until it is dropped.
    pub(super) fn open(
        &self,
        name: &str,
        is_wanted: impl FnOnce(&mut Note) -> Result<bool>,
    ) -> Result<Option<Arc<dyn Object>>> {
        entry::open(&self.folder, name, is_wanted)
    }

    /// An empty file that is to become the entry of this name.
    pub(super) fn draft(&self, name: &str) -> Result<Draft> {
        self.create()?;
        Draft::to(self, name)
    }

    fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.folder)
            .map_err(|e| hinted(Error::io("create the cache folder", &self.folder, e)))
    }
}

/// The file that was made from `object`, or that `make` makes now. `kind` says to people what it is, `what` the way it is made
/// and its version: another way is another file, and so is another version of the object.
///
/// # Errors
/// What `make` says; `Io` when the disk is full; `Config` when there is no place for a cache, or the file would be larger than
/// the limit leaves; `Stale` when the object changed meanwhile. Nothing is left behind then.
pub fn cached(
    object: &dyn Object,
    kind: &str,
    what: &str,
    make: impl FnOnce(&mut Draft) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    Cache::new(None, object.cache_limit())?.made(object, kind, what, make)
}

/// The file that was made from `object`, or that `make` writes now: for other crates, and whatever takes long to make.
///
/// It is kept in the cache folder (`$WINDROW_CACHE`, else `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`) and appears there
/// by one rename. `kind` says to people what it is, `what` the way it is made and its version: another way is another file,
/// and so is another version of the object, whichever path leads to it.
///
/// # Errors
/// What `make` says; `Io` when the disk is full; `Config` when there is no place for a cache, or the file would be larger than
/// the limit leaves; `Stale` when the object changed meanwhile. Nothing is left behind then.
pub fn made_once(
    object: &dyn Object,
    kind: &str,
    what: &str,
    make: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<Arc<dyn Object>> {
    cached(object, kind, what, |draft| make(draft))
}

/// Where the cache is: `$WINDROW_CACHE`, else `$XDG_CACHE_HOME/windrow`, else `~/.cache/windrow`.
///
/// # Errors
/// `Config` when none of them is set.
pub fn cache_folder() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("WINDROW_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("windrow")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/windrow")))
        .ok_or_else(|| {
            Error::config("this data needs a cache folder, and neither WINDROW_CACHE nor HOME is set")
                .field("WINDROW_CACHE")
        })
}

/// The error with what a user can do about it.
fn hinted(error: Error) -> Error {
    match (error.hint_text(), is_refused(&error)) {
        (Some(_), _) => error,
        (None, true) => error.hint("set WINDROW_CACHE to a folder that can be written"),
        (None, false) => error.hint(HINT),
    }
}

/// Whether the folder is the wrong one, however much space there is.
fn is_refused(error: &Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    let cause = error.cause().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| {
        matches!(cause.kind(), AlreadyExists | NotADirectory | PermissionDenied | ReadOnlyFilesystem)
    })
}

/// Whether a disk, or what a user may take of it, is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests;
