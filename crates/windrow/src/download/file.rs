//! A file as its store lists it, and which paths it may have.

use std::collections::HashSet;
use std::path::{Component, Path};

use serde::Serialize;
use windrow_core::{Error, Result};

use super::digest::Digest;

/// Holds the record, the lock, and files that are not finished; readers of data pass over hidden folders.
pub(super) const HIDDEN: &str = ".windrow-download";

/// A file as its store lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteFile {
    /// Its path below what is downloaded, with `/` between folders. Never leads out of there.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// What it hashes to, or what its store calls this version of it.
    pub digest: Digest,
}

/// The files below a URL, in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The commit that the revision points to; only of the Hub.
    pub commit: Option<String>,
    /// The files.
    pub files: Vec<RemoteFile>,
}

impl Listing {
    /// The size of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Sorts the files; paths that lead elsewhere, and two of one path, are refused.
    pub(super) fn new(commit: Option<String>, mut files: Vec<RemoteFile>) -> Result<Listing> {
        files.iter().try_for_each(|file| checked_path(&file.path))?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some(pair) = files.windows(2).find(|pair| pair[0].path == pair[1].path) {
            return Err(Error::corrupt("the listing names a file twice").at(&pair[0].path));
        }
        // Some tools mark a folder of a bucket by an empty object of its name.
        let above = |file: &RemoteFile| file.path.rsplit_once('/').map(|(folder, _)| folder.to_string());
        let folders: HashSet<String> = files.iter().filter_map(above).collect();
        files.retain(|file| file.size > 0 || !folders.contains(&file.path));
        Ok(Listing { commit, files })
    }
}

/// Refuses a path that leads out of the folder it is put in, or into what is kept there.
pub(super) fn checked_path(path: &str) -> Result<()> {
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
    if is_plain {
        Ok(())
    } else {
        Err(Error::corrupt(format!("the listing names {path:?}, which is not a path below it"))
            .hint("nothing was written; tell the owner of the data"))
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
        let hidden = format!("{HIDDEN}/x");
        let bad = ["", "/a", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "a\0b", "a\x1b[2J", ".", &hidden];
        for bad in bad {
            assert_eq!(checked_path(bad).map_err(|e| e.kind()), Err(Kind::Corrupt), "{bad:?}");
        }
    }

    #[test]
    fn a_marker_of_a_folder_is_not_a_file() {
        let file =
            |path: &str, size| RemoteFile { path: path.to_string(), size, digest: Digest::Tag("v".into()) };
        let listing = Listing::new(None, vec![file("a/x", 1), file("a", 0), file("b", 0)]).unwrap();
        assert_eq!(listing.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a/x", "b"]);
    }
}
