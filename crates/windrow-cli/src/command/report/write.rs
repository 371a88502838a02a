//! The page's way to disk: complete under its name, or not there at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

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

/// Writes beside it, then renames.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let Some(name) = path.file_name() else {
        return Err(Error::config("expected the path of a file").at(path));
    };
    let beside: PathBuf =
        path.with_file_name(format!(".{}.tmp-{}", name.to_string_lossy(), std::process::id()));
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|e| {
        // Nothing else names it; what cannot be removed is small.
        let _ = fs::remove_file(&beside);
        Error::io("write the page", path, e)
    })
}
