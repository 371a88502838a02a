//! Where inputs are: paths of this machine, and URLs, whose stores somebody else knows.

use std::path::Path;
use std::sync::Arc;

use windrow_core::output::files;
use windrow_core::store::{Below, Io, Local, Store, entry_if_there, is_url};
use windrow_core::{Error, Result};

/// Where URLs lead.
pub trait Stores {
    /// The store of a URL, and the key in it.
    ///
    /// # Errors
    /// `Unsupported` where none is read; what the store says of its options.
    fn at(&self, url: &Path) -> Result<(Arc<dyn Store>, String)>;
}

/// URLs are refused.
pub struct NoStores;

impl Stores for NoStores {
    fn at(&self, url: &Path) -> Result<(Arc<dyn Store>, String)> {
        Err(Error::unsupported("no store is known for a URL")
            .at(url)
            .hint("name a path of this machine; copy from the store with its own tools"))
    }
}

/// Paths and URLs alike.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a>(pub(crate) &'a dyn Stores);

impl Places<'_> {
    /// A store whose root is what is at the path, a folder or a file.
    pub(crate) fn root(self, path: &Path) -> Result<Arc<dyn Store>> {
        self.root_with(path, Io::default())
    }

    /// A store that reads by position and never maps: somebody may still write there.
    pub(crate) fn root_by_position(self, path: &Path) -> Result<Arc<dyn Store>> {
        self.root_with(path, Io::Pread)
    }

    fn root_with(self, path: &Path, io: Io) -> Result<Arc<dyn Store>> {
        if !is_url(path) {
            return Ok(Arc::new(Local::new(path).io(io)));
        }
        let (store, key) = self.0.at(path)?;
        Ok(Arc::new(Below::new(store, key)))
    }

    /// Whether anything is there.
    ///
    /// # Errors
    /// Any other failure of a store.
    pub(crate) fn has(self, path: &Path) -> Result<bool> {
        if is_url(path) {
            Ok(entry_if_there(self.root(path)?.as_ref(), "")?.is_some())
        } else {
            Ok(files::exists(path))
        }
    }

    /// Size in bytes of a file, where there is one.
    pub(crate) fn size(self, path: &Path) -> Option<u64> {
        if !is_url(path) {
            return files::size(path);
        }
        let entry = self.root(path).and_then(|store| store.entry("")).ok()?;
        (!entry.is_folder).then_some(entry.size)
    }
}
