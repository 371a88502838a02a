//! A folder of a place, listed once: by its manifest, where that lists it, or by the store.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::store::{Catalogue, key, without_secrets};

use super::entries::{Lacks, Listed, entry};
use super::manifest;
use crate::attempt::{Attempts, Deadline};
use crate::backend::Meta;
use crate::net;
use crate::place::Place;
use crate::trouble::What;

/// From this number of objects on, a manifest is worth its while.
const MANY: usize = 10_000;

impl Place {
    /// All objects below a folder, sorted by key; asked for once. A manifest that lists them is believed until they are read.
    pub(crate) fn list(&self, prefix: &str) -> Result<Arc<Catalogue>> {
        if let Some(known) = self.listed().iter().find(|listed| listed.folder == prefix) {
            return Ok(known.objects.clone());
        }
        let manifested = manifest::objects(self, prefix)?;
        if let Some(found) = manifested {
            return Ok(self.keep_listed(prefix, found));
        }
        let objects = match self.list_again(prefix) {
            // What manifests name is all that is known then.
            Err(refused) if self.refusals.has_listing() => {
                let of_data = manifest::objects_of_data(self, prefix).ok().flatten();
                let found = of_data.or_else(|| self.listed_above(prefix));
                let Some(found) = found else { return Err(refused) };
                return Ok(self.keep_listed(prefix, found));
            }
            listed => listed?,
        };
        self.tell_of_many(prefix, &objects);
        Ok(objects)
    }

    // What a folder above it, which was listed, has below it.
    fn listed_above(&self, prefix: &str) -> Option<manifest::Objects> {
        let listed = self.listed();
        let above =
            listed.iter().find(|above| key::is_below(&above.folder, prefix) && above.lacks != Lacks::Most)?;
        let objects: Vec<Meta> = below(&above.objects, prefix).collect();
        (!objects.is_empty()).then_some(manifest::Objects { objects, lacks: above.lacks, declared: None })
    }

    /// What the store itself lists below a folder, sorted by key.
    pub(crate) fn list_again(&self, prefix: &str) -> Result<Arc<Catalogue>> {
        let objects = self.ask_list(prefix)?;
        Ok(self.keep_listed(prefix, manifest::Objects { objects, lacks: Lacks::Nothing, declared: None }))
    }

    fn keep_listed(&self, folder: &str, found: manifest::Objects) -> Arc<Catalogue> {
        let manifest::Objects { objects, lacks, declared } = found;
        let objects = Arc::new(Catalogue::new(objects.into_iter().map(entry).collect(), declared));
        let mut listed = self.listed();
        listed.retain(|listed| listed.folder != folder);
        listed.push(Listed::new(folder, objects.clone(), lacks));
        objects
    }

    fn tell_of_many(&self, prefix: &str, objects: &Catalogue) {
        let manifest = key::below(prefix, MANIFEST_FILE);
        if objects.len() > MANY && objects.find(&manifest).is_none() {
            let url = without_secrets(&self.url(prefix));
            windrow_core::warn!(
                "{url} holds {} objects, and every process lists them all: `windrow manifest {url}` writes a list once",
                objects.len()
            );
        }
    }

    fn ask_list(&self, prefix: &str) -> Result<Vec<Meta>> {
        self.ask_pages(prefix)?.inspect_err(|_| self.refusals.note_listing())
    }

    // What is refused is the inner error.
    fn ask_pages(&self, prefix: &str) -> Result<Result<Vec<Meta>>> {
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
                    Ok(()) => return Ok(Ok(found)),
                    Err(trouble) if trouble.what == What::Denied => {
                        return Ok(Err(trouble.into_error("list the folder", &url)));
                    }
                    Err(trouble) => attempts.after(trouble).await?,
                }
            }
        })
    }
}

// The objects of a listing that are below a folder.
fn below<'c>(objects: &'c Catalogue, folder: &'c str) -> impl Iterator<Item = Meta> + 'c {
    let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let entries = (objects.from(&start)..objects.len()).map(|at| objects.entry(at));
    let entries = entries.take_while(move |entry| entry.key.starts_with(&start));
    entries.map(|entry| Meta { key: entry.key, size: entry.size, tag: entry.tag, hash: None })
}
