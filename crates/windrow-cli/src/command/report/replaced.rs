//! What the page may replace.

use std::fs;
use std::path::Path;

use windrow::{Error, Kind, Result};

/// Refuses what is there already, before any work is done.
pub(super) fn check(path: &Path, overwrite: bool) -> Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(_) => return Ok(()),
    };
    if found.is_dir() {
        return Err(Error::config("a folder, expected the path of a file").at(path));
    }
    match overwrite {
        true => Ok(()),
        false => Err(Error::new(Kind::Exists, "the file is there already")
            .at(path)
            .hint("--overwrite replaces it")),
    }
}
