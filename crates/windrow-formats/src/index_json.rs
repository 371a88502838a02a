//! Folders that an `index.json` describes: several programs call theirs so.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::format::{Confidence, Probe};
use windrow_core::store::{Object, key, open_if_there};

/// The name of the index.
pub(crate) const INDEX: &str = "index.json";

/// The index of a folder, or one that is named itself.
pub(crate) fn index_key(probe: &Probe) -> Option<String> {
    if probe.is_folder {
        probe.names().any(|name| name == INDEX).then(|| probe.below(INDEX))
    } else {
        (key::name_of(&probe.key) == INDEX).then(|| probe.key.clone())
    }
}

/// Opens it.
///
/// # Errors
/// As [`Store::open`](windrow_core::store::Store::open).
pub(crate) fn open(probe: &Probe) -> Result<Arc<dyn Object>> {
    probe.store.open(&index_key(probe).unwrap_or_else(|| probe.below(INDEX)))
}

/// Whether there is an index with all these words in its first bytes, at most `looked_at`.
pub(crate) fn recognise(probe: &Probe, looked_at: u64, words: [&[u8]; 3]) -> Confidence {
    let index = index_key(probe).and_then(|key| open_if_there(probe.store.as_ref(), &key).ok().flatten());
    let has_words = index.is_some_and(|index| {
        let mut scratch = Vec::new();
        let head = index.read(0, index.size().min(looked_at) as usize, &mut scratch);
        head.is_ok_and(|head| words.iter().all(|word| memchr::memmem::find(head, word).is_some()))
    });
    Confidence::yes_if(has_words)
}
