//! A store of objects far away, as windrow reads any store.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use windrow_core::store::{Entry, Object, Store, key};
use windrow_core::{Error, Kind, Result};

use crate::attempt::{Attempts, Deadline, Pace};
use crate::backend::{self, Answer, Backend, Meta};
use crate::net;
use crate::object::RemoteObject;
use crate::options::Options;
use crate::per_process::PerProcess;
use crate::stats::{Counters, Stats};
use crate::url::{Location, Scheme};

/// From so many objects on, a manifest is worth its while.
const MANY: usize = 10_000;

/// A bucket, a web server or a data set of the Hub: objects by their keys.
///
/// ```no_run
/// use windrow_core::store::Store;
/// use windrow_remote::{Location, Options, Remote};
///
/// # fn main() -> windrow_core::Result<()> {
/// let location = Location::of("s3://corpus/tokens")?.expect("a URL");
/// let store = Remote::new(&location, Options::default())?;
/// for entry in store.walk(&location.key)? {
///     println!("{}: {} bytes", store.display(&entry.key), entry.size);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

pub(crate) struct Inner {
    location: Location,
    pub(crate) options: Options,
    backend: PerProcess<OnceLock<Arc<dyn Backend>>>,
    listed: PerProcess<Mutex<Vec<Listed>>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) pace: Arc<Pace>,
}

impl Remote {
    /// The store that a URL names. Nothing is asked yet.
    ///
    /// # Errors
    /// `Config` for options that the store does not have, or where something that it needs is not set; `Unsupported`.
    pub fn new(location: &Location, options: Options) -> Result<Remote> {
        let inner = Inner {
            location: location.clone(),
            options,
            backend: PerProcess::new(OnceLock::new),
            listed: PerProcess::new(Mutex::default),
            counters: Arc::default(),
            pace: Arc::default(),
        };
        inner.backend()?;
        Ok(Remote(Arc::new(inner)))
    }

    /// What it was asked for so far, in this process.
    pub fn stats(&self) -> Stats {
        self.0.counters.now()
    }

    /// The root with the commit that its revision stands for now; `None` of stores without commits.
    ///
    /// # Errors
    /// What the Hub says.
    pub fn pinned(&self) -> Result<Option<String>> {
        if self.0.location.scheme != Scheme::Hf {
            return Ok(None);
        }
        let root = self.0.location.root.clone();
        let commit = self.0.ask("find the revision", "", |backend| backend.commit())?;
        commit.map(|commit| backend::pinned(&root, &commit)).transpose()
    }

    /// Makes an object; one that is there already is replaced only if that is said.
    ///
    /// # Errors
    /// `Exists`; what the store says.
    pub fn put(&self, key: &str, bytes: &[u8], replace: bool) -> Result<()> {
        let (key, bytes) = (key.to_string(), bytes.to_vec());
        let (backend, url, counters) = (self.0.backend()?, self.0.url(&key), self.0.counters.clone());
        let deadline = Deadline::within(self.0.options.timeout);
        net::wait(async move {
            let mut attempts = Attempts::new(deadline, &counters, "write it", &url);
            loop {
                match attempts.attempt(backend.put(&key, bytes.clone(), replace)).await {
                    Ok(()) => return Ok(()),
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }
}

/// A folder as it was listed: what is below it is not asked for again.
struct Listed {
    folder: String,
    /// Sorted by key.
    objects: Arc<Vec<Meta>>,
}

impl Listed {
    /// What is there; `None` for nothing.
    fn entry(&self, key: &str) -> Option<Entry> {
        let at = self.objects.partition_point(|meta| meta.key.as_str() < key);
        match self.objects.get(at) {
            Some(meta) if meta.key == key => Some(entry(meta.clone())),
            _ => {
                let below = format!("{key}/");
                let at = self.objects.partition_point(|meta| meta.key < below);
                self.objects.get(at).filter(|meta| meta.key.starts_with(&below)).map(|_| folder(key))
            }
        }
    }
}

impl Inner {
    fn listed(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.listed.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a listing says of a key below a folder that was listed.
    fn known(&self, key: &str) -> Option<Option<Entry>> {
        let listed = self.listed();
        let of = listed.iter().find(|listed| key::is_below(&listed.folder, key))?;
        Some(of.entry(key))
    }

    pub(crate) fn backend(&self) -> Result<Arc<dyn Backend>> {
        let slot = self.backend.get();
        if let Some(backend) = slot.get() {
            return Ok(backend.clone());
        }
        let runtime = net::runtime()?;
        let _within = runtime.enter();
        let made = backend::of(&self.location, &self.options)?;
        Ok(slot.get_or_init(|| made).clone())
    }

    pub(crate) fn url(&self, key: &str) -> String {
        let Location { root, query, .. } = &self.location;
        match key {
            "" => root.clone(),
            key => format!("{root}/{key}{query}"),
        }
    }

    /// Asks once more as long as that may help.
    fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        key: &str,
        ask: impl for<'b> Fn(&'b dyn Backend) -> Answer<'b, T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (backend, url, counters) = (self.backend()?, self.url(key), self.counters.clone());
        let deadline = Deadline::within(self.options.timeout);
        net::wait(async move {
            let mut attempts = Attempts::new(deadline, &counters, doing, &url);
            loop {
                match attempts.attempt(ask(backend.as_ref())).await {
                    Ok(answer) => return Ok(answer),
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }

    /// Size and version of an object.
    pub(crate) fn head(&self, key: &str) -> Result<Meta> {
        let (backend, url, counters) = (self.backend()?, self.url(key), self.counters.clone());
        let deadline = Deadline::within(self.options.timeout);
        let key = key.to_string();
        net::wait(async move {
            let mut attempts = Attempts::new(deadline, &counters, "find it", &url);
            loop {
                match attempts.attempt(backend.head(&key)).await {
                    Ok(meta) => return Ok(meta),
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }

    /// All objects below a folder, sorted by key; asked for once.
    fn list(&self, prefix: &str) -> Result<Arc<Vec<Meta>>> {
        if let Some(known) = self.listed().iter().find(|listed| listed.folder == prefix) {
            return Ok(known.objects.clone());
        }
        let mut objects = self.ask_list(prefix)?;
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        let objects = Arc::new(objects);
        self.listed().push(Listed { folder: prefix.to_string(), objects: objects.clone() });
        Ok(objects)
    }

    fn ask_list(&self, prefix: &str) -> Result<Vec<Meta>> {
        let (backend, url, counters) = (self.backend()?, self.url(prefix), self.counters.clone());
        let deadline = Deadline::within(self.options.timeout);
        let prefix = prefix.to_string();
        net::wait(async move {
            let mut attempts = Attempts::new(deadline, &counters, "list the folder", &url);
            let mut found = Vec::new();
            loop {
                match attempts.attempt(backend.list(&prefix, &mut found)).await {
                    Ok(()) => return Ok(found),
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }
}

fn folder(key: &str) -> Entry {
    Entry { key: key.to_string(), size: 0, is_folder: true, modified_ns: None, tag: None }
}

// Without a time: a store knows when an object was put there, and what is compared with times means when data was changed.
fn entry(meta: Meta) -> Entry {
    Entry { key: meta.key, size: meta.size, is_folder: false, modified_ns: None, tag: meta.tag }
}

impl Store for Remote {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        let entry = self.entry(key)?;
        match entry.is_folder {
            true => Err(Error::unsupported("expected an object, found a folder").at(self.display(key))),
            false => self.open_listed(&entry),
        }
    }

    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        Ok(Arc::new(RemoteObject::new(self.0.clone(), entry)))
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        if key.is_empty() {
            return Ok(folder(key));
        }
        let missing = || Error::not_found("cannot find it").at(self.display(key));
        if let Some(known) = self.0.known(key) {
            return known.ok_or_else(missing);
        }
        let is_folder = || match self.0.list(key) {
            Ok(found) => Ok(!found.is_empty()),
            Err(e) if e.kind() == Kind::NotFound => Ok(false),
            Err(e) => Err(e),
        };
        // One of two questions tells; the one that is likely to is asked first.
        let looks_like_a_file = key::name_of(key).contains('.');
        if !looks_like_a_file && is_folder()? {
            return Ok(folder(key));
        }
        match self.0.head(key) {
            Ok(meta) => Ok(entry(meta)),
            Err(e) if e.kind() == Kind::NotFound && looks_like_a_file && is_folder()? => Ok(folder(key)),
            Err(e) => Err(e),
        }
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        let found: Vec<Entry> = self.0.list(prefix)?.iter().cloned().map(entry).collect();
        if found.is_empty() {
            return Err(Error::not_found("nothing is there: no object of this name, and none below it")
                .at(self.display(prefix))
                .hint("a prefix is a whole name between slashes"));
        }
        let manifest = key::below(prefix, windrow_core::manifest::MANIFEST_FILE);
        if found.len() > MANY && !found.iter().any(|entry| entry.key == manifest) {
            let url = self.display(prefix);
            log::warn!(
                "{url} holds {} objects, and every process lists them all: `windrow manifest {url}` writes a list once",
                found.len()
            );
        }
        Ok(found)
    }

    fn display(&self, key: &str) -> String {
        self.0.url(key)
    }
}
