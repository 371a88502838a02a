//! The data files behind a source: opened once, asked for their bytes by number.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Kind, Result};
use crate::format::Probe;
use crate::format::discover::natural_order;
use crate::source::FileInfo;
use crate::store::{Catalogue, Declared, Entry, Object, Store};
use xxhash_rust::xxh3::Xxh3;

/// Files that no listing tells of are opened at once up to this number; more are opened when they are first read.
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
    if probe.is_folder { keys.iter().map(|key| probe.name_of(key).to_string()).collect() } else { Vec::new() }
}

/// The error of a file that is not there any more, where nothing else is known of it.
pub fn gone(key: &str, _file: usize) -> Error {
    Error::not_found("the file is gone").at(key)
}

/// The files of a source by number.
pub struct DataFiles {
    store: Arc<dyn Store>,
    named: Names,
    objects: Vec<OnceLock<Arc<dyn Object>>>,
    missing: fn(&str, usize) -> Error,
    check: fn(&dyn Object) -> Result<()>,
    /// Where what is found of all files is declared, or noted.
    catalogue: Option<Arc<Catalogue>>,
}

/// What the files are called.
enum Names {
    Each(Vec<Named>),
    /// Rows of a listing that its store keeps.
    Rows(Arc<Catalogue>, Vec<u32>),
}

impl Names {
    fn count(&self) -> usize {
        match self {
            Names::Each(named) => named.len(),
            Names::Rows(_, rows) => rows.len(),
        }
    }

    fn key(&self, file: usize) -> Option<&str> {
        match self {
            Names::Each(named) => named.get(file).map(Named::key),
            Names::Rows(catalogue, rows) => rows.get(file).map(|row| catalogue.key(*row as usize)),
        }
    }

    // What the listing says of it, where it was listed.
    fn listed(&self, file: usize) -> Option<Cow<'_, Entry>> {
        match self {
            Names::Each(named) => match named.get(file)? {
                Named::Listed(entry) => Some(Cow::Borrowed(entry)),
                Named::Key(_) => None,
            },
            Names::Rows(catalogue, rows) => Some(Cow::Owned(catalogue.entry(*rows.get(file)? as usize))),
        }
    }

    fn listed_size(&self, file: usize) -> Option<u64> {
        match self {
            Names::Each(_) => self.listed(file).map(|entry| entry.size),
            Names::Rows(catalogue, rows) => rows.get(file).map(|row| catalogue.size(*row as usize)),
        }
    }
}

/// What is known of a file before it is opened.
enum Named {
    /// What the listing of its folder says.
    Listed(Entry),
    /// Its key alone.
    Key(String),
}

impl Named {
    fn key(&self) -> &str {
        match self {
            Named::Listed(entry) => &entry.key,
            Named::Key(key) => key,
        }
    }
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
        DataFiles::of(store, keys.into_iter().map(Named::Key).collect(), missing)
    }

    /// Opens a file that the listing of the folder describes only when it is first read; it is `Stale` if it was replaced
    /// by then. For many files of which nothing but their size is asked at first.
    ///
    /// # Errors
    /// What [`Store::open`] says of the first file that is not listed and cannot be opened.
    pub fn listed(probe: &Probe, keys: Vec<String>, missing: fn(&str, usize) -> Error) -> Result<DataFiles> {
        let named = |key: String| match probe.listed(&key) {
            Some(entry) if !probe.store.checks_when_opened() => Named::Listed(entry.clone()),
            _ => Named::Key(key),
        };
        DataFiles::of(probe.store.clone(), keys.into_iter().map(named).collect(), missing)
    }

    /// Files of which the manifest of their folder declares what opening them by this format would find: each is asked for when it is first read, and
    /// another version than the one that was listed is `Stale` then. `None` where that is not declared of all of them.
    pub fn declared(format: &str, probe: &Probe, keys: &[String]) -> Option<DataFiles> {
        let catalogue = catalogue_of(probe)?;
        catalogue.declared.as_ref().filter(|declared| declared.opened_by() == Some(format))?;
        let row = |key: &String| {
            let row = catalogue.find(key).filter(|row| catalogue.tag(*row).is_some())?;
            u32::try_from(row).ok()
        };
        let rows = keys.iter().map(row).collect::<Option<Vec<_>>>()?;
        Some(DataFiles {
            store: probe.store.clone(),
            objects: rows.iter().map(|_| OnceLock::new()).collect(),
            named: Names::Rows(catalogue.clone(), rows),
            missing: gone,
            check: |_| Ok(()),
            catalogue: Some(catalogue),
        })
    }

    /// Notes what is found of all files, where a manifest of their folder is being made.
    #[must_use]
    pub fn noted(mut self, probe: &Probe) -> DataFiles {
        self.catalogue = catalogue_of(probe);
        self
    }

    fn of(store: Arc<dyn Store>, named: Vec<Named>, missing: fn(&str, usize) -> Error) -> Result<DataFiles> {
        let objects = named.iter().map(|_| OnceLock::new()).collect();
        let named = Names::Each(named);
        let files = DataFiles { store, named, objects, missing, check: |_| Ok(()), catalogue: None };
        if files.opened_at_once() {
            (0..files.count())
                .filter(|file| files.named.listed(*file).is_none())
                .try_for_each(|file| files.get(file).map(drop))?;
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
            named: Names::Each(keys.into_iter().map(Named::Key).collect()),
            objects: objects.into_iter().map(OnceLock::from).collect(),
            missing: gone,
            check: |_| Ok(()),
            catalogue: None,
        }
    }

    /// Has `check` look at each file when it is opened.
    ///
    /// # Errors
    /// What `check` says of the first one that is open already.
    pub fn checked_by(mut self, check: fn(&dyn Object) -> Result<()>) -> Result<DataFiles> {
        self.check = check;
        self.objects.iter().filter_map(OnceLock::get).try_for_each(|object| check(object.as_ref()))?;
        Ok(self)
    }

    /// Whether those that are not listed were all opened at the start.
    pub fn opened_at_once(&self) -> bool {
        self.count() <= OPENED_AT_ONCE
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.named.count()
    }

    /// Their keys in the store.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.count()).map(|file| self.named.key(file).unwrap_or_default())
    }

    /// File `file`, opened.
    ///
    /// # Errors
    /// `OutOfRange`; what [`Store::open`] says; `Stale` where the file is not the one that was listed.
    pub fn get(&self, file: usize) -> Result<&dyn Object> {
        self.object(file).map(AsRef::as_ref)
    }

    /// File `file`, opened, for a caller that keeps it.
    ///
    /// # Errors
    /// As [`DataFiles::get`].
    pub fn object(&self, file: usize) -> Result<&Arc<dyn Object>> {
        match self.objects.get(file).and_then(OnceLock::get) {
            Some(object) => Ok(object),
            None => self.open_now(file),
        }
    }

    #[cold]
    fn open_now(&self, file: usize) -> Result<&Arc<dyn Object>> {
        let object = self.apart(file)?;
        let slot = self.at(file)?;
        Ok(slot.get_or_init(|| object))
    }

    /// File `file`, opened for the caller alone: what is read once, and need not stay open.
    ///
    /// # Errors
    /// As [`DataFiles::get`].
    pub fn apart(&self, file: usize) -> Result<Arc<dyn Object>> {
        self.at(file)?;
        let listed = self.named.listed(file);
        let opened = match &listed {
            Some(entry) => self.store.open_listed(entry),
            None => self.store.open(self.named.key(file).unwrap_or_default()),
        };
        let object = opened.map_err(|e| self.or_missing(e, file))?;
        if let Some(entry) = &listed {
            must_be_listed(object.as_ref(), entry)?;
        }
        (self.check)(object.as_ref())?;
        Ok(object)
    }

    fn at(&self, file: usize) -> Result<&OnceLock<Arc<dyn Object>>> {
        self.objects.get(file).ok_or_else(|| Error::out_of_range("file", file, self.count() as u64))
    }

    fn or_missing(&self, error: Error, file: usize) -> Error {
        match error.kind() {
            Kind::NotFound => (self.missing)(&self.name(file), file),
            _ => error,
        }
    }

    /// Asks for bytes of a file, without waiting.
    pub fn prefetch(&self, file: usize, start: u64, size: u64) {
        if let Ok(object) = self.get(file) {
            object.prefetch(start, size);
        }
    }

    /// Fills `out` with the bytes of a file from `start` on; one that is not open yet is not kept open for it.
    ///
    /// # Errors
    /// As [`DataFiles::get`] and [`Object::read`].
    pub fn peek(&self, file: usize, start: u64, out: &mut [u8]) -> Result<()> {
        let is_open = self.at(file)?.get().is_some();
        match self.named.listed(file) {
            Some(entry) if !is_open => {
                self.store.read_listed(&entry, start, out).map_err(|e| self.or_missing(e, file))
            }
            _ => self.get(file)?.read_into(start, out),
        }
    }

    /// The size of a file in bytes; one that was listed is not opened for it.
    ///
    /// # Errors
    /// `OutOfRange`; `NotFound`, `Io`.
    pub fn size(&self, file: usize) -> Result<u64> {
        match (self.at(file)?.get(), self.named.listed_size(file)) {
            (Some(object), _) => Ok(object.size()),
            (None, Some(size)) => Ok(size),
            (None, None) => {
                let entry = self.store.entry(self.named.key(file).unwrap_or_default());
                entry.map(|entry| entry.size).map_err(|e| self.or_missing(e, file))
            }
        }
    }

    /// What a person calls the file.
    pub fn name(&self, file: usize) -> String {
        match self.objects.get(file).and_then(OnceLock::get) {
            Some(object) => object.name().to_string(),
            None => self.named.key(file).map_or_else(String::new, |key| self.store.display(key)),
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
        let (decides, declared) = (hash.digest(), self.declarations());
        if let Some(found) = declared.and_then(|declared| declared.fingerprint(decides)) {
            return Ok(found);
        }
        let sampled = count.min(SAMPLED);
        for i in 0..sampled {
            hash_ends(self.get(i * count / sampled)?, &mut hash)?;
        }
        if let Some(declared) = declared {
            declared.note_fingerprint(decides, hash.digest());
        }
        Ok(hash.digest())
    }

    fn declarations(&self) -> Option<&Declared> {
        self.catalogue.as_ref()?.declared.as_ref()
    }
}

// The listing of a folder of which more is declared.
fn catalogue_of(probe: &Probe) -> Option<Arc<Catalogue>> {
    let catalogue = if probe.is_folder { probe.store.catalogue(&probe.key) } else { None };
    catalogue.filter(|catalogue| catalogue.declared.is_some())
}

// Checks that a file is still the one that was listed: a data set that is written again while it is open has files of both.
fn must_be_listed(object: &dyn Object, entry: &Entry) -> Result<()> {
    let stale = |what: String| {
        Err(Error::new(Kind::Stale, what)
            .at(object.name())
            .hint("open the data again, once nothing writes it"))
    };
    if object.size() != entry.size {
        let (found, expected) = (object.size(), entry.size);
        return stale(format!("the file has {found} bytes; it had {expected} when the data was opened"));
    }
    match (object.modified_ns(), entry.modified_ns) {
        (Some(found), Some(expected)) if found != expected => stale(format!(
            "the file was written at {found} ns since 1970; it was that of {expected} ns when the data was opened"
        )),
        _ => Ok(()),
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
