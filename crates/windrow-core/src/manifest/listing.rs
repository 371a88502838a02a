//! What lies in a folder, listed once: so that it is opened without asking its store for all names again.

use serde::{Deserialize, Serialize};

use super::Manifest;
use crate::error::{Error, Result};
use crate::store::{DeclaredText, Entry, key};

/// The format that a manifest names which says of the data only what was listed.
pub const LISTING: &str = "listing";

/// All files of a folder, at any depth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Name of the format that recognised them.
    pub of: String,
    /// The URL that was listed: tags are those of that place alone. `None` for a folder on a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What was found in these versions of the files, so that opening them need not ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredText>,
    /// The files, by name.
    pub files: Vec<ListedFile>,
}

/// A file as its store lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFile {
    /// Relative path.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// What the store calls this version of it, where it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl Listing {
    /// The files of `folder` among these entries.
    pub fn new(of: &str, url: Option<String>, folder: &str, entries: &[Entry]) -> Listing {
        let files = entries.iter().filter(|entry| !entry.is_folder && key::is_below(folder, &entry.key));
        let listed = |entry: &Entry| ListedFile {
            name: entry.key[folder.len()..].trim_start_matches('/').to_string(),
            size: entry.size,
            tag: entry.tag.clone().filter(|_| url.is_some()),
        };
        let files = files.map(listed).collect();
        Listing { of: of.to_string(), url, declared: None, files }
    }

    /// A manifest that says this and nothing else.
    pub fn into_manifest(self) -> Manifest {
        Manifest { listing: Some(self), ..Manifest::new(LISTING) }
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

impl ListedFile {
    /// The name, where it can only be one of a file below the folder.
    ///
    /// # Errors
    /// `Corrupt` for any other.
    pub fn checked_name(&self) -> Result<&str> {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        if !self.name.contains(['\\', '\0']) && self.name.split('/').all(is_plain) {
            Ok(&self.name)
        } else {
            Err(Error::corrupt(format!("{:?} is not the name of a file below the folder", self.name))
                .field("files"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, size: u64, tag: &str) -> Entry {
        let tag = Some(tag.to_string());
        Entry { key: key.to_string(), size, is_folder: false, modified_ns: None, tag }
    }

    #[test]
    fn files_are_named_from_the_folder_and_tags_belong_to_the_place() {
        let entries = [entry("a/b/x.bin", 3, "1"), entry("a/b/c/y.bin", 4, "2"), entry("a/bc.bin", 5, "3")];
        let url = Some("s3://bucket/a/b".to_string());
        let there = Listing::new("tokens", url, "a/b", &entries);
        let names: Vec<_> = there.files.iter().map(|f| (f.name.as_str(), f.size, f.tag.as_deref())).collect();
        assert_eq!(names, [("x.bin", 3, Some("1")), ("c/y.bin", 4, Some("2"))]);
        assert_eq!(there.bytes(), 7);
        let here = Listing::new("tokens", None, "", &entries);
        assert_eq!((here.files.len(), here.files[2].tag.as_deref()), (3, None));
        let text = here.clone().into_manifest().to_text();
        assert_eq!(Manifest::parse(text.as_bytes(), "x").unwrap().listing, Some(here));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for name in ["", "/etc/passwd", "a/../../b", "a//b", "..", "a/.", "a\\b"] {
            let file = ListedFile { name: name.to_string(), size: 1, tag: None };
            assert!(file.checked_name().is_err(), "{name}");
        }
        let file = ListedFile { name: "a/b c..d.bin".to_string(), size: 1, tag: None };
        assert!(file.checked_name().is_ok());
    }
}
