//! A path of this machine, from the root.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::{at_home, is_url};

/// The path from the root, that of a home folder where it begins with `~`; `what` says what is done with it: `write to`, `index`.
///
/// ```
/// # use windrow_core::output::absolute;
/// let e = absolute("write to", "s3://bucket/out".as_ref()).unwrap_err();
/// assert!(e.to_string().contains("cannot write to a URL"));
/// ```
///
/// # Errors
/// `Unsupported` for a URL, which would name a folder of this machine; `Io`.
pub fn absolute(what: &str, path: &Path) -> Result<PathBuf> {
    if is_url(path) {
        Err(Error::unsupported(format!("cannot {what} a URL"))
            .at(path)
            .hint("name a path of this machine; copy from or to the store with its own tools"))
    } else {
        std::path::absolute(at_home(path)).map_err(|e| Error::io("find it", path, e))
    }
}
