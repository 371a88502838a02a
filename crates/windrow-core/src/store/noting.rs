//! A store that records errors met while probing: whoever only asks what something is takes an error for a no, and a no that
//! nobody knows to be one would have data read as what it is not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Catalogue, Entry, FolderId, Object, Store, Traffic, Version, Walked};
use crate::error::{Error, Result};

/// The objects of another store. While it notes, errors are kept that say nothing of the data.
pub struct Noting {
    inner: Arc<dyn Store>,
    noted: Arc<Noted>,
}

/// How many look, and the first error since the first of them began.
#[derive(Default)]
pub struct Noted(Mutex<Looks>);

#[derive(Default)]
struct Looks {
    count: usize,
    first: Option<Error>,
}

impl Noting {
    /// Around `store`, unless it notes already.
    pub fn around(store: Arc<dyn Store>) -> Arc<dyn Store> {
        match store.noted() {
            Some(_) => store,
            None => Arc::new(Noting { inner: store, noted: Arc::default() }),
        }
    }
}

impl Noted {
    /// What `look` gives, unless an error was met. Looks within one another, or at the same time, all report it.
    ///
    /// # Errors
    /// The first error of the store that [says nothing of the data](Error::is_of_the_run).
    pub fn during<T>(&self, look: impl FnOnce() -> T) -> Result<T> {
        self.looks().count += 1;
        let over = Over(self);
        let seen = look();
        let error = self.looks().first.as_ref().map(Error::again);
        drop(over);
        error.map_or(Ok(seen), Err)
    }

    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass<T>(&self, found: Result<T>) -> Result<T> {
        if let Err(error) = &found
            && error.is_of_the_run()
        {
            let mut looks = self.looks();
            if looks.count > 0 {
                looks.first.get_or_insert_with(|| error.again());
            }
        }
        found
    }

    fn object(self: &Arc<Self>, opened: Result<Arc<dyn Object>>) -> Result<Arc<dyn Object>> {
        let object = self.pass(opened)?;
        Ok(match self.looks().count {
            0 => object,
            _ => Arc::new(Looked { inner: object, noted: self.clone() }),
        })
    }
}

// The end of a look, also of one that panics.
struct Over<'a>(&'a Noted);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let mut looks = self.0.looks();
        looks.count -= 1;
        if looks.count == 0 {
            looks.first = None;
        }
    }
}

// What is not passed on would be lost unseen.
#[deny(clippy::missing_trait_methods)]
impl Store for Noting {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.noted.object(self.inner.open(key))
    }

    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        self.noted.object(self.inner.open_listed(entry))
    }

    fn read_listed(&self, entry: &Entry, start: u64, out: &mut [u8]) -> Result<()> {
        self.noted.pass(self.inner.read_listed(entry, start, out))
    }

    fn checks_when_opened(&self) -> bool {
        self.inner.checks_when_opened()
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        self.noted.pass(self.inner.entry(key))
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.noted.pass(self.inner.walk(prefix))
    }

    fn walk_all(&self, prefix: &str) -> Result<Walked> {
        self.noted.pass(self.inner.walk_all(prefix))
    }

    fn walk_again(&self, prefix: &str) -> Result<Vec<Entry>> {
        self.noted.pass(self.inner.walk_again(prefix))
    }

    fn walks_by_manifest(&self) -> bool {
        self.inner.walks_by_manifest()
    }

    fn catalogue(&self, folder: &str) -> Option<Arc<Catalogue>> {
        self.inner.catalogue(folder)
    }

    fn display(&self, key: &str) -> String {
        self.inner.display(key)
    }

    fn folder_id(&self, key: &str) -> Option<FolderId> {
        self.inner.folder_id(key)
    }

    fn above(&self, key: &str) -> Option<(Arc<dyn Store>, String)> {
        self.inner.above(key)
    }

    fn traffic(&self) -> Option<Traffic> {
        self.inner.traffic()
    }

    fn encoding(&self, name: &str) -> Option<String> {
        self.inner.encoding(name)
    }

    fn room_ahead(&self) -> Option<u64> {
        self.inner.room_ahead()
    }

    fn keeps(&self, bytes: u64) -> bool {
        self.inner.keeps(bytes)
    }

    fn wrapped(&self) -> Option<&Arc<dyn Store>> {
        Some(&self.inner)
    }

    fn noted(&self) -> Option<&Noted> {
        Some(&self.noted)
    }
}

/// An object that was opened for a look.
struct Looked {
    inner: Arc<dyn Object>,
    noted: Arc<Noted>,
}

#[deny(clippy::missing_trait_methods)]
impl Object for Looked {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn modified_ns(&self) -> Option<u64> {
        self.inner.modified_ns()
    }

    fn changed_ns(&self) -> Option<u64> {
        self.inner.changed_ns()
    }

    fn version(&self) -> Option<Version> {
        self.inner.version()
    }

    fn tag(&self) -> Option<&str> {
        self.inner.tag()
    }

    fn is_compared(&self) -> bool {
        self.inner.is_compared()
    }

    fn cache_limit(&self) -> Option<u64> {
        self.inner.cache_limit()
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.noted.pass(self.inner.read(start, size, scratch))
    }

    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<()> {
        self.noted.pass(self.inner.read_into(start, out))
    }

    fn mapped(&self) -> Option<&[u8]> {
        self.inner.mapped()
    }

    fn may_stay_open(&self) -> bool {
        self.inner.may_stay_open()
    }

    fn touch(&self, start: u64, size: u64) {
        self.inner.touch(start, size);
    }

    fn prefetch(&self, start: u64, size: u64) {
        self.inner.prefetch(start, size);
    }

    fn bring_near(&self) -> Result<()> {
        self.noted.pass(self.inner.bring_near())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::store::Memory;

    // Says no to one key.
    struct Refusing(Memory, &'static str, Kind);

    impl Store for Refusing {
        fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
            self.entry(key)?;
            self.0.open(key)
        }

        fn entry(&self, key: &str) -> Result<Entry> {
            if key == self.1 { Err(Error::new(self.2, "refused").at(key)) } else { self.0.entry(key) }
        }

        fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
            self.0.walk(prefix)
        }

        fn display(&self, key: &str) -> String {
            self.0.display(key)
        }
    }

    #[test]
    fn a_look_that_something_was_in_the_way_of_is_an_error() {
        let store =
            |kind| Noting::around(Arc::new(Refusing(Memory::new().with("a.bin", [1]), "a.idx", kind)));
        let look = |store: &Arc<dyn Store>| {
            store.noted().unwrap().during(|| (store.entry("a.idx").is_ok(), store.open("a.bin").is_ok()))
        };
        for kind in [Kind::Io, Kind::Memory, Kind::Interrupted] {
            let error = look(&store(kind)).unwrap_err();
            assert_eq!((error.kind(), error.message()), (kind, "refused"));
            assert_eq!(error.place().file.as_deref(), Some("a.idx"));
        }
        // What is not there is a no, and so is what a store refuses as it refuses what is not there.
        let store = store(Kind::NotFound);
        assert_eq!(look(&store).unwrap(), (false, true));
        let noted = Noted::default();
        let refused = || Err::<(), _>(Error::new(Kind::Io, "403").like_absent());
        assert!(noted.during(|| noted.pass(refused())).unwrap().is_err());
        // And one look says nothing of the next.
        assert!(store.entry("a.idx").is_err());
        assert_eq!(look(&store).unwrap(), (false, true));
        assert!(Arc::ptr_eq(&store, &Noting::around(store.clone())));
    }

    #[test]
    fn looks_within_one_another_are_all_told_and_one_that_panics_is_over() {
        let refusing = Refusing(Memory::new().with("a.bin", [1]), "a.idx", Kind::Io);
        let store = Noting::around(Arc::new(refusing));
        let noted = store.noted().unwrap();
        let inner = || noted.during(|| store.entry("a.idx").is_ok()).map_err(|e| e.kind());
        assert_eq!(noted.during(|| assert_eq!(inner(), Err(Kind::Io))).unwrap_err().kind(), Kind::Io);
        let panics = || noted.during(|| panic!("a decoder"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(inner(), Err(Kind::Io));
        assert!(noted.during(|| store.entry("a.bin").is_ok()).unwrap());
    }
}
