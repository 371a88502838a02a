//! Plans as files.

use std::fs;
use std::io;
use std::path::Path;

use windrow::{Error, Recipe};

/// The plan in a file, `-` for stdin.
///
/// # Errors
/// `Io`; as [`Recipe::from_json`].
pub(crate) fn read(path: &Path) -> windrow::Result<Recipe> {
    if path.as_os_str() == "-" {
        return Recipe::read(io::stdin(), Path::new("stdin"));
    }
    let file = fs::File::open(path).map_err(|e| Error::io("read the plan", path, e))?;
    Recipe::read(file, path)
}
