//! Objects that are put into a store: at once, or in parts where they are large.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use windrow_core::store::Object;
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::attempt::{Attempts, Deadline, Known, bytes};
use crate::backend::{Answer, Backend, Bytes, Sink, Upload};
use crate::net;
use crate::place::Place;
use crate::trouble::{Trouble, What, exists};
use crate::whole::no_ranges;

/// Larger objects are put in parts.
const WHOLE: u64 = 16 << 20;
/// A part, unless that would be more than [`MOST_PARTS`].
const PART: u64 = 16 << 20;
/// S3 takes 10,000.
const MOST_PARTS: u64 = 9_000;
/// Bytes of parts under way.
const UNDER_WAY: u64 = 128 << 20;
/// Read at a time.
const READ: usize = 1 << 20;

/// What became of an object that was to be put into a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was sent.
    Sent,
    /// An object with the same bytes was there.
    WasThere,
}

/// One object on its way.
struct Sending {
    place: Arc<Place>,
    backend: Arc<dyn Backend>,
    key: String,
    url: String,
    object: Arc<dyn Object>,
    hash: String,
    replace: bool,
}

/// Puts an object there; where `replace` is not set, only if none is there that has other bytes.
///
/// # Errors
/// `Unsupported` where the store takes none; `Exists`; what reading the object says; `Io`.
pub(crate) fn put(place: &Arc<Place>, key: &str, object: Arc<dyn Object>, replace: bool) -> Result<Put> {
    let backend = writable(place, key)?;
    let hash = hash_of(object.as_ref())?;
    let sending = Sending {
        place: place.clone(),
        backend,
        key: key.to_string(),
        url: place.url(key),
        object,
        hash,
        replace,
    };
    let put = net::wait(async move {
        if sending.object.size() > WHOLE { sending.in_parts().await } else { sending.at_once().await }
    });
    place.forget();
    put
}

/// Whether an object is there whose bytes are those of `object`.
///
/// # Errors
/// What the store says; what reading `object` says.
pub(crate) fn is_there(place: &Arc<Place>, key: &str, object: Arc<dyn Object>) -> Result<bool> {
    let backend = writable(place, key)?;
    let hash = hash_of(object.as_ref())?;
    let (key, url) = (key.to_string(), place.url(key));
    let sending = Sending { place: place.clone(), backend, key, url, object, hash, replace: false };
    net::wait(async move {
        match sending.is_there().await {
            Ok(same) => Ok(same == Some(true)),
            Err(e) => Err(e),
        }
    })
}

/// Removes an object; nothing there is fine.
///
/// # Errors
/// `Unsupported`, `Io`.
pub(crate) fn remove(place: &Arc<Place>, key: &str) -> Result<()> {
    let (backend, url, place_there) = (writable(place, key)?, place.url(key), place.clone());
    let key = key.to_string();
    let removed = net::wait(async move {
        let sink = sink(backend.as_ref())?;
        ask(&place_there, "remove it", &url, || sink.remove(&key)).await
    });
    place.forget();
    removed
}

fn writable(place: &Place, key: &str) -> Result<Arc<dyn Backend>> {
    place.location().check_writable(&place.url(key))?;
    place.backend()
}

// Asked for where one was found to be there.
fn sink(backend: &dyn Backend) -> Result<&dyn Sink> {
    backend.sink().ok_or_else(|| Error::unsupported("nothing is written to this store"))
}

fn hash_of(object: &dyn Object) -> Result<String> {
    let mut hash = Xxh3::new();
    let mut part = vec![0; READ];
    let mut at = 0;
    while at < object.size() {
        let size = usize::try_from(object.size() - at).unwrap_or(READ).min(READ);
        object.read_into(at, &mut part[..size])?;
        hash.update(&part[..size]);
        at += size as u64;
    }
    Ok(format!("{:016x}", hash.digest()))
}

// Asks until there is an answer.
async fn ask<'a, T>(
    place: &Place,
    doing: &str,
    url: &str,
    mut one: impl FnMut() -> Answer<'a, T>,
) -> Result<T> {
    let deadline = Deadline::within(place.options.timeout);
    let mut attempts = Attempts::new(deadline, place.counters.get(), doing, url);
    loop {
        match attempts.attempt(one()).await {
            Ok(answer) => return Ok(answer),
            Err(trouble) => attempts.after(trouble).await?,
        }
    }
}

impl Sending {
    async fn bytes(&self, start: u64, size: u64) -> Result<Bytes> {
        let object = self.object.clone();
        let size = usize::try_from(size).map_err(|_| Error::memory(format!("{size} bytes")))?;
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(size).map_err(|_| Error::memory(format!("{size} bytes")))?;
            bytes.resize(size, 0);
            object.read_into(start, &mut bytes).map(|()| Bytes::from(bytes))
        });
        read.await.map_err(|_| Error::new(windrow_core::Kind::Interrupted, "the read was given up"))?
    }

    async fn at_once(&self) -> Result<Put> {
        let (sink, bytes) = (sink(self.backend.as_ref())?, self.bytes(0, self.object.size()).await?);
        let deadline = Deadline::within(self.place.options.timeout);
        let mut attempts = Attempts::new(deadline, self.place.counters.get(), "write it", &self.url);
        let mut create = !self.replace;
        loop {
            let Err(trouble) = attempts.attempt(sink.put(&self.key, bytes.clone(), &self.hash, create)).await
            else {
                return Ok(Put::Sent);
            };
            let trouble = match trouble.what {
                // The answer to an attempt before may be lost, and the object be there.
                What::Exists | What::Changed if create => match self.is_there().await? {
                    Some(true) => return Ok(Put::WasThere),
                    Some(false) => return Err(exists(&self.url)),
                    // Somebody puts it there at this moment, or gave up.
                    None => Trouble::passing(trouble.said),
                },
                What::Exists | What::Changed => Trouble::passing(trouble.said),
                // A store that makes no conditions is asked before.
                What::NotImplemented if create => {
                    match self.is_there().await? {
                        Some(true) => return Ok(Put::WasThere),
                        Some(false) => return Err(exists(&self.url)),
                        None => create = false,
                    }
                    continue;
                }
                _ => trouble,
            };
            attempts.after(trouble).await?;
        }
    }

    // Stores make no conditions of an object of parts: it is looked for before it begins, and before it is completed.
    async fn in_parts(&self) -> Result<Put> {
        if let Some(done) = self.found().await? {
            return Ok(done);
        }
        let sink = sink(self.backend.as_ref())?;
        let upload = ask(&self.place, "write it", &self.url, || sink.begin(&self.key, &self.hash)).await?;
        let put = self.parts(sink, &upload).await;
        if put.as_ref().map_or(true, |put| *put == Put::WasThere) {
            // What stays of it, the store's rules remove; the error that is reported matters more.
            let aborted = tokio::time::timeout(Duration::from_secs(10), sink.abort(&self.key, &upload)).await;
            log::debug!("{}: its parts are dropped: {}", self.url, matches!(aborted, Ok(Ok(()))));
        }
        put
    }

    async fn parts(&self, sink: &dyn Sink, upload: &Upload) -> Result<Put> {
        let size = self.object.size();
        let part = PART.max(size.div_ceil(MOST_PARTS));
        let at_a_time = (UNDER_WAY / part).max(1) as usize;
        let put = |number: u64| async move {
            let start = number * part;
            let bytes = self.bytes(start, part.min(size - start)).await?;
            let doing = format!("write part {} of it", number + 1);
            let ask_once = || sink.part(&self.key, upload, number as usize, bytes.clone());
            ask(&self.place, &doing, &self.url, ask_once).await
        };
        let numbers: Vec<u64> = (0..size.div_ceil(part)).collect();
        let parts: Vec<String> =
            stream::iter(numbers.into_iter().map(put)).buffered(at_a_time).try_collect().await?;
        if let Some(done) = self.found().await? {
            return Ok(done);
        }
        let deadline = Deadline::within(self.place.options.timeout);
        let mut attempts = Attempts::new(deadline, self.place.counters.get(), "write it", &self.url);
        loop {
            let Err(trouble) = attempts.attempt(sink.complete(&self.key, upload, parts.clone())).await else {
                return Ok(Put::Sent);
            };
            // The parts are gone where the answer to an attempt before was lost.
            if self.is_there().await? == Some(true) {
                return Ok(Put::Sent);
            }
            attempts.after(trouble).await?;
        }
    }

    // What an object that is there means where none is replaced.
    async fn found(&self) -> Result<Option<Put>> {
        if self.replace {
            return Ok(None);
        }
        match self.is_there().await? {
            Some(true) => Ok(Some(Put::WasThere)),
            Some(false) => Err(exists(&self.url)),
            None => Ok(None),
        }
    }

    // Whether what is there has the same bytes; `None` where nothing is.
    async fn is_there(&self) -> Result<Option<bool>> {
        let found = ask(&self.place, "find it", &self.url, || self.backend.head(&self.key)).await;
        let meta = match found {
            Ok(meta) => meta,
            Err(e) if e.kind() == windrow_core::Kind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        match &meta.hash {
            _ if meta.size != self.object.size() => Ok(Some(false)),
            Some(hash) => Ok(Some(*hash == self.hash)),
            None => self.has_same_bytes(meta.tag.as_deref()).await.map(Some),
        }
    }

    async fn has_same_bytes(&self, tag: Option<&str>) -> Result<bool> {
        let size = self.object.size();
        let known = Known { key: &self.key, url: &self.url, size, tag };
        let mut at = 0;
        while at < size {
            let end = (at + PART).min(size);
            let deadline = Deadline::within(self.place.options.timeout);
            let (counters, pace) = (self.place.counters.get(), &self.place.pace);
            let there = bytes(self.backend.as_ref(), &known, at..end, deadline, counters, pace).await?;
            let there = there.ok_or_else(|| no_ranges(&self.url))?;
            if self.bytes(at, end - at).await? != there {
                return Ok(false);
            }
            at = end;
        }
        Ok(true)
    }
}
