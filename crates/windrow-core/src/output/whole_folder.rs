//! A folder that is written beside its place: readers see the old one or the new one, whole.

use std::path::{Path, PathBuf};

use super::absolute::absolute;
use super::files;
use super::growing::hash_of;
use super::site::Site;
use super::taken::exists;
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
    pub fn begin(out: &Path, fsync: bool) -> Result<WholeFolder> {
        let out = absolute("write to", out)?;
        let (Some(parent), Some(name)) = (out.parent(), out.file_name().and_then(|n| n.to_str())) else {
            return Err(Error::config("expected the path of a folder").at(out));
        };
        let site = Site::start_over(parent, name, fsync)?;
        let work = site.work(&hash_of(name))?;
        site.discard(&work)?;
        files::make_folder(&work)?;
        let files = WorkFolder::with_checksums_at(work.join(name), fsync)?;
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
            return Err(exists(&self.out));
        }
        self.files.finish_checksums()?;
        self.files.sync()?;
        self.site.commit(&self.work, &[&self.name], &[], overwrite)
    }
}

impl Drop for WholeFolder {
    fn drop(&mut self) {
        // After a commit it is gone already; an error of tidying up would hide the one that led here.
        let _ = self.site.discard(&self.work);
    }
}
