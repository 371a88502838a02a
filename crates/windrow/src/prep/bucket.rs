//! A job whose output lies in a store: each file is made here, then sent, and never in the place of another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_core::format::Options;
use windrow_core::output::{files, hash_of};
use windrow_core::store::{Below, Local, Memory, Store, cache_folder, key};
use windrow_core::{Error, Kind, Result};
use windrow_prepare::prep::Place;
use windrow_remote::{Location, Remote};

/// Below the cache folder: what is to be sent.
const FOLDER: &str = "sending";
/// Larger objects go in parts, for which stores take no condition.
const IN_PARTS: u64 = 16 << 20;

/// The files of a job in a store.
pub(super) struct Bucket {
    remote: Arc<Remote>,
    key: String,
    scratch: PathBuf,
    drafts: AtomicU64,
}

impl Bucket {
    pub(super) fn new(
        location: &Location,
        hash: &str,
        scratch: Option<&Path>,
        stores: &Options,
    ) -> Result<Bucket> {
        location.check_writable(&format!("{}/{}", location.root, location.key))?;
        // Parts are read once, to be joined.
        let options = Options { cache_limit: stores.cache_limit.or(Some(0)), ..stores.clone() };
        let remote = Remote::new(location, crate::opening::remote::of_store(&options))?;
        let scratch = match scratch {
            Some(scratch) => scratch.to_path_buf(),
            None => stores.cache.clone().map_or_else(cache_folder, Ok)?.join(FOLDER),
        };
        // Of this process alone.
        let own = hash_of(format!("{hash} {} {:?}", std::process::id(), std::time::SystemTime::now()));
        let scratch = std::path::absolute(&scratch).unwrap_or(scratch).join(format!("prep-{own}"));
        Ok(Bucket {
            remote: Arc::new(remote),
            key: location.key.trim_end_matches('/').to_string(),
            scratch,
            drafts: AtomicU64::new(0),
        })
    }

    fn key_of(&self, name: &str) -> String {
        key::below(&self.key, name)
    }
}

impl Place for Bucket {
    fn store(&self) -> Arc<dyn Store> {
        // Others write there at the same time.
        self.remote.forget();
        Arc::new(Below::new(self.remote.clone(), self.key.clone()))
    }

    fn draft(&self, name: &str) -> Result<PathBuf> {
        files::make_folder(&self.scratch)?;
        let number = self.drafts.fetch_add(1, Ordering::Relaxed);
        Ok(self.scratch.join(format!("{number}-{}", key::name_of(name))))
    }

    fn show(&self, draft: &Path, name: &str) -> Result<()> {
        let key = self.key_of(name);
        let object = Local::new(draft).open("")?;
        let is_large = object.size() > IN_PARTS;
        self.remote.put(&key, object.clone(), false)?;
        // Two at the same time may both have found nothing there.
        if is_large && !self.remote.is_same(&key, object)? {
            return Err(Error::new(Kind::Exists, "another run wrote other bytes at the same time")
                .at(self.remote.display(&key)));
        }
        files::remove(draft)
    }

    fn replace(&self, name: &str, text: &[u8]) -> Result<()> {
        let object = Memory::new().with("object", text).open("object")?;
        self.remote.put(&self.key_of(name), object, true).map(drop)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.remote.remove(&self.key_of(name))
    }

    fn at_a_time(&self) -> usize {
        64
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // What stays is no harm.
        let _ = files::remove(&self.scratch);
    }
}
