//! Part of a store as a store of its own: what is below a key, or the one object at it.

use std::sync::Arc;

use super::{Catalogue, Entry, FolderId, Noted, Object, Store, Traffic, Walked, key};
use crate::error::Result;

/// What is at a key of a store, and below it. Its own root, `""`, is that key.
///
/// ```
/// # use std::sync::Arc;
/// # use windrow_core::store::{Below, Local, Store};
/// # let dir = tempfile::tempdir().unwrap();
/// std::fs::create_dir_all(dir.path().join("texts/more"))?;
/// std::fs::write(dir.path().join("texts/more/a.jsonl"), "{}")?;
/// let texts = Below::new(Arc::new(Local::new(dir.path())), "texts");
/// assert_eq!(texts.walk("")?[0].key, "more/a.jsonl");
/// assert_eq!(texts.open("more/a.jsonl")?.size(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Below {
    store: Arc<dyn Store>,
    key: String,
}

impl Below {
    /// What is at `key` of `store`.
    pub fn new(store: Arc<dyn Store>, key: impl Into<String>) -> Below {
        Below { store, key: key.into() }
    }

    fn whole(&self, key: &str) -> String {
        match key {
            "" => self.key.clone(),
            key => key::below(&self.key, key),
        }
    }

    fn seen(&self, entry: Entry) -> Entry {
        let rest = entry.key.strip_prefix(&self.key).map(|rest| rest.trim_start_matches('/'));
        Entry { key: rest.unwrap_or(&entry.key).to_string(), ..entry }
    }

    fn unseen(&self, entry: &Entry) -> Entry {
        Entry { key: self.whole(&entry.key), ..entry.clone() }
    }
}

// What is not passed on would be lost unseen.
#[deny(clippy::missing_trait_methods)]
impl Store for Below {
    fn open(&self, key: &str) -> Result<Arc<dyn Object>> {
        self.store.open(&self.whole(key))
    }

    fn open_listed(&self, entry: &Entry) -> Result<Arc<dyn Object>> {
        self.store.open_listed(&self.unseen(entry))
    }

    fn read_listed(&self, entry: &Entry, start: u64, out: &mut [u8]) -> Result<()> {
        self.store.read_listed(&self.unseen(entry), start, out)
    }

    fn checks_when_opened(&self) -> bool {
        self.store.checks_when_opened()
    }

    fn entry(&self, key: &str) -> Result<Entry> {
        self.store.entry(&self.whole(key)).map(|entry| self.seen(entry))
    }

    fn walk(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.store.walk(&self.whole(prefix))?.into_iter().map(|entry| self.seen(entry)).collect())
    }

    fn walk_all(&self, prefix: &str) -> Result<Walked> {
        let Walked { entries, hidden } = self.store.walk_all(&self.whole(prefix))?;
        let seen = |entries: Vec<Entry>| entries.into_iter().map(|entry| self.seen(entry)).collect();
        Ok(Walked { entries: seen(entries), hidden: seen(hidden) })
    }

    fn walk_again(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.store.walk_again(&self.whole(prefix))?.into_iter().map(|entry| self.seen(entry)).collect())
    }

    fn walks_by_manifest(&self) -> bool {
        self.store.walks_by_manifest()
    }

    // Its keys are others.
    fn catalogue(&self, _: &str) -> Option<Arc<Catalogue>> {
        None
    }

    fn display(&self, key: &str) -> String {
        self.store.display(&self.whole(key))
    }

    fn folder_id(&self, key: &str) -> Option<FolderId> {
        self.store.folder_id(&self.whole(key))
    }

    fn above(&self, key: &str) -> Option<(Arc<dyn Store>, String)> {
        Some((self.store.clone(), self.whole(key)))
    }

    fn traffic(&self) -> Option<Traffic> {
        self.store.traffic()
    }

    fn encoding(&self, name: &str) -> Option<String> {
        self.store.encoding(name)
    }

    fn room_ahead(&self) -> Option<u64> {
        self.store.room_ahead()
    }

    fn keeps(&self, bytes: u64) -> bool {
        self.store.keeps(bytes)
    }

    // This one has other keys.
    fn wrapped(&self) -> Option<&Arc<dyn Store>> {
        None
    }

    fn noted(&self) -> Option<&Noted> {
        self.store.noted()
    }
}
