//! A folder of a place, listed once: by its manifest, where that lists it, or by the store.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::store::{key, without_secrets};

use super::entries::{Lacks, Listed};
use super::manifest;
use crate::attempt::{Attempts, Deadline};
use crate::backend::Meta;
use crate::net;
use crate::place::Place;

/// From this number of objects on, a manifest is worth its while.
const MANY: usize = 10_000;

impl Place {
    /// All objects below a folder, sorted by key; asked for once. A manifest that lists them is believed until they are read.
    pub(crate) fn list(&self, prefix: &str) -> Result<Arc<Vec<Meta>>> {
        if let Some(known) = self.listed().iter().find(|listed| listed.folder == prefix) {
            return Ok(known.objects.clone());
        }
        let manifested = manifest::objects(self, prefix)?;
        if let Some(manifest::Objects { objects, lacks }) = manifested {
            return Ok(self.keep_listed(prefix, objects, lacks));
        }
        let objects = self.list_again(prefix)?;
        self.tell_of_many(prefix, &objects);
        Ok(objects)
    }

    /// What the store itself lists below a folder, sorted by key.
    pub(crate) fn list_again(&self, prefix: &str) -> Result<Arc<Vec<Meta>>> {
        let objects = self.ask_list(prefix)?;
        Ok(self.keep_listed(prefix, objects, Lacks::Nothing))
    }

    fn keep_listed(&self, folder: &str, mut objects: Vec<Meta>, lacks: Lacks) -> Arc<Vec<Meta>> {
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        let objects = Arc::new(objects);
        let mut listed = self.listed();
        listed.retain(|listed| listed.folder != folder);
        listed.push(Listed { folder: folder.to_string(), objects: objects.clone(), lacks });
        objects
    }

    fn tell_of_many(&self, prefix: &str, objects: &[Meta]) {
        let manifest = key::below(prefix, MANIFEST_FILE);
        if objects.len() > MANY && !objects.iter().any(|meta| meta.key == manifest) {
            let url = without_secrets(&self.url(prefix));
            windrow_core::warn!(
                "{url} holds {} objects, and every process lists them all: `windrow manifest {url}` writes a list once",
                objects.len()
            );
        }
    }

    fn ask_list(&self, prefix: &str) -> Result<Vec<Meta>> {
        let (backend, url, counters) = (self.backend()?, self.url(prefix), self.counters.get().clone());
        let (timeout, prefix) = (self.options.timeout, prefix.to_string());
        net::wait(async move {
            let mut attempts = Attempts::new(Deadline::within(timeout), &counters, "list the folder", &url);
            let mut found = Vec::new();
            loop {
                let before = found.len();
                let listed = attempts.attempt(backend.list(&prefix, &mut found)).await;
                if found.len() > before {
                    attempts.again_within(timeout);
                }
                match listed {
                    Ok(()) => return Ok(found),
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }
}
