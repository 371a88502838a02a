//! The data files behind a source: opened once, asked for their bytes by number.

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Kind, Result};
use crate::format::Probe;
use crate::format::discover::natural_order;
use crate::source::FileInfo;
use crate::store::{Object, Store};
use xxhash_rust::xxh3::Xxh3;

/// Files up to this number are opened at once; more are opened when they are first read.
pub const OPENED_AT_ONCE: usize = 4096;
/// Rows of an index up to this number are all checked when it is opened; of more, each is checked when it is used.
pub const CHECKED_AT_ONCE: u64 = 1_000_000;

/// The key of a file, or those of the files directly in a folder in natural order, whose names `is_data`.
pub fn top_files(probe: &Probe, is_data: impl Fn(&str) -> bool) -> Vec<String> {
    if !probe.is_folder {
        return Some(probe.key.clone()).filter(|key| is_data(key)).into_iter().collect();
    }
    let top = probe.names().filter(|name| !name.contains('/') && is_data(name));
    let mut keys: Vec<String> = top.map(|name| probe.below(name)).collect();
    keys.sort_by(|a, b| natural_order(a, b));
    keys
}

/// The names of these files where they are those of a folder: words in them may tell splits apart.
pub fn names_to_join(probe: &Probe, keys: &[String]) -> Vec<String> {
    match probe.is_folder {
        true => keys.iter().map(|key| probe.name_of(key).to_string()).collect(),
        false => Vec::new(),
    }
}

/// The files of a source by number.
pub struct DataFiles {
    store: Arc<dyn Store>,
    keys: Vec<String>,
    objects: Vec<OnceLock<Arc<dyn Object>>>,
    missing: fn(&str, usize) -> Error,
}

impl DataFiles {
    /// The files with these keys; `missing` says what a file that is not there means, given its key and number.
    ///
    /// # Errors
    /// What [`Store::open`] says of the first file that cannot be opened.
    pub fn open(
        store: Arc<dyn Store>,
        keys: Vec<String>,
        missing: fn(&str, usize) -> Error,
    ) -> Result<DataFiles> {
        let files =
            DataFiles { objects: keys.iter().map(|_| OnceLock::new()).collect(), store, keys, missing };
        if files.opened_at_once() {
            for file in 0..files.count() {
                files.get(file)?;
            }
        }
        Ok(files)
    }

    /// Files that are opened already.
    pub fn from_objects(
        store: Arc<dyn Store>,
        keys: Vec<String>,
        objects: Vec<Arc<dyn Object>>,
    ) -> DataFiles {
        DataFiles {
            store,
            keys,
            objects: objects.into_iter().map(OnceLock::from).collect(),
            missing: |key, _| Error::not_found("the file is gone").at(key),
        }
    }

    /// Whether all of them were opened at the start.
    pub fn opened_at_once(&self) -> bool {
        self.keys.len() <= OPENED_AT_ONCE
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Their keys in the store.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// File `file`, opened.
    ///
    /// # Errors
    /// `OutOfRange`; what [`Store::open`] says.
    pub fn get(&self, file: usize) -> Result<&dyn Object> {
        let (Some(key), Some(slot)) = (self.keys.get(file), self.objects.get(file)) else {
            return Err(Error::out_of_range("file", file, self.keys.len() as u64));
        };
        if let Some(object) = slot.get() {
            return Ok(object.as_ref());
        }
        let object = self.store.open(key).map_err(|e| match e.kind() {
            Kind::NotFound => (self.missing)(&self.store.display(key), file),
            _ => e,
        })?;
        Ok(slot.get_or_init(|| object).as_ref())
    }

    /// The same, to keep.
    ///
    /// # Errors
    /// As [`DataFiles::get`].
    pub fn shared(&self, file: usize) -> Result<Arc<dyn Object>> {
        self.get(file)?;
        let slot = self.objects.get(file).and_then(OnceLock::get);
        slot.cloned().ok_or_else(|| Error::out_of_range("file", file, self.keys.len() as u64))
    }

    /// What a person calls the file.
    pub fn name(&self, file: usize) -> String {
        match self.objects.get(file).and_then(OnceLock::get) {
            Some(object) => object.name().to_string(),
            None => self.keys.get(file).map_or_else(String::new, |key| self.store.display(key)),
        }
    }

    /// Names and sizes; 0 for a file that cannot be found any more.
    pub fn infos(&self) -> Vec<FileInfo> {
        (0..self.count())
            .map(|file| FileInfo { file: self.name(file), size: self.size(file).unwrap_or(0) })
            .collect()
    }

    /// A hash of all sizes and of the ends of at most 64 files, on top of what `claims` says: the same for a copy.
    ///
    /// # Errors
    /// `Io`, `NotFound`.
    pub fn fingerprint(&self, claims: &[&[u8]]) -> Result<u64> {
        const SAMPLED: usize = 64;
        let mut hash = Xxh3::new();
        for claim in claims {
            hash.update(&(claim.len() as u64).to_le_bytes());
            hash.update(claim);
        }
        let count = self.count();
        hash.update(&(count as u64).to_le_bytes());
        for file in 0..count {
            hash.update(&self.size(file)?.to_le_bytes());
        }
        let sampled = count.min(SAMPLED);
        for i in 0..sampled {
            hash_ends(self.get(i * count / sampled)?, &mut hash)?;
        }
        Ok(hash.digest())
    }

    fn size(&self, file: usize) -> Result<u64> {
        match self.objects.get(file).and_then(OnceLock::get) {
            Some(object) => Ok(object.size()),
            None => match self.keys.get(file) {
                Some(key) => Ok(self.store.entry(key)?.size),
                None => Err(Error::out_of_range("file", file, self.keys.len() as u64)),
            },
        }
    }
}

/// The first and the last 4 KiB of an object.
pub fn hash_ends(object: &dyn Object, hash: &mut Xxh3) -> Result<()> {
    let part = object.size().min(4096);
    let mut scratch = Vec::new();
    for start in [0, object.size() - part] {
        hash.update(object.read(start, part as usize, &mut scratch)?);
    }
    Ok(())
}
