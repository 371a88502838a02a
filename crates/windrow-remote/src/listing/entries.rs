//! What a store listed, and the entries in it.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use windrow_core::format::discover::natural_order;
use windrow_core::store::{Catalogue, Entry, hidden_part};

use crate::backend::Meta;

/// A folder as it was listed: what is below it is not asked for again.
pub(crate) struct Listed {
    pub(crate) folder: String,
    pub(crate) objects: Arc<Catalogue>,
    pub(crate) lacks: Lacks,
    /// Their numbers, where they were asked for in natural order.
    natural: OnceLock<Arc<Vec<u32>>>,
    was_looked_at: AtomicBool,
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
    pub(crate) fn new(folder: &str, objects: Arc<Catalogue>, lacks: Lacks) -> Listed {
        Listed {
            folder: folder.to_string(),
            objects,
            lacks,
            natural: OnceLock::new(),
            was_looked_at: AtomicBool::new(false),
        }
    }

    /// Whether no object of it was looked at before.
    pub(crate) fn is_first_look(&self) -> bool {
        !self.was_looked_at.swap(true, Relaxed)
    }

    /// The numbers of the objects in natural order of their keys.
    pub(crate) fn in_natural_order(&self) -> Arc<Vec<u32>> {
        let sorted = || {
            let mut order: Vec<u32> = (0..u32::try_from(self.objects.len()).unwrap_or(u32::MAX)).collect();
            let key = |at: u32| self.objects.key(at as usize);
            order.sort_by(|a, b| in_natural_order(key(*a), key(*b)));
            Arc::new(order)
        };
        self.natural.get_or_init(sorted).clone()
    }

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

/// How keys follow each other in natural order, which is one of them all.
pub(crate) fn in_natural_order(a: &str, b: &str) -> Ordering {
    natural_order(a, b).then_with(|| a.cmp(b))
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
