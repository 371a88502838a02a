//! An object far away, read as any other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use windrow_core::store::ahead::{self, Ahead};
use windrow_core::store::{Entry, Object, cache_folder};
use windrow_core::{Error, PerProcess, Result};

use crate::copy::{Copy, ToCome, gone};
use crate::listing::FIRST_READS;
use crate::options::Options;
use crate::place::Place;

/// Indices up to this size are fetched whole.
const NEAR: u64 = 1 << 30;

pub(crate) struct RemoteObject {
    store: Arc<Place>,
    key: String,
    name: String,
    size: u64,
    tag: Option<String>,
    own: PerProcess<OnceLock<Own>>,
}

/// What belongs to one process.
struct Own {
    /// As the store named the version when it was first asked for it.
    tag: Option<String>,
    copy: Arc<Copy>,
    to_come: Arc<dyn Ahead>,
    /// How often it was read, while that is of interest.
    reads: AtomicUsize,
}

impl RemoteObject {
    pub(crate) fn new(store: Arc<Place>, entry: &Entry) -> RemoteObject {
        RemoteObject {
            name: store.url(&entry.key),
            store,
            key: entry.key.clone(),
            size: entry.size,
            tag: entry.tag.clone(),
            own: PerProcess::new(OnceLock::new),
        }
    }

    fn own(&self) -> Result<&Own> {
        let slot = self.own.get();
        if let Some(own) = slot.get() {
            return Ok(own);
        }
        // Some listings give no version.
        let tag = match &self.tag {
            Some(tag) => Some(tag.clone()),
            None => {
                let meta = self.store.head(&self.key)?;
                if meta.size != self.size {
                    return Err(Error::new(
                        windrow_core::Kind::Stale,
                        format!("expected {} bytes, as listed, found {}", self.size, meta.size),
                    )
                    .at(&self.name)
                    .hint("open the data again"));
                }
                meta.tag
            }
        };
        let copy = self.store.copy_of(&self.key, self.size, tag.as_deref())?;
        let to_come: Arc<dyn Ahead> = Arc::new(ToCome(copy.clone()));
        Ok(slot.get_or_init(|| Own { tag, copy, to_come, reads: AtomicUsize::new(0) }))
    }

    // For a read of this range.
    fn to_read(&self, start: u64, size: u64) -> Result<&Arc<Copy>> {
        let own = self.own()?;
        if size > 0 && own.reads.load(Relaxed) < FIRST_READS && !own.copy.is_announced() {
            let number = own.reads.fetch_add(1, Relaxed);
            self.store.reads_first(number, &self.key, &own.copy, self.size, &(start..start + size));
        }
        Ok(&own.copy)
    }

    fn check(&self, start: u64, size: usize) -> Result<()> {
        match start.checked_add(size as u64) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(Error::corrupt(format!(
                "{size} bytes wanted at byte {start}, but the object ends at byte {}",
                self.size
            ))
            .at(&self.name)
            .byte(start)),
        }
    }
}

impl Object for RemoteObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn modified_ns(&self) -> Option<u64> {
        None
    }

    fn tag(&self) -> Option<&str> {
        // A store that refuses the question refuses the read too, which reports it.
        self.tag.as_deref().or_else(|| self.own().ok()?.tag.as_deref())
    }

    // What is made of it goes to the usual cache folder, which is another one where `cache` says so.
    fn cache_limit(&self) -> Option<u64> {
        let Options { cache, cache_limit, .. } = &self.store.options;
        let is_usual = |folder: &PathBuf| cache_folder().is_ok_and(|usual| usual == *folder);
        cache_limit.filter(|_| cache.as_ref().is_none_or(is_usual))
    }

    // What it knows to be here is worth keeping, and its connection is the store's.
    fn may_stay_open(&self) -> bool {
        true
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.check(start, size)?;
        let copy = self.to_read(start, size as u64)?;
        // What is on disk costs what a map costs.
        if let Some(bytes) = copy.held().borrowed(start, size) {
            copy.hit();
            copy.gave(size);
            return Ok(bytes);
        }
        let _reading = copy.held().reading(start, size as u64);
        copy.bring(start, size as u64)?;
        if let Some(bytes) = copy.held().borrowed(start, size) {
            copy.gave(size);
            return Ok(bytes);
        }
        scratch.clear();
        scratch.try_reserve_exact(size).map_err(|_| Error::memory(format!("{size} bytes")))?;
        scratch.resize(size, 0);
        self.read_into(start, scratch)?;
        Ok(scratch)
    }

    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<()> {
        self.check(start, out.len())?;
        let copy = self.to_read(start, out.len() as u64)?;
        let _reading = copy.held().reading(start, out.len() as u64);
        // What another program took from the disk before it was read comes again.
        for _ in 0..8 {
            copy.bring(start, out.len() as u64)?;
            if copy.held().copy(start, out) {
                copy.gave(out.len());
                return Ok(());
            }
        }
        Err(gone(&self.name))
    }

    fn prefetch(&self, start: u64, size: u64) {
        // What is in the way is the error of whoever reads it.
        if let Ok(own) = self.own() {
            // It may be opened once more to be read.
            if own.reads.load(Relaxed) == 0 && !own.copy.is_announced() {
                self.store.copies.expect(&self.key, own.copy.clone());
            }
            ahead::announce(&own.to_come, start, size);
        }
    }

    fn bring_near(&self) -> Result<()> {
        match self.size {
            0 => Ok(()),
            size if size > NEAR => Ok(()),
            _ => self.own()?.copy.bring_near(),
        }
    }
}
