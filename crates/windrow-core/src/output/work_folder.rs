//! A folder that nobody sees yet: whole files, each in place of what was there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::checksums::FolderChecksums;
use super::disk::Disk;
use super::files;
use crate::error::Result;
use crate::manifest::{CHECKSUMS_FILE, Checksums, MANIFEST_FILE};
use crate::store::{Local, Store, key, open_if_there};

/// Files below a hidden folder; other crates write through it.
pub struct WorkFolder {
    root: PathBuf,
    fsync: bool,
    disk: Disk,
    folders: BTreeSet<PathBuf>,
    /// Those of what was written, where they are kept.
    sums: Option<FolderChecksums>,
}

impl WorkFolder {
    /// Makes the folder, where it is not there.
    pub fn at(root: PathBuf, fsync: bool) -> Result<WorkFolder> {
        let (disk, folders) = (Disk::new(fsync), BTreeSet::new());
        let mut folder = WorkFolder { root, fsync, disk, folders, sums: None };
        folder.make("")?;
        Ok(folder)
    }

    /// Makes the folder, where it is not there; its files get block checksums.
    pub fn with_checksums_at(root: PathBuf, fsync: bool) -> Result<WorkFolder> {
        // Beside the folder, which becomes visible.
        let mut on_the_way = root.clone().into_os_string();
        on_the_way.push(format!(".{CHECKSUMS_FILE}"));
        let folder = Self::at(root, fsync)?;
        Ok(WorkFolder { sums: Some(FolderChecksums::create(on_the_way.into())?), ..folder })
    }

    /// Writes a file, whole, in place of one that is there. [`WorkFolder::sync`] waits until it is on the disk.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.make(folder)?;
        }
        // Renamed to its place: another folder may share the bytes that are there.
        let written = files::replace_on(&self.place(name), bytes, &mut self.disk)?;
        match &mut self.sums {
            // It has a hash of its own.
            Some(sums) if name != MANIFEST_FILE => sums.add(name, written.row.size, &written.sums),
            _ => Ok(()),
        }
    }

    /// Takes note of a file that an earlier run wrote, as it is found; its size.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub fn found(&mut self, name: &str) -> Result<u64> {
        let object = Local::new(&self.root).open(name)?;
        match &mut self.sums {
            Some(sums) => sums.add_found(name, object.as_ref()),
            None => Ok(object.size()),
        }
    }

    /// Writes the block checksums of all files beside them, where they are kept: nothing is written after them.
    ///
    /// # Errors
    /// `Io`.
    pub fn finish_checksums(&mut self) -> Result<()> {
        let to = self.place(CHECKSUMS_FILE);
        self.sums.take().map_or(Ok(()), |sums| sums.finish(&to, &mut self.disk))
    }

    /// All of a small file, where there is one.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        files::read(&self.place(name))
    }

    /// Size in bytes of a file, where there is one.
    pub fn size(&self, name: &str) -> Option<u64> {
        files::size(&self.place(name))
    }

    /// Removes a file; nothing there is fine.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        if let Some(sums) = &mut self.sums {
            sums.remove(name);
        }
        files::remove(&self.place(name))
    }

    /// Links a file from elsewhere, without copying it where the disk can do that; `before` are its block checksums there.
    pub(super) fn link(&mut self, from: &Path, name: &str, before: Option<&Checksums>) -> Result<()> {
        if let (Some(sums), Some(before)) = (&mut self.sums, before) {
            sums.take_over(name, before)?;
        }
        files::link_on(from, &self.place(name), &mut self.disk)
    }

    /// Takes over every file of a folder, without copying it where the disk can do that, and the block checksums of those
    /// that have some.
    ///
    /// # Errors
    /// `Io`; `Corrupt` for block checksums that are none.
    pub fn take_over(&mut self, from: &Path) -> Result<()> {
        let before = open_if_there(&Local::new(from), CHECKSUMS_FILE)?.map(Checksums::open).transpose()?;
        let mut below = vec![String::new()];
        while let Some(folder) = below.pop() {
            self.make(&folder)?;
            for name in files::names(&from.join(&folder))? {
                let key = key::below(&folder, &name);
                let file = from.join(&key);
                if file.is_dir() {
                    below.push(key)
                } else if key == CHECKSUMS_FILE {
                    // Written again, for all files.
                } else {
                    self.link(&file, &key, before.as_ref())?
                }
            }
        }
        Ok(())
    }

    /// Makes a folder below it, and those above.
    ///
    /// # Errors
    /// `Io`.
    pub fn make(&mut self, folder: &str) -> Result<()> {
        let place = if folder.is_empty() { self.root.clone() } else { self.place(folder) };
        if !self.folders.contains(&place) {
            files::make_folder(&place)?;
            self.folders.insert(place);
        }
        Ok(())
    }

    /// Waits until all that was written is on the disk, and the names in all its folders.
    ///
    /// # Errors
    /// `Io`.
    pub fn sync(&mut self) -> Result<()> {
        self.disk.wait()?;
        self.folders.iter().try_for_each(|folder| files::sync_folder(folder, self.fsync))
    }

    fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}
