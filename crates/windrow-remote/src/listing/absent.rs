//! What counts as absent though a store refuses to say so: whoever may read objects but not list them is refused what is not there, too.

use std::sync::PoisonError;

use windrow_core::Error;
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE};
use windrow_core::store::key;

use crate::place::Place;

/// A name that nothing has.
const NOTHING: &str = "windrow-asks-what-nothing-is-answered-with";

impl Place {
    /// The error of a look at a key, marked where the store refused it and that says nothing: so what windrow keeps beside data,
    /// and what else is refused in a folder where nothing would be refused as well.
    pub(crate) fn perhaps_absent(&self, key: &str, error: Error) -> Error {
        if !self.is_refused(key) || !(is_own(key) || self.refuses_what_is_missing(key::folder_of(key))) {
            return error;
        }
        self.refusals.tell(&self.location().root, key);
        error.like_absent()
    }

    // Asked once for each folder: what may be listed differs from one to the other.
    fn refuses_what_is_missing(&self, folder: &str) -> bool {
        let known = || self.refusals.missing.get().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refuses) = known().get(folder) {
            return *refuses;
        }
        let nothing = key::below(folder, NOTHING);
        let refuses = self.head(&nothing).is_err() && self.is_refused(&nothing);
        known().insert(folder.to_string(), refuses);
        refuses
    }
}

/// Whether it is what windrow keeps beside data, without which the data can be read.
pub(crate) fn is_own(key: &str) -> bool {
    let name = key::name_of(key);
    let ends = |own: &str| name.strip_suffix(own).is_some_and(|file| file.is_empty() || file.ends_with('.'));
    ends(MANIFEST_FILE) || ends(CHECKSUMS_FILE)
}
