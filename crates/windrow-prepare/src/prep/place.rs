//! Where a job's files lie, and how they become visible there: each whole, and none in place of another one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_core::output::{Finished, Growing, files, hex};
use windrow_core::store::{Io, Local, Object, Store, entry_if_there, key};
use windrow_core::{Error, Kind, Result};
use xxhash_rust::xxh3::Xxh3;

/// The folder of a job, on a disk or in a store.
pub trait Place: Send + Sync {
    /// What is there; its root is the folder.
    fn store(&self) -> Arc<dyn Store>;

    /// Where a file of this name is made before it is shown: nobody else makes one there.
    ///
    /// # Errors
    /// `Io`.
    fn draft(&self, name: &str) -> Result<PathBuf>;

    /// Shows a file that was made: whole, under its name, in place of nothing. One with the same bytes may be there. The draft is
    /// gone afterwards.
    ///
    /// # Errors
    /// `Exists` where another one is there; `Io`.
    fn show(&self, draft: &Path, name: &str) -> Result<()>;

    /// Writes a small file, whole, in place of what is there.
    ///
    /// # Errors
    /// `Io`.
    fn replace(&self, name: &str, text: &[u8]) -> Result<()>;

    /// Removes a file; nothing there is fine.
    ///
    /// # Errors
    /// `Io`.
    fn remove(&self, name: &str) -> Result<()>;

    /// Brings names that were shown to the disk, before the next one is.
    ///
    /// # Errors
    /// `Io`.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Whether what is made is brought to the disk before it is shown.
    fn is_durable(&self) -> bool {
        false
    }

    /// How many of its files are read at a time.
    fn at_a_time(&self) -> usize {
        8
    }

    /// What attempts left that were killed; `remove` takes it away. Of a store nothing is known to be left.
    ///
    /// # Errors
    /// `Io`.
    fn leftovers(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// A folder of this machine, or of a disk that many machines share.
pub struct Folder {
    root: PathBuf,
    folders: Vec<&'static str>,
    fsync: bool,
}

impl Folder {
    /// `folders` are those below `root` that files are shown in. `fsync`: wait for the disk.
    pub fn new(root: impl Into<PathBuf>, folders: &[&'static str], fsync: bool) -> Folder {
        Folder { root: root.into(), folders: folders.to_vec(), fsync }
    }
}

impl Place for Folder {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Local::new(&self.root).io(Io::Pread))
    }

    fn draft(&self, name: &str) -> Result<PathBuf> {
        let folder = self.root.join(key::folder_of(name));
        files::make_folder_to_stay(&folder, self.fsync)?;
        // Known to nobody else, on any machine.
        let random = RandomState::new().build_hasher().finish();
        Ok(folder.join(format!(".{}.{}", key::name_of(name), hex(random))))
    }

    fn show(&self, draft: &Path, name: &str) -> Result<()> {
        let path = self.root.join(name);
        let shown = if files::link_new(draft, &path)? {
            Ok(())
        } else {
            same(&Local::new(&self.root).io(Io::Pread), name, draft)
        };
        files::remove(draft)?;
        shown
    }

    fn replace(&self, name: &str, text: &[u8]) -> Result<()> {
        let draft = self.draft(name)?;
        files::write(&draft, text, self.fsync)?;
        files::rename(&draft, &self.root.join(name))?;
        files::sync_folder(&self.root.join(key::folder_of(name)), self.fsync)
    }

    fn remove(&self, name: &str) -> Result<()> {
        files::remove(&self.root.join(name))
    }

    fn settle(&self) -> Result<()> {
        let folders = self.folders.iter().map(|name| self.root.join(name));
        folders.filter(|folder| files::exists(folder)).try_for_each(|f| files::sync_folder(&f, self.fsync))
    }

    fn is_durable(&self) -> bool {
        self.fsync
    }

    fn leftovers(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        // Manifests are made beside the folders.
        for folder in self.folders.iter().chain([&""]) {
            let names = files::names(&self.root.join(folder))?;
            let is_left = |name: &&String| is_draft(name) || name.ends_with(RUNNING);
            left.extend(names.iter().filter(is_left).map(|name| key::below(folder, name)));
        }
        Ok(left)
    }
}

// What says of a task that it runs.
const RUNNING: &str = ".running.json";

// As `draft` names them.
fn is_draft(name: &str) -> bool {
    let random = name.strip_prefix('.').and_then(|name| name.rsplit_once('.')).map(|(_, random)| random);
    random.is_some_and(|random| random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// That what is there has the bytes of what was made.
///
/// # Errors
/// `Exists` naming it.
fn same(store: &dyn Store, name: &str, draft: &Path) -> Result<()> {
    let hash = |object: &dyn Object| -> Result<(u64, u64)> {
        let (mut hash, mut at, mut scratch) = (Xxh3::new(), 0, Vec::new());
        while at < object.size() {
            let bytes = object.read(at, (object.size() - at).min(1 << 20) as usize, &mut scratch)?;
            hash.update(bytes);
            at += bytes.len() as u64;
        }
        Ok((object.size(), hash.digest()))
    };
    let there = hash(store.open(name)?.as_ref())?;
    let made = hash(Local::new(draft).io(Io::Pread).open("")?.as_ref())?;
    if there == made {
        Ok(())
    } else {
        Err(Error::new(
            Kind::Exists,
            format!(
                "it has {} bytes with hash {}, this run made {} with {}",
                there.0,
                hex(there.1),
                made.0,
                hex(made.1)
            ),
        )
        .at(store.display(name)))
    }
}

/// A file on its way: it grows as a draft, and is shown under its name.
pub(super) struct Draft<'p> {
    place: &'p dyn Place,
    name: String,
    path: PathBuf,
    file: Option<Growing>,
}

impl<'p> Draft<'p> {
    pub(super) fn begin(place: &'p dyn Place, name: String) -> Result<Draft<'p>> {
        let path = place.draft(&name)?;
        let file = Some(Growing::create(&path)?);
        Ok(Draft { place, name, path, file })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.write(bytes))
    }

    /// Completes it, not shown yet.
    pub(super) fn finish(&mut self) -> Result<Finished> {
        match self.file.take() {
            Some(file) => file.finish(self.place.is_durable()),
            None => Err(Error::config("the file was finished before").at(&self.path)),
        }
    }

    pub(super) fn show(self) -> Result<()> {
        self.place.show(&self.path, &self.name)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After it was shown it is gone; an error of tidying up would hide the one that led here.
        let _ = files::remove(&self.path);
    }
}

/// Whether a file is there.
pub(super) fn is_there(place: &dyn Place, name: &str) -> Result<bool> {
    Ok(entry_if_there(place.store().as_ref(), name)?.is_some_and(|entry| !entry.is_folder))
}

/// Removes what killed attempts left: how many files.
///
/// # Errors
/// `Io`.
pub fn clean(place: &dyn Place) -> Result<u64> {
    let left = place.leftovers()?;
    left.iter().try_for_each(|name| place.remove(name))?;
    Ok(left.len() as u64)
}
