//! The lock of a task: one run at a time writes to a place.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::error::{Error, Kind, Result};

/// Held while a task writes; the file is gone afterwards.
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock or says at once that somebody else has it.
    ///
    /// # Errors
    /// `Exists` when another run holds it.
    pub fn take(path: PathBuf) -> Result<Self> {
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(|e| Error::io("create the lock file", &path, e))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::new(Kind::Exists, "another windrow is writing here")
                        .at(&path)
                        .hint("wait until it has ended, or write elsewhere"));
                }
                Err(TryLockError::Error(e)) => {
                    return Err(Error::io("lock the file", &path, e).hint(
                        "a file system without locks cannot be prepared on: write elsewhere and copy it",
                    ));
                }
            }
            // Its last holder may have removed the name between our opening and our locking.
            let held = file.metadata().map_err(|e| Error::io("ask for the lock file", &path, e))?;
            match fs::metadata(&path) {
                Ok(named) if (named.dev(), named.ino()) == (held.dev(), held.ino()) => {
                    return Ok(Lock { path, _file: file });
                }
                _ => continue,
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is still held, so that nobody removes another one's. A name that stays is harmless.
        let _ = fs::remove_file(&self.path);
    }
}
