//! What is where a URL leads: names and sizes, whose it is, and a picture of it on the local disk that the checks of a path
//! are made on.

use std::collections::BTreeMap;
use std::path::Path;

use windrow_core::manifest::{MANIFEST_FILE, MOST_BYTES, unfinished_by};
use windrow_core::output::files;
use windrow_core::store::{Entry, Store, Walked, entry_if_there, key, read_small};
use windrow_core::{Kind, Result};
use windrow_remote::{Location, Remote};

use super::shape::Shape;

/// The store, and where the data set is in it.
pub(super) struct Place {
    pub(super) store: Remote,
    pub(super) location: Location,
    pub(super) shape: Shape,
}

/// Whose the data set is that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Nobodys,
    /// Begun by this run, or one that makes the same, and not finished.
    Ours,
    /// Begun by another one, and not finished.
    Unfinished,
    /// Something, that is looked at more closely.
    Others,
}

impl Place {
    /// The key of an object of the data set.
    pub(super) fn key_of(&self, object: &str) -> String {
        let key = &self.location.key;
        if self.shape.is_folder() {
            match object.strip_prefix(self.shape.name()) {
                Some(rest) => key::below(key, rest.trim_start_matches('/')),
                None => key.clone(),
            }
        } else {
            key::below(key::folder_of(key), object)
        }
    }

    /// What a person calls it.
    pub(super) fn url_of(&self, object: &str) -> String {
        match self.key_of(object) {
            key if key.is_empty() => self.location.root.clone(),
            key => self.store.display(&key),
        }
    }

    /// The objects that are there, with their sizes: of a folder all of them.
    ///
    /// # Errors
    /// What the store says; that there is no bucket.
    pub(super) fn objects(&self) -> Result<BTreeMap<String, u64>> {
        let (store, key) = (&self.store, &self.location.key);
        let Shape::Beside { names, given } = &self.shape else {
            let name = self.shape.name();
            let found = match store.walk_all(key) {
                // An object is there, though no reader takes it for data.
                Ok(Walked { entries, hidden }) => {
                    let is_dotted = |entry: &Entry| entry.key.split('/').any(|part| part.starts_with('.'));
                    entries.into_iter().chain(hidden.into_iter().filter(|entry| !is_dotted(entry))).collect()
                }
                // What follows would be in vain.
                Err(e) if e.kind() != Kind::NotFound || e.message().contains("NoSuchBucket") => {
                    return Err(e);
                }
                Err(_) => Vec::new(),
            };
            let below = |entry: &Entry| {
                let rest = entry.key.strip_prefix(key.as_str()).unwrap_or(&entry.key);
                (key::below(name, rest.trim_start_matches('/')), entry.size)
            };
            let mut objects: BTreeMap<String, u64> = found.iter().map(below).collect();
            if objects.is_empty()
                && !key.is_empty()
                && let Some(file) = entry_if_there(store, key)?
            {
                objects.insert(name.to_string(), file.size);
            }
            return Ok(objects);
        };
        let mut objects = BTreeMap::new();
        for name in names.iter().chain([given]) {
            match entry_if_there(store, &self.key_of(name))? {
                Some(entry) if entry.is_folder => drop(objects.insert(key::below(name, "…"), 0)),
                Some(entry) => drop(objects.insert(name.clone(), entry.size)),
                None => {}
            }
        }
        Ok(objects)
    }

    /// Whose these objects are; `run` is what this one is known by.
    ///
    /// # Errors
    /// What reading a manifest says.
    pub(super) fn whose(&self, objects: &BTreeMap<String, u64>, run: &str) -> Result<Whose> {
        if objects.is_empty() {
            return Ok(Whose::Nobodys);
        }
        let manifest = self.shape.manifest().filter(|manifest| objects.contains_key(manifest));
        let text = manifest.map(|manifest| self.small(&manifest)).transpose()?;
        Ok(match text.and_then(|text| unfinished_by(&text)) {
            Some(found) if found == run => Whose::Ours,
            Some(_) => Whose::Unfinished,
            None => Whose::Others,
        })
    }

    /// Puts files of the same names into a local folder: manifests, and what may hold one, as they are, all others without content.
    ///
    /// # Errors
    /// What reading a manifest says; `Io`.
    pub(super) fn picture(&self, objects: &BTreeMap<String, u64>, folder: &Path) -> Result<()> {
        // Where one file in JSON describes all others, the manifest is in it.
        let mut described = objects.keys().filter(|object| object.ends_with(".json"));
        let only = described.next().filter(|_| described.next().is_none());
        for (object, size) in objects {
            let path = folder.join(object);
            path.parent().map_or(Ok(false), files::make_folder)?;
            let is_told = object.ends_with(MANIFEST_FILE) || (only == Some(object) && *size <= MOST_BYTES);
            let text = if is_told { self.small(object)? } else { Vec::new() };
            files::write(&path, &text, false)?;
        }
        Ok(())
    }

    fn small(&self, object: &str) -> Result<Vec<u8>> {
        read_small(self.store.open(&self.key_of(object))?.as_ref(), MOST_BYTES)
    }
}
