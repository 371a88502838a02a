//! Data behind URLs: which store, which key, and the options that go with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::Result;
use windrow_core::format::Options;
use windrow_core::store::{Store, is_url};

/// Where a URL leads.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) key: String,
    /// The URL, with the commit in a revision's place: opened again, it is the same data.
    pub(crate) url: PathBuf,
}

#[cfg(feature = "remote")]
fn of_store(options: &Options) -> windrow_remote::Options {
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

/// This build fetches nothing.
#[cfg(not(feature = "remote"))]
pub(crate) fn room(_options: &Options) -> u64 {
    u64::MAX
}

/// Where the URL leads; `None` for a path on this machine.
#[cfg(feature = "remote")]
pub(crate) fn place(path: &Path, options: &Options) -> Result<Option<Place>> {
    use windrow_remote::{Location, Remote};

    let Some(text) = path.to_str().filter(|_| is_url(path)) else { return Ok(None) };
    let Some(mut location) = Location::of(text)? else { return Ok(None) };
    let of_store = of_store(options);
    let mut store = Remote::new(&location, of_store.clone())?;
    if let Some(root) = store.pinned()?
        && root != location.root
    {
        location.root = root;
        store = Remote::new(&location, of_store)?;
    }
    let key = location.key.clone();
    let url = match key.as_str() {
        "" => location.root.clone(),
        key => format!("{}/{key}{}", location.root, location.query),
    };
    Ok(Some(Place { store: Arc::new(store), key, url: url.into() }))
}

/// This build reads no stores.
#[cfg(not(feature = "remote"))]
pub(crate) fn place(path: &Path, _options: &Options) -> Result<Option<Place>> {
    match is_url(path) {
        false => Ok(None),
        true => Err(windrow_core::Error::unsupported("this build reads no URLs")
            .at(path)
            .hint("build windrow with the feature `remote`")),
    }
}
