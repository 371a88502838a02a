//! A file and what is beside it, asked for together: objects whose names begin alike are one short listing.
//!
//! To open a file its manifest, its checksums and the other half of a pair are looked for: `tokens.bin` with
//! `tokens.bin.windrow.json` and `tokens.idx`. Each would be a request, and those that are not there two.

use futures_util::future::join_all;
use windrow_core::Result;
use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::store::{Entry, key};

use super::entries::entry_among;
use super::names::start_of;
use crate::attempt::{Attempts, Deadline};
use crate::net;
use crate::place::Place;
use crate::trouble::What;
use crate::url::Scheme;

impl Place {
    /// What is at a key that looks like a file's: asked for with what is beside it, and with the manifest of its folder. `None`
    /// where the store does not list them in this way.
    ///
    /// # Errors
    /// What the store says.
    pub(crate) fn by_name(&self, key: &str) -> Result<Option<Option<Entry>>> {
        // Web servers and the Hub list no names: nothing is asked, and nothing counted.
        if matches!(self.location().scheme, Scheme::Http | Scheme::Hf) || self.refusals.has_listing() {
            return Ok(None);
        }
        let start = start_of(key);
        if let Some(known) = self.names.known(start) {
            return Ok(known.map(|objects| entry_among(&objects, key)));
        }
        let manifest = key::below(key::folder_of(key), MANIFEST_FILE);
        let mut starts = vec![start.to_string(), start_of(&manifest).to_string()];
        starts.dedup();
        starts.retain(|start| self.names.known(start).is_none());
        let (backend, counters, url) = (self.backend()?, self.counters.get().clone(), self.url(key));
        let deadline = Deadline::within(self.options.timeout);
        let asked = starts.clone();
        let found = net::wait(async move {
            let ask = async |start: String| {
                let mut attempts = Attempts::new(deadline, &counters, "find it", &url);
                // Whoever may read an object need not be allowed to list; and what fails for now is asked for by itself, and again.
                attempts.attempt(backend.names(&start)).await.map_err(|trouble| trouble.what)
            };
            Ok(join_all(asked.into_iter().map(ask)).await)
        })?;
        for (start, found) in starts.into_iter().zip(found) {
            if found.as_ref().is_err_and(|what| *what == What::Denied) {
                self.refusals.note_listing();
            }
            self.names.keep(start, found.unwrap_or_default());
        }
        Ok(self.names.known(start).flatten().map(|objects| entry_among(&objects, key)))
    }
}
