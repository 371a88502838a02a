//! A folder that is written beside its place: readers see the old one or the new one, whole.

use std::path::{Path, PathBuf};

use super::files;
use super::growing::hash_of;
use super::site::{self, Site};
use super::work_folder::WorkFolder;
use crate::error::{Error, Result};

/// A folder in the making. Dropped before [`WholeFolder::finish`], it leaves nothing behind.
///
/// ```
/// # use windrow_core::output::WholeFolder;
/// # let dir = tempfile::tempdir().unwrap();
/// let out = dir.path().join("data");
/// let mut folder = WholeFolder::begin(&out, true)?;
/// folder.files().write("part/a.txt", b"text")?;
/// assert!(!out.exists());
/// folder.finish(false)?;
/// assert_eq!(std::fs::read(out.join("part/a.txt")).unwrap(), b"text");
/// assert!(out.join("windrow.sums").exists());
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct WholeFolder {
    site: Site,
    work: PathBuf,
    name: String,
    out: PathBuf,
    files: WorkFolder,
}

impl WholeFolder {
    /// Begins what will be at `out`; nobody else writes there meanwhile.
    ///
    /// # Errors
    /// `Exists` when another run is writing there; `Config` when `out` has no name; `Io`.
    pub fn begin(out: &Path, durable: bool) -> Result<WholeFolder> {
        let out = std::path::absolute(out).map_err(|e| Error::io("find it", out, e))?;
        let (Some(parent), Some(name)) = (out.parent(), out.file_name().and_then(|n| n.to_str())) else {
            return Err(Error::config("expected the path of a folder").at(out));
        };
        let site = Site::enter_anew(parent, name, durable)?;
        let work = site.work(&hash_of(name))?;
        files::remove(&work)?;
        files::make_folder(&work)?;
        let files = WorkFolder::with_checksums_at(work.join(name), durable)?;
        Ok(WholeFolder { site, work, name: name.to_string(), out, files })
    }

    /// Where it will be.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Whether something is there already.
    pub fn is_there(&self) -> bool {
        files::exists(&self.out)
    }

    /// The folder, to write into; what is written takes the place of what was kept.
    pub fn files(&mut self) -> &mut WorkFolder {
        &mut self.files
    }

    /// Makes it visible, in place of what is there where `overwrite` says so, with the block checksums of its files.
    ///
    /// # Errors
    /// `Exists`, `Io`. What is there is then as it was.
    pub fn finish(mut self, overwrite: bool) -> Result<()> {
        if !overwrite && self.is_there() {
            return Err(site::exists(&self.out));
        }
        self.files.finish_checksums()?;
        self.files.sync()?;
        self.site.commit(&self.work, &[&self.name], overwrite)
    }
}

/// Writes a whole small file beside what else is there, in place of what has its name: it is seen whole, or not at all.
/// What a killed run leaves goes when the same file is written again.
///
/// ```
/// # use windrow_core::output::write_whole;
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("page.html");
/// write_whole(&path, b"old")?;
/// write_whole(&path, b"new")?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"new");
/// # Ok::<(), windrow_core::Error>(())
/// ```
///
/// # Errors
/// `Exists` when another run is writing it; `NotFound` without the folder that it goes into; `Io`.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = std::path::absolute(path).map_err(|e| Error::io("find it", path, e))?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::config("expected the path of a file").at(path));
    };
    if !folder.is_dir() {
        return Err(Error::not_found("the folder that it goes into is not there").at(path));
    }
    let (unfinished, _lock) = site::unfinished(folder, &name.to_string_lossy())?;
    let written = files::write(&unfinished, bytes, true)
        .and_then(|_| files::rename(&unfinished, &path))
        .and_then(|()| files::sync_folder(folder, true));
    if written.is_err() {
        // An error of tidying up would hide this one.
        let _ = files::remove(&unfinished);
    }
    written
}

impl Drop for WholeFolder {
    fn drop(&mut self) {
        // After a commit it is gone already; an error of tidying up would hide the one that led here.
        let _ = files::remove(&self.work);
    }
}
