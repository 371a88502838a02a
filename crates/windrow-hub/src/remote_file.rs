//! A file of a data set as the hub describes it, and which paths it may have.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use windrow_core::{Error, Result};

use crate::digest::Digest;

/// Holds the record, the lock, and files that are not finished; readers of data pass over hidden folders.
pub(crate) const HIDDEN: &str = ".windrow-download";

/// A file as the hub describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    /// Its path below the data set, with `/` between folders. Never leads out of there.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// What it hashes to.
    pub digest: Digest,
}

/// Refuses a path that leads out of the folder it is put in, or into what is kept there.
pub(crate) fn checked_path(path: &str) -> Result<()> {
    // `components` leaves out `.` and doubled slashes, which then are two names of one file.
    let names = Path::new(path).components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let names: Option<Vec<&str>> = names.collect();
    let is_plain = names.is_some_and(|names| {
        names.join("/") == path
            && names.first().is_some_and(|first| *first != HIDDEN)
            && !path.contains(char::is_control)
    });
    match is_plain {
        true => Ok(()),
        false => {
            Err(Error::corrupt(format!("the listing names {path:?}, which is not a path below the data set"))
                .hint("nothing was written; tell the data set's owner"))
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::Kind;

    use super::*;

    #[test]
    fn paths_stay_below() {
        for good in ["a", "a/b.bin", ".gitattributes", "a/..b", "ü x"] {
            assert!(checked_path(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/a",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "a\0b",
            "a\x1b[2J",
            ".windrow-download/x",
            ".",
        ] {
            assert_eq!(checked_path(bad).map_err(|e| e.kind()), Err(Kind::Corrupt), "{bad:?}");
        }
    }
}
