//! What `--overwrite` replaces: what windrow writes itself, and nothing else.

use crate::manifest::MANIFEST_FILE;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::format;
use crate::manifest::CHECKSUMS_FILE;
use crate::output::files;

/// That what is at `path` is a folder of nothing but names that are windrow's own, or nothing.
///
/// # Errors
/// `Exists` naming what is something else.
pub(super) fn folder(path: &Path, is_own: impl Fn(&str) -> bool) -> Result<()> {
    if !files::exists(path) {
        return Ok(());
    }
    match files::names(path) {
        Ok(names) => {
            names.iter().find(|name| !is_own(name)).map_or(Ok(()), |name| Err(left(&path.join(name))))
        }
        Err(_) => Err(left(path)),
    }
}

/// That what is at `path` is no folder.
///
/// # Errors
/// `Exists`.
pub(super) fn file(path: &Path) -> Result<()> {
    match path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        true => Err(left(path)),
        false => Ok(()),
    }
}

/// Whether an index folder has a file or folder of this name.
pub(super) fn is_of_index(name: &str) -> bool {
    [
        format::FILE_LIST,
        format::LOCATIONS,
        format::SAMPLE_SCHEMA,
        MANIFEST_FILE,
        CHECKSUMS_FILE,
        format::EXPANDED,
    ]
    .contains(&name)
}

fn left(path: &Path) -> Error {
    Error::new(Kind::Exists, "something else is where the output goes")
        .at(path)
        .hint("--overwrite (overwrite=True) replaces what windrow wrote and nothing else: write elsewhere, or remove it")
}
