//! Files that are open for writing: made empty, and brought to the disk.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file that is being written by somebody else's writer.
pub type Handle = File;

/// An empty file to write into; what was there is gone.
pub fn create(path: &Path) -> Result<Handle> {
    File::create(path).map_err(|e| Error::io("create the file", path, e))
}

/// A file whose bytes the operating system has and the disk may lack.
pub struct Unsynced {
    file: File,
    path: PathBuf,
}

impl Unsynced {
    pub(super) fn new(file: File, path: PathBuf) -> Unsynced {
        Unsynced { file, path }
    }

    /// Waits until the disk has them.
    pub fn sync(&self) -> Result<()> {
        sync(&self.file, &self.path, true)
    }
}

/// Brings a file to the disk, where that is asked for.
pub(super) fn sync(file: &File, path: &Path, fsync: bool) -> Result<()> {
    if fsync { file.sync_all().map_err(|e| Error::io("bring it to the disk", path, e)) } else { Ok(()) }
}
