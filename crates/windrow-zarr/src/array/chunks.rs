//! The chunks of an array: which of them there are, and where they lie.

use std::sync::{Arc, OnceLock};

use windrow_core::store::{Entry, Object, Store, key};
use windrow_core::{Error, Kind, Result};

/// Chunks that are in memory and stay open; systems allow some ten thousand maps.
const MOST_OPEN: u64 = 16_384;
/// Where chunks may be missing, no array has more of them: whoever walks over it would never end.
const MOST: u64 = 1 << 24;

/// Those that there are; others take no memory.
pub(super) struct Chunks {
    /// How many there should be.
    n: u64,
    /// By their numbers.
    there: Vec<Chunk>,
}

/// A chunk that is there.
pub(super) struct Chunk {
    number: u64,
    pub(super) key: String,
    /// Bytes as stored.
    pub(super) size: u64,
    modified_ns: Option<u64>,
    tag: Option<String>,
    object: OnceLock<Arc<dyn Object>>,
    /// Bytes of a piece of it, known once one was asked for.
    pub(super) piece_size: OnceLock<u64>,
}

impl Chunks {
    /// Looks for the chunks `0..n` in a folder; `key` names one.
    ///
    /// # Errors
    /// `Corrupt` naming the first one that is missing, unless that is accepted; `Io`.
    pub(super) fn find(
        store: &dyn Store,
        folder: &str,
        n: u64,
        accepts_missing: bool,
        key: impl Fn(u64) -> String,
    ) -> Result<Chunks> {
        let numbered = |found: &str| {
            let digits = found.len() - found.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let number = found[found.len() - digits..].parse().ok()?;
            (number < n && key::below(folder, &key(number)) == found).then_some(number)
        };
        let found = store.walk(folder)?.into_iter().filter_map(|entry| {
            let number = numbered(&entry.key)?;
            let (object, piece_size) = (OnceLock::new(), OnceLock::new());
            let Entry { key, size, modified_ns, tag, .. } = entry;
            Some(Chunk { number, key, size, modified_ns, tag, object, piece_size })
        });
        let mut there: Vec<Chunk> = found.collect();
        there.sort_unstable_by_key(|chunk| chunk.number);
        let chunks = Chunks { n, there };
        if !chunks.is_complete() && (!accepts_missing || n > MOST) {
            let missing = (0..n).find(|i| chunks.there.get(*i as usize).is_none_or(|c| c.number != *i));
            let missing = missing.unwrap_or(n);
            return Err(Error::corrupt(format!("chunk {missing} of {n} is missing"))
                .at(store.display(&key::below(folder, &key(missing))))
                .hint("the copy looks unfinished; fill_missing reads zeros in its place"));
        }
        Ok(chunks)
    }

    /// Whether none is missing.
    pub(super) fn is_complete(&self) -> bool {
        self.there.len() as u64 == self.n
    }

    /// Those that are there, by their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        self.there.iter().map(|chunk| (chunk.number, chunk))
    }

    /// How many are there.
    pub(super) fn len(&self) -> usize {
        self.there.len()
    }

    /// A chunk; `None` where it is missing, and that is accepted.
    ///
    /// # Errors
    /// `OutOfRange`.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Result<Option<&Chunk>> {
        match self.there.get(number as usize) {
            // None before it is missing.
            Some(chunk) if chunk.number == number => Ok(Some(chunk)),
            _ => self.search(number),
        }
    }

    #[cold]
    fn search(&self, number: u64) -> Result<Option<&Chunk>> {
        if number >= self.n {
            return Err(Error::out_of_range("chunk", number, self.n));
        }
        let place = self.there.binary_search_by_key(&number, |chunk| chunk.number);
        Ok(place.ok().and_then(|place| self.there.get(place)))
    }
}

impl Chunk {
    /// The chunk, where it stays open as long as the array does.
    ///
    /// # Errors
    /// `Stale`, `Io`.
    #[inline]
    pub(super) fn lasting(&self, store: &dyn Store) -> Result<Option<&Arc<dyn Object>>> {
        match self.object.get() {
            Some(object) => Ok(Some(object)),
            None => self.keep(store),
        }
    }

    #[cold]
    fn keep(&self, store: &dyn Store) -> Result<Option<&Arc<dyn Object>>> {
        if self.number >= MOST_OPEN {
            return Ok(None);
        }
        let object = self.found(store)?;
        if object.may_stay_open() { Ok(Some(self.object.get_or_init(|| object))) } else { Ok(None) }
    }

    /// Opens it for as long as the array is: whoever appends puts a longer one in its place.
    ///
    /// # Errors
    /// `Stale`, `Io`.
    pub(super) fn hold(&self, store: &dyn Store) -> Result<()> {
        let object = self.found(store)?;
        self.object.get_or_init(|| object);
        Ok(())
    }

    /// The chunk, opened.
    ///
    /// # Errors
    /// `Stale`, `Io`.
    pub(super) fn open(&self, store: &dyn Store) -> Result<Arc<dyn Object>> {
        match self.lasting(store)? {
            Some(object) => Ok(object.clone()),
            None => self.found(store),
        }
    }

    // The file that is there, if it is the one that was found when the array was opened: a store that is written again has
    // chunks of the same names.
    fn found(&self, store: &dyn Store) -> Result<Arc<dyn Object>> {
        let changed = || {
            Error::new(Kind::Stale, "the chunk changed after the store was opened")
                .at(store.display(&self.key))
                .hint("open the data again")
        };
        let entry = Entry {
            key: self.key.clone(),
            size: self.size,
            is_folder: false,
            modified_ns: self.modified_ns,
            tag: self.tag.clone(),
        };
        let object = store.open_listed(&entry).map_err(|e| match e.kind() {
            Kind::NotFound => changed().caused_by(e),
            _ => e,
        })?;
        if object.size() == self.size && object.modified_ns() == self.modified_ns {
            Ok(object)
        } else {
            Err(changed())
        }
    }
}
