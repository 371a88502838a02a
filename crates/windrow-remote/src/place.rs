//! A place that holds objects: what it is asked through, and what was listed of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use windrow_core::store::{Entry, key, without_secrets};
use windrow_core::{Error, Kind, PerProcess, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::attempt::{Attempts, Deadline, Pace};
use crate::backend::{self, Answer, Backend, MODIFIED, Meta};
use crate::copy::{Copy, Parts};
use crate::held::{Held, Identity, Limits};
use crate::listing::{Copies, Listed, Names, Next, Refusals};
use crate::net;
use crate::options::Options;
use crate::stats::Counters;
use crate::trouble::What;
use crate::url::{Location, without_signature};

/// A bucket, a web server or a data set of the Hub.
pub(crate) struct Place {
    location: Location,
    pub(crate) options: Options,
    backend: PerProcess<OnceLock<Arc<dyn Backend>>>,
    listed: PerProcess<Mutex<Vec<Listed>>>,
    /// Single objects that were asked for.
    asked: PerProcess<Mutex<HashMap<String, Asked>>>,
    pub(crate) refusals: Refusals,
    pub(crate) names: Names,
    pub(crate) copies: Copies,
    pub(crate) next: Next,
    pub(crate) counters: PerProcess<Arc<Counters>>,
    pub(crate) pace: Arc<Pace>,
}

/// What a store said of an object.
enum Asked {
    There(Meta),
    Nothing,
    /// 403.
    Refused(Error),
}

impl Place {
    pub(crate) fn new(location: &Location, options: Options) -> Place {
        Place {
            location: location.clone(),
            options,
            backend: PerProcess::new(OnceLock::new),
            listed: PerProcess::new(Mutex::default),
            asked: PerProcess::new(Mutex::default),
            refusals: Refusals::default(),
            names: Names::default(),
            copies: Copies::default(),
            next: Next::default(),
            counters: PerProcess::new(Arc::default),
            pace: Arc::default(),
        }
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The folders that were listed.
    pub(crate) fn listed(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.listed.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a listing says of a key below a folder that was listed.
    pub(crate) fn known(&self, key: &str) -> Option<Option<Entry>> {
        let listed = self.listed();
        let of = listed.iter().find(|listed| key::is_below(&listed.folder, key))?;
        let found = of.entry(key);
        let is_unknown = found.is_none() && of.may_lack(key);
        (!is_unknown).then_some(found)
    }

    /// Forgets what was listed and asked for: something was written.
    pub(crate) fn forget(&self) {
        self.listed().clear();
        self.names.forget();
        self.copies.forget();
        self.asked().clear();
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

    /// An object in one version, as this process has it.
    ///
    /// # Errors
    /// As [`Place::backend`].
    pub(crate) fn copy_of(&self, key: &str, size: u64, tag: Option<&str>) -> Result<Arc<Copy>> {
        let parts = self.parts(key, size, tag)?;
        Ok(self.copies.of((key, size, tag), || Copy::new(parts())))
    }

    /// An object in one version that is about to be opened.
    ///
    /// # Errors
    /// As [`Place::backend`].
    pub(crate) fn copy_to_come(&self, key: &str, size: u64, tag: Option<&str>) -> Result<Arc<Copy>> {
        let parts = self.parts(key, size, tag)?;
        Ok(self.copies.to_come((key, size, tag), || Copy::new(parts())))
    }

    fn parts(&self, key: &str, size: u64, tag: Option<&str>) -> Result<impl FnOnce() -> Parts> {
        let (options, name) = (&self.options, self.url(key));
        // Neither a query, which may hold a secret, nor a password is read out of the cache. Another signature is of the same file.
        let plain = without_signature(&name);
        let url = match without_secrets(&plain) {
            url if url == plain => url,
            url => format!("{url}?{:016x}", xxh3_64(plain.as_bytes())),
        };
        // A time of whole seconds tells versions apart, but does not promise the same bytes for ever.
        let lasting = tag.filter(|tag| !tag.starts_with(MODIFIED));
        let identity = Identity { url, size, tag: lasting.unwrap_or_default().to_string() };
        let limits =
            Limits { folder: options.cache.clone(), disk: options.cache_limit, memory: options.read_ahead };
        let backend = self.backend()?;
        let (key, tag) = (key.to_string(), tag.map(str::to_string));
        let (timeout, counters, pace) = (options.timeout, self.counters.get().clone(), self.pace.clone());
        Ok(move || Parts {
            key,
            url: name,
            size,
            tag,
            timeout,
            backend,
            counters,
            pace,
            held: Held::new(identity, &limits),
        })
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

    fn asked(&self) -> MutexGuard<'_, HashMap<String, Asked>> {
        self.asked.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the store refused to say what is at a key.
    pub(crate) fn is_refused(&self, key: &str) -> bool {
        matches!(self.asked().get(key), Some(Asked::Refused(_)))
    }

    /// Size and version of an object; asked for once.
    pub(crate) fn head(&self, key: &str) -> Result<Meta> {
        match self.asked().get(key) {
            Some(Asked::There(meta)) => return Ok(meta.clone()),
            Some(Asked::Nothing) => return Err(Error::not_found("cannot find it").at(self.url(key))),
            Some(Asked::Refused(error)) => return Err(error.again()),
            None => {}
        }
        let found = match self.ask_head(key) {
            Ok(Ok(meta)) => {
                self.asked().insert(key.to_string(), Asked::There(meta.clone()));
                return Ok(meta);
            }
            Ok(Err(refused)) => (Asked::Refused(refused.again()), refused),
            Err(e) if e.kind() == Kind::NotFound => (Asked::Nothing, e),
            Err(e) => return Err(e),
        };
        self.asked().insert(key.to_string(), found.0);
        Err(found.1)
    }

    // What is refused is the inner error.
    fn ask_head(&self, key: &str) -> Result<Result<Meta>> {
        let (backend, url, counters) = (self.backend()?, self.url(key), self.counters.get().clone());
        let deadline = Deadline::within(self.options.timeout);
        let key = key.to_string();
        net::wait(async move {
            let mut attempts = Attempts::new(deadline, &counters, "find it", &url);
            loop {
                match attempts.attempt(backend.head(&key)).await {
                    Ok(meta) => return Ok(Ok(meta)),
                    Err(trouble) if trouble.what == What::Denied => {
                        return Ok(Err(trouble.into_error("find it", &url)));
                    }
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }
}
