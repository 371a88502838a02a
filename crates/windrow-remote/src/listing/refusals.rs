//! What a store refused to say so far.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use windrow_core::PerProcess;
use windrow_core::store::without_secrets;

/// What was refused so far.
#[derive(Default)]
pub(crate) struct Refusals {
    /// A listing.
    listing: AtomicBool,
    /// Somebody was told.
    told: AtomicBool,
    /// By folder, whether what is certainly not there is refused.
    pub(super) missing: PerProcess<Mutex<HashMap<String, bool>>>,
}

impl Refusals {
    /// Notes that a listing was refused.
    pub(crate) fn note_listing(&self) {
        self.listing.store(true, Relaxed);
    }

    /// Whether a listing was refused.
    pub(crate) fn has_listing(&self) -> bool {
        self.listing.load(Relaxed)
    }

    pub(super) fn tell(&self, root: &str, key: &str) {
        if !self.told.swap(true, Relaxed) {
            log::info!(
                "{}: 403 for {key}, which counts as absent, as does what else need not be there",
                without_secrets(root)
            );
        }
    }
}
