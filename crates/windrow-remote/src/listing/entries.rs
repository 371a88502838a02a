//! What a store listed, and the entries in it.

use std::sync::Arc;

use windrow_core::store::{Catalogue, Entry, hidden_part};

use crate::backend::Meta;

/// A folder as it was listed: what is below it is not asked for again.
pub(crate) struct Listed {
    pub(crate) folder: String,
    pub(crate) objects: Arc<Catalogue>,
    pub(crate) lacks: Lacks,
}

/// What a listing leaves out, and is asked for by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacks {
    Nothing,
    /// Hidden names.
    Hidden,
    /// All but the manifest.
    Most,
}

impl Listed {
    /// Whether a key that it does not have may be there all the same.
    pub(crate) fn may_lack(&self, key: &str) -> bool {
        match self.lacks {
            Lacks::Nothing => false,
            Lacks::Hidden => hidden_part(&self.folder, key).is_some(),
            Lacks::Most => true,
        }
    }

    /// What is there; `None` for nothing.
    pub(crate) fn entry(&self, key: &str) -> Option<Entry> {
        entry_among(&self.objects, key)
    }
}

/// The object of this key, or the folder, among objects; `None` for nothing.
pub(crate) fn entry_among(objects: &Catalogue, key: &str) -> Option<Entry> {
    if let Some(at) = objects.find(key) {
        return Some(objects.entry(at));
    }
    let below = format!("{key}/");
    let at = objects.from(&below);
    (at < objects.len() && objects.key(at).starts_with(&below)).then(|| folder(key))
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
