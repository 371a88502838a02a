//! A folder that nobody sees yet: whole files, each in place of what was there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::atomic;
use super::disk::Disk;
use crate::error::Result;
use crate::format::FileRow;

/// Files below a hidden folder; arms write through it.
pub struct WorkFolder {
    root: PathBuf,
    durable: bool,
    disk: Disk,
    folders: BTreeSet<PathBuf>,
}

impl WorkFolder {
    /// Makes the folder, where it is not there.
    pub(super) fn at(root: PathBuf, durable: bool) -> Result<WorkFolder> {
        let mut folder = WorkFolder { root, durable, disk: Disk::new(durable), folders: BTreeSet::new() };
        folder.make("")?;
        Ok(folder)
    }

    /// Writes a file, whole, in place of one that is there; its size and hash. [`WorkFolder::sync`] waits until
    /// it is on the disk.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<FileRow> {
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.make(folder)?;
        }
        // Renamed to its place: another folder may share the bytes that are there.
        let row = atomic::replace_on(&self.place(name), bytes, &mut self.disk)?;
        Ok(FileRow { name: name.to_string(), modified_ns: None, ..row })
    }

    /// All of a small file, where there is one.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        atomic::read(&self.place(name))
    }

    /// Size in bytes of a file, where there is one.
    pub fn size(&self, name: &str) -> Option<u64> {
        atomic::size(&self.place(name))
    }

    /// Removes a file; nothing there is fine.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove(&self, name: &str) -> Result<()> {
        atomic::remove(&self.place(name))
    }

    /// The same file as one elsewhere, without copying it where the disk can do that.
    pub(super) fn link(&mut self, from: &Path, name: &str) -> Result<()> {
        atomic::link(from, &self.place(name))
    }

    pub(super) fn make(&mut self, folder: &str) -> Result<()> {
        let place = if folder.is_empty() { self.root.clone() } else { self.place(folder) };
        if !self.folders.contains(&place) {
            atomic::make_folder(&place)?;
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
        self.folders.iter().try_for_each(|folder| atomic::sync_folder(folder, self.durable))
    }

    fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}
