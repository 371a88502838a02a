//! The errors for an output whose place is taken.

use std::path::Path;

use crate::error::{Error, Kind};

/// The error for an output that is there already, and is not what would be written.
pub fn differs(path: &Path) -> Error {
    there(path, "the output exists already, from other inputs or options")
}

/// The error for an output that is there already, whatever it was made of.
pub fn exists(path: &Path) -> Error {
    there(path, "the output exists already")
}

fn there(path: &Path, message: &str) -> Error {
    Error::new(Kind::Exists, message).at(path).hint("write elsewhere, or replace it with @overwrite=true@")
}
