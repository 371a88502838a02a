//! Data behind URLs: which store, which key, and the options that go with it.

#[cfg(feature = "remote")]
use std::cell::RefCell;
#[cfg(feature = "remote")]
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::Result;
use windrow_core::format::{Options, Table};
use windrow_core::store::{Store, is_url};
use windrow_prepare::Stores as _;
#[cfg(feature = "remote")]
use windrow_remote::{Location, Remote};

use crate::opening::formats::formats;

/// Where a URL leads.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: String,
    /// The URL, with the commit in a revision's place: opened again, it is the same data.
    pub(crate) url: PathBuf,
}

/// How a store is asked.
#[cfg(feature = "remote")]
pub(crate) fn of_store(options: &Options) -> windrow_remote::Options {
    let usual = windrow_remote::Options::default();
    windrow_remote::Options {
        store: options.store_options.clone(),
        cache: options.cache.clone(),
        cache_limit: options.cache_limit,
        read_ahead: options.read_ahead.unwrap_or(usual.read_ahead),
        timeout: options.timeout.unwrap_or(usual.timeout),
    }
}

/// Bytes of what is fetched that this process can hold at a time.
#[cfg(feature = "remote")]
pub(crate) fn room(options: &Options) -> u64 {
    of_store(options).room()
}

/// Bytes of it that this process can hold in memory.
#[cfg(feature = "remote")]
pub(crate) fn memory(options: &Options) -> u64 {
    of_store(options).read_ahead
}

/// Puts an object in place of what is there; whether the path is a URL.
#[cfg(feature = "remote")]
pub(crate) fn put(path: &Path, options: &Options, bytes: &[u8]) -> Result<bool> {
    use windrow_core::store::Memory;

    let Some(location) = location(path)? else { return Ok(false) };
    let object = Memory::new().with("object", bytes).open("object")?;
    Remote::new(&location, of_store(options))?.put(&location.key, object, true)?;
    Ok(true)
}

/// This build writes to no stores.
#[cfg(not(feature = "remote"))]
pub(crate) fn put(_path: &Path, _options: &Options, _bytes: &[u8]) -> Result<bool> {
    Ok(false)
}

/// This build fetches nothing.
#[cfg(not(feature = "remote"))]
pub(crate) fn memory(_options: &Options) -> u64 {
    u64::MAX
}

/// This build fetches nothing.
#[cfg(not(feature = "remote"))]
pub(crate) fn room(_options: &Options) -> u64 {
    u64::MAX
}

/// The parts of a URL; `None` for a path on this machine.
#[cfg(feature = "remote")]
pub(crate) fn location(path: &Path) -> Result<Option<Location>> {
    match path.to_str().filter(|_| is_url(path)) {
        Some(text) => Location::of(text),
        None => Ok(None),
    }
}

/// The stores that were asked so far: URLs of one store share what is known of it, so that a folder is listed once for all.
pub(crate) struct Stores {
    /// The formats that what is there may be of.
    pub(crate) table: Table,
    /// By what is before the key and behind it.
    #[cfg(feature = "remote")]
    opened: RefCell<HashMap<(String, String), Opened>>,
}

impl Default for Stores {
    fn default() -> Stores {
        Stores::of(formats())
    }
}

impl Stores {
    /// Of data in one of these formats.
    pub(crate) fn of(table: Table) -> Stores {
        Stores {
            table,
            #[cfg(feature = "remote")]
            opened: RefCell::default(),
        }
    }
}

/// A store, and its root, in which a revision is its commit.
#[cfg(feature = "remote")]
type Opened = (Arc<dyn Store>, String);

#[cfg(feature = "remote")]
impl Stores {
    /// Where the URL leads; `None` for a path on this machine. The options are the same each time.
    pub(crate) fn place(&self, path: &Path, options: &Options) -> Result<Option<Place>> {
        let Some(location) = location(path)? else { return Ok(None) };
        let (store, root) = self.store(&location, options)?;
        let url = match location.key.as_str() {
            "" => root,
            key => format!("{root}/{key}{}", location.query),
        };
        Ok(Some(Place { store, key: location.key, url: url.into() }))
    }

    fn store(&self, location: &Location, options: &Options) -> Result<Opened> {
        let name = (location.root.clone(), location.query.clone());
        if let Some(known) = self.opened.borrow().get(&name) {
            return Ok(known.clone());
        }
        let mut location = location.clone();
        let mut store = Remote::new(&location, of_store(options))?;
        if let Some(root) = store.pinned()?
            && root != location.root
        {
            location.root = root;
            store = Remote::new(&location, of_store(options))?;
        }
        let opened: Opened = (Arc::new(store), location.root);
        self.opened.borrow_mut().insert(name, opened.clone());
        Ok(opened)
    }
}

/// The stores of what a task reads once, from front to end: nothing of it is kept on disk.
pub(crate) struct ReadOnce {
    stores: Stores,
    options: Options,
}

impl ReadOnce {
    pub(crate) fn new(options: &Options) -> ReadOnce {
        let cache_limit = options.cache_limit.or(Some(0));
        ReadOnce { stores: Stores::default(), options: Options { cache_limit, ..options.clone() } }
    }

    /// Whether a path or URL is a folder.
    pub(crate) fn is_folder(&self, path: &Path) -> bool {
        if is_url(path) {
            self.at(path).and_then(|(store, key)| store.entry(&key)).is_ok_and(|entry| entry.is_folder)
        } else {
            path.is_dir()
        }
    }
}

impl windrow_prepare::Stores for ReadOnce {
    fn at(&self, url: &Path) -> Result<(Arc<dyn Store>, String)> {
        match self.stores.place(url, &self.options)? {
            Some(place) => Ok((place.store, place.key)),
            None => windrow_prepare::NoStores.at(url),
        }
    }
}

/// This build reads no stores.
#[cfg(not(feature = "remote"))]
impl Stores {
    pub(crate) fn place(&self, path: &Path, _options: &Options) -> Result<Option<Place>> {
        if is_url(path) { Err(windrow_core::Error::built_without("remote").at(path)) } else { Ok(None) }
    }
}
