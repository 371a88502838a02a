//! What `--overwrite` replaces: what windrow writes itself, and nothing else.

use std::path::Path;

use super::files;
use crate::error::{Error, Kind, Result};

/// That what is at `path` is a folder of nothing but names that are windrow's own, or nothing.
///
/// # Errors
/// `Exists` naming what is something else.
pub fn folder(path: &Path, is_own: impl Fn(&str) -> bool) -> Result<()> {
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

/// That what is at `path` is not a folder.
///
/// # Errors
/// `Exists`.
pub fn file(path: &Path) -> Result<()> {
    match path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        true => Err(left(path)),
        false => Ok(()),
    }
}

fn left(path: &Path) -> Error {
    Error::new(Kind::Exists, "something else is where the output goes")
        .at(path)
        .hint("--overwrite (overwrite=True) replaces what windrow wrote and nothing else: write elsewhere, or remove it")
}
