//! Objects whose names begin alike, as they were listed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::PerProcess;
use windrow_core::store::Catalogue;

use super::entries::entry;
use crate::backend::Meta;

/// Objects; `None` where a store does not list them in order, or there are too many.
type Told = Option<Arc<Catalogue>>;

/// Listings by what their keys begin with.
#[derive(Default)]
pub(crate) struct Names(PerProcess<Mutex<HashMap<String, Told>>>);

impl Names {
    /// What was listed; `None` where nothing was asked.
    pub(crate) fn known(&self, start: &str) -> Option<Told> {
        self.0.get().lock().unwrap_or_else(PoisonError::into_inner).get(start).cloned()
    }

    /// Keeps an answer.
    pub(crate) fn keep(&self, start: String, found: Option<Vec<Meta>>) {
        let found = found.map(|found| Arc::new(Catalogue::new(found.into_iter().map(entry).collect(), None)));
        self.0.get().lock().unwrap_or_else(PoisonError::into_inner).insert(start, found);
    }

    /// Forgets them: something was written.
    pub(crate) fn forget(&self) {
        self.0.get().lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What the names begin with of what belongs to a file: all up to the first dot.
pub(crate) fn start_of(key: &str) -> &str {
    let name = key.rfind('/').map_or(0, |at| at + 1);
    let dot = key[name..].find('.').map_or(key.len(), |at| name + at + 1);
    &key[..dot]
}

#[cfg(test)]
mod tests {
    use super::start_of;

    #[test]
    fn what_belongs_to_a_file_begins_alike() {
        for (key, start) in [
            ("a/tokens.bin.windrow.json", "a/tokens."),
            ("tokens.bin", "tokens."),
            ("a.b/c", "a.b/c"),
            ("a/.zattrs", "a/."),
            ("windrow.json", "windrow."),
        ] {
            assert_eq!(start_of(key), start);
        }
    }
}
