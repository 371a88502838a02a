//! A place that holds objects: what it is asked through, and what was listed of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::store::{Entry, key};
use windrow_core::{Error, Kind, Result};

use crate::attempt::{Attempts, Deadline, Pace};
use crate::backend::{self, Answer, Backend, Meta};
use crate::copies::Copies;
use crate::names::Names;
use crate::net;
use crate::options::Options;
use crate::per_process::PerProcess;
use crate::stats::Counters;
use crate::told;
use crate::url::Location;

/// From so many objects on, a manifest is worth its while.
const MANY: usize = 10_000;

/// A bucket, a web server or a data set of the Hub.
pub(crate) struct Place {
    location: Location,
    pub(crate) options: Options,
    backend: PerProcess<OnceLock<Arc<dyn Backend>>>,
    listed: PerProcess<Mutex<Vec<Listed>>>,
    /// Single objects that were asked for; `None` for what is not there.
    asked: PerProcess<Mutex<HashMap<String, Option<Meta>>>>,
    pub(crate) names: Names,
    pub(crate) copies: Copies,
    pub(crate) counters: PerProcess<Arc<Counters>>,
    pub(crate) pace: Arc<Pace>,
}

/// A folder as it was listed: what is below it is not asked for again.
struct Listed {
    folder: String,
    /// Sorted by key.
    objects: Arc<Vec<Meta>>,
    /// Hidden files are not in it.
    lacks_hidden: bool,
}

impl Listed {
    /// What is there; `None` for nothing.
    fn entry(&self, key: &str) -> Option<Entry> {
        entry_among(&self.objects, key)
    }
}

/// The object of this key, or the folder, among objects sorted by key; `None` for nothing.
pub(crate) fn entry_among(objects: &[Meta], key: &str) -> Option<Entry> {
    let at = objects.partition_point(|meta| meta.key.as_str() < key);
    match objects.get(at) {
        Some(meta) if meta.key == key => Some(entry(meta.clone())),
        _ => {
            let below = format!("{key}/");
            let at = objects.partition_point(|meta| meta.key < below);
            objects.get(at).filter(|meta| meta.key.starts_with(&below)).map(|_| folder(key))
        }
    }
}

impl Place {
    pub(crate) fn new(location: &Location, options: Options) -> Place {
        Place {
            location: location.clone(),
            options,
            backend: PerProcess::new(OnceLock::new),
            listed: PerProcess::new(Mutex::default),
            asked: PerProcess::new(Mutex::default),
            names: Names::default(),
            copies: Copies::default(),
            counters: PerProcess::new(Arc::default),
            pace: Arc::default(),
        }
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    fn listed(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.listed.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a listing says of a key below a folder that was listed.
    pub(crate) fn known(&self, key: &str) -> Option<Option<Entry>> {
        let listed = self.listed();
        let of = listed.iter().find(|listed| key::is_below(&listed.folder, key))?;
        let found = of.entry(key);
        let is_unknown = found.is_none() && of.lacks_hidden && is_hidden(&of.folder, key);
        (!is_unknown).then_some(found)
    }

    /// Forgets what was listed and asked for: something was written.
    pub(crate) fn forget(&self) {
        self.listed().clear();
        self.names.forget();
        self.copies.forget();
        self.asked.get().lock().unwrap_or_else(PoisonError::into_inner).clear();
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
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        key: &str,
        ask: impl for<'b> Fn(&'b dyn Backend) -> Answer<'b, T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (backend, url, counters) = (self.backend()?, self.url(key), self.counters.get().clone());
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

    /// Size and version of an object; asked for once.
    pub(crate) fn head(&self, key: &str) -> Result<Meta> {
        let asked = || self.asked.get().lock().unwrap_or_else(PoisonError::into_inner);
        let known = asked().get(key).cloned();
        match known {
            Some(Some(meta)) => return Ok(meta),
            Some(None) => return Err(Error::not_found("cannot find it").at(self.url(key))),
            None => {}
        }
        let found = self.ask_head(key);
        match &found {
            Ok(meta) => {
                asked().insert(key.to_string(), Some(meta.clone()));
            }
            Err(e) if e.kind() == Kind::NotFound => {
                asked().insert(key.to_string(), None);
            }
            Err(_) => {}
        }
        found
    }

    fn ask_head(&self, key: &str) -> Result<Meta> {
        let (backend, url, counters) = (self.backend()?, self.url(key), self.counters.get().clone());
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

    /// All objects below a folder, sorted by key; asked for once. A manifest that lists them is believed until they are read.
    pub(crate) fn list(&self, prefix: &str) -> Result<Arc<Vec<Meta>>> {
        if let Some(known) = self.listed().iter().find(|listed| listed.folder == prefix) {
            return Ok(known.objects.clone());
        }
        let told = told::objects(self, prefix)?;
        if let Some(told::Objects { objects, lacks_hidden }) = told {
            return Ok(self.keep_listed(prefix, objects, lacks_hidden));
        }
        let objects = self.list_anew(prefix)?;
        self.tell_of_many(prefix, &objects);
        Ok(objects)
    }

    /// What the store itself lists below a folder, sorted by key.
    pub(crate) fn list_anew(&self, prefix: &str) -> Result<Arc<Vec<Meta>>> {
        let objects = self.ask_list(prefix)?;
        Ok(self.keep_listed(prefix, objects, false))
    }

    fn keep_listed(&self, folder: &str, mut objects: Vec<Meta>, lacks_hidden: bool) -> Arc<Vec<Meta>> {
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        let objects = Arc::new(objects);
        let mut listed = self.listed();
        listed.retain(|listed| listed.folder != folder);
        listed.push(Listed { folder: folder.to_string(), objects: objects.clone(), lacks_hidden });
        objects
    }

    fn tell_of_many(&self, prefix: &str, objects: &[Meta]) {
        let manifest = key::below(prefix, MANIFEST_FILE);
        if objects.len() > MANY && !objects.iter().any(|meta| meta.key == manifest) {
            let url = self.url(prefix);
            log::warn!(
                "{url} holds {} objects, and every process lists them all: `windrow manifest {url}` writes a list once",
                objects.len()
            );
        }
    }

    fn ask_list(&self, prefix: &str) -> Result<Vec<Meta>> {
        let (backend, url, counters) = (self.backend()?, self.url(prefix), self.counters.get().clone());
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

/// Whether a name on the way from a folder to a key starts with a dot.
pub(crate) fn is_hidden(folder: &str, key: &str) -> bool {
    key.strip_prefix(folder).unwrap_or(key).split('/').any(|part| part.starts_with('.'))
}

/// A folder's entry.
pub(crate) fn folder(key: &str) -> Entry {
    Entry { key: key.to_string(), size: 0, is_folder: true, modified_ns: None, tag: None }
}

/// An object's entry. Without a time: a store knows when an object was put there, and what is compared with times means when
/// data was changed.
pub(crate) fn entry(meta: Meta) -> Entry {
    Entry { key: meta.key, size: meta.size, is_folder: false, modified_ns: None, tag: meta.tag }
}
