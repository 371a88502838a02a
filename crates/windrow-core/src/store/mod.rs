//! Bytes by name and range.
//!
//! A store names its objects by key: a relative path with `/` between its parts. A format never builds a path and
//! never touches the file system; it asks a store.

pub mod ahead;
mod allowance;
mod below;
pub mod braces;
mod cache;
mod catalogue;
mod compression;
mod declared;
mod expand;
mod file;
mod file_system;
pub mod glob;
mod hidden;
mod home;
mod kept;
pub mod key;
mod map;
mod memory;
mod near;
mod noting;
mod pages;
mod pipe;
mod range_lock;
mod section;
mod size;
mod stream;
mod sync;
mod times;
mod torn;
mod traffic;
mod url;
mod version;
mod walk;

use std::sync::Arc;

pub use below::Below;
pub use cache::{Cache, Cleared, Entry as CacheEntry, Held as CacheHeld, made_once};
pub use cache::{Draft, cache_folder, cached, copies, is_full};
pub use catalogue::Catalogue;
pub use compression::{Compression, or_compressed, or_encoded, plain_name};
pub use declared::{Declared, DeclaredPart, DeclaredText, Parts as DeclaredParts};
pub use expand::{
    begins_to_expand, expanded_as, expanded_checked, expanded_head, expanded_stream, expanded_with, head_as,
    long_window, needs_window, unless_damaged,
};
pub use expand::{expand_to, expanded};
pub use file::{Io, Local};
pub use file_system::is_of_another_machine;
pub use hidden::{Walked, hidden_part, is_hidden, is_of_a_run, not_only_hidden, only_hidden, some_of};
pub use home::at_home;
pub use kept::changed_ns;
pub use kept::{if_kept, kept, modified_ns};
pub use map::Map;
pub use memory::Memory;
pub use near::with_near_name;
pub use noting::{Noted, Noting};
pub use pages::memory_for_pages;
pub use pipe::{Pipe, is_read_once};
pub use range_lock::RangeLocks;
pub use section::Section;
pub use size::parse_size;
pub use stream::Stream;
pub use sync::sync_folder;
pub use torn::{whole, whole_at_once};
pub use traffic::{StoreSet, Traffic};
pub use url::is_url;
pub use version::Version;

use crate::error::{Error, Result};
pub use crate::secrets::{text_without_secrets, without_secrets};

/// A place that holds objects: a folder, memory, a bucket.
pub trait Store: Send + Sync {
    /// Opens an object to read it at any place.
    ///
    /// # Errors
    /// `NotFound`; `Config` when the key leads outside the store; `Unsupported` for a folder, pipe or device; `Io`.
    fn open(&self, key: &str) -> Result<Arc<dyn Object>>;

    /// Opens an object returned by [`Store::walk`] or [`Store::entry`]. Its size is known then, so a store may wait with the
    /// rest until it is first read; if it has become another one by then, that read is `Stale`.
    ///
    /// # Errors
    /// As [`Store::open`].
    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        self.open(&entry.key)
    }

    /// Fills `out` with bytes from `start` on of an object that was listed, and keeps nothing open: for what each of thousands of
    /// files says of itself in a few bytes.
    ///
    /// # Errors
    /// As [`Store::open`] and [`Object::read`].
    fn read_listed(&self, entry: &Entry, start: u64, out: &mut [u8]) -> Result<()> {
        self.open_listed(entry)?.read_into(start, out)
    }

    /// Whether opening an object compares it with what is kept of it: then all files of a data set are opened with it, and
    /// what is wrong is reported at once.
    fn checks_when_opened(&self) -> bool {
        false
    }

    /// What lies directly at `key` (`""` is the root).
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn entry(&self, key: &str) -> Result<Entry>;

    /// All objects below `prefix` at any depth, sorted by key; what [`is_hidden`] is left out. Where a store has links, those
    /// to folders are followed, and no folder comes twice.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn walk(&self, prefix: &str) -> Result<Vec<Entry>>;

    /// Walks as [`Store::walk`] does, and gives what was left out, where the store knows it. A folder of hidden names alone has no entries.
    ///
    /// # Errors
    /// As [`Store::walk`].
    fn walk_all(&self, prefix: &str) -> Result<Walked> {
        Ok(Walked { entries: self.walk(prefix)?, hidden: Vec::new() })
    }

    /// All objects, asked of the store itself, whatever a manifest there lists; of a store on another machine with hidden ones.
    ///
    /// # Errors
    /// As [`Store::walk`]; `Unsupported` where a store lists nothing.
    fn walk_again(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.walk(prefix)
    }

    /// Whether [`Store::walk`] looks for a manifest first, and lists no more where that says what is there.
    fn walks_by_manifest(&self) -> bool {
        false
    }

    /// The objects below a folder that was listed, where the store keeps them as long as it is open and a manifest declares what was
    /// found in them.
    fn catalogue(&self, folder: &str) -> Option<Arc<Catalogue>> {
        let _ = folder;
        None
    }

    /// What a person calls the key: a path, a URL.
    fn display(&self, key: &str) -> String;

    /// Which folder is at `key`, where the store can tell it from another one that took its place.
    fn folder_id(&self, key: &str) -> Option<FolderId> {
        let _ = key;
        None
    }

    /// The store that holds what this one is part of, and what is at `key` there, where it is known: where a link leads to.
    fn above(&self, key: &str) -> Option<(Arc<dyn Store>, String)> {
        let _ = key;
        None
    }

    /// What it was asked for so far, in this process, where it counts that: a store of another machine does.
    fn traffic(&self) -> Option<Traffic> {
        None
    }

    /// With what the bytes of an object are packed, where its store reports it and its name does not show it: a Content-Encoding. The object
    /// is named as [`Object::name`] has it.
    fn encoding(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Bytes of announced reads that it holds in memory until they are read; of a store of another machine.
    fn room_ahead(&self) -> Option<u64> {
        None
    }

    /// Whether what is fetched stays here until it is read again, of data of `bytes` bytes; of a store of another machine.
    fn keeps(&self, bytes: u64) -> bool {
        let _ = bytes;
        false
    }

    /// The store that it notes the errors of: that one counts what it is asked for.
    fn wrapped(&self) -> Option<&Arc<dyn Store>> {
        None
    }

    /// The recorder of errors met while probing, where there is one.
    fn noted(&self) -> Option<&Noted> {
        None
    }
}

/// The identity of a folder of a store: it stays when what is below it changes, and another folder of its name has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderId {
    device: u64,
    inode: u64,
    /// In nanoseconds since 1970, where the file system says: an inode that was removed is given out again.
    created_ns: Option<u64>,
}

/// An object or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Size in bytes; 0 for a folder.
    pub size: u64,
    /// Holds other entries.
    pub is_folder: bool,
    /// When it was last changed, in nanoseconds since 1970, where the store knows.
    pub modified_ns: Option<u64>,
    /// What the store calls this version of it, where it does: an ETag, a generation, a commit.
    pub tag: Option<String>,
}

/// An opened object. Reads are positional: there is no cursor to share.
pub trait Object: Send + Sync {
    /// Size in bytes when it was opened.
    fn size(&self) -> u64;

    /// What a person calls it.
    fn name(&self) -> &str;

    /// When it was last changed, in nanoseconds since 1970, where the store knows.
    fn modified_ns(&self) -> Option<u64>;

    /// When its content, or a name or right of it, was last changed, in nanoseconds since 1970, where the store knows. The
    /// time above can be set back by whoever edits; this one cannot.
    fn changed_ns(&self) -> Option<u64> {
        None
    }

    /// Which version of which file it is, where the store knows; what is kept of it is found by that.
    fn version(&self) -> Option<Version> {
        None
    }

    /// What its store calls this version of it, where it does: an ETag, a generation, a commit. Another version has another.
    fn tag(&self) -> Option<&str> {
        None
    }

    /// Whether each block that is read of it is compared with its checksum. What is made of it is kept apart then: made without
    /// comparing, it could be made of damaged bytes.
    fn is_compared(&self) -> bool {
        false
    }

    /// Bytes that all of the cache may take when something that is made of it is added, where its opener set a limit.
    fn cache_limit(&self) -> Option<u64> {
        None
    }

    /// Exactly `size` bytes from `start`: borrowed from a map, or copied into `scratch`.
    ///
    /// # Errors
    /// `Corrupt` when the object ends before; `Io`.
    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]>;

    /// As many bytes as `out` takes, from `start`.
    ///
    /// # Errors
    /// As [`Object::read`].
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let mut scratch = Vec::new();
        out.copy_from_slice(self.read(start, out.len(), &mut scratch)?);
        Ok(())
    }

    /// All of it, where it is in memory anyway.
    fn mapped(&self) -> Option<&[u8]> {
        None
    }

    /// Whether it may stay open among thousands of others: it is in memory, or takes no file of this machine.
    fn may_stay_open(&self) -> bool {
        self.mapped().is_some()
    }

    /// Asks the processor to fetch bytes that are read next, where they are in memory anyway.
    fn touch(&self, start: u64, size: u64) {
        let _ = (start, size);
    }

    /// Asks the operating system for bytes that are read soon, where it can use that, and does not wait for them.
    fn prefetch(&self, start: u64, size: u64) {
        let _ = (start, size);
    }

    /// Has all of it near, where each read would ask another machine: for what is read in small pieces at random places,
    /// such as the index of a data set. Does nothing for what is near anyway, and for what is too large.
    ///
    /// # Errors
    /// As [`Object::read`].
    fn bring_near(&self) -> Result<()> {
        Ok(())
    }
}

/// The object at `key`, opened; `None` when nothing, or a folder, is there. Any other failure is an error.
///
/// # Errors
/// What [`Store::entry`] and [`Store::open`] say, but for what [is absent](Error::is_absent).
pub fn open_if_there(store: &dyn Store, key: &str) -> Result<Option<Arc<dyn Object>>> {
    match entry_if_there(store, key)? {
        Some(entry) if !entry.is_folder => store.open(key).map(Some),
        _ => Ok(None),
    }
}

/// What is at `key`; `None` when nothing is there. Any other failure is an error.
///
/// # Errors
/// What [`Store::entry`] says, but for what [is absent](Error::is_absent).
pub fn entry_if_there(store: &dyn Store, key: &str) -> Result<Option<Entry>> {
    match store.entry(key) {
        Ok(entry) => Ok(Some(entry)),
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

/// As many bytes as that, in memory at once.
///
/// # Errors
/// `Unsupported` for more than this machine can address.
pub fn at_once(size: u64) -> Result<usize> {
    usize::try_from(size).map_err(|_| Error::unsupported(format!("{size} bytes at once on this machine")))
}

/// Reads all of an object, refusing one larger than `most` bytes: for headers, lists and manifests.
///
/// # Errors
/// `Corrupt` when it is larger; what [`Object::read`] says.
pub fn read_small(object: &dyn Object, most: u64) -> Result<Vec<u8>> {
    if object.size() > most {
        return Err(Error::corrupt(format!("{} bytes where at most {most} are expected", object.size()))
            .at(object.name()));
    }
    let mut scratch = Vec::new();
    // Bounded above, so it fits.
    whole(|| Ok(object.read(0, object.size() as usize, &mut scratch)?.to_vec()))
}
