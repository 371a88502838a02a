//! A file as a manifest lists it: its name, size and hash.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

/// One file in a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// Relative path.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, nanoseconds since 1970: kept for files that windrow did not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ns: Option<u64>,
    /// XXH3-64 of the content, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xxh3: Option<String>,
    /// What the store of the file calls its version: kept for files in stores, which know no time of a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

impl FileRow {
    /// The file, called `name`, has the size that is declared here; `None` where it is not there.
    ///
    /// # Errors
    /// `Stale`.
    pub fn check_size(&self, size: Option<u64>, name: &str) -> Result<()> {
        let stale = |what: String| {
            let hint = "the copy looks unfinished; @trust=true@ reads what is there";
            Err(Error::new(Kind::Stale, what).at(name).hint(hint))
        };
        match size {
            Some(size) if size == self.size => Ok(()),
            Some(size) => stale(format!("the file has {size} bytes, the manifest says {}", self.size)),
            None => stale(format!("the manifest names it with {} bytes, but it is gone", self.size)),
        }
    }
}
