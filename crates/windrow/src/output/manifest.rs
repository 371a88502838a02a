//! The manifest of data that has none, written beside it or in a file of its own.

use std::path::{Path, PathBuf};

use serde::Serialize;
use windrow_core::format::Options;
use windrow_core::manifest::MANIFEST_FILE;
use windrow_core::{Error, Result};

use super::one_file;
use crate::opening::listing::{listing, write_listing};

/// A manifest that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedFolder {
    /// The manifest.
    pub out: PathBuf,
    /// Files that it lists.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// The format that the folder is of.
    pub format: String,
}

/// Writes the manifest of a folder, `windrow.json`, beside its data, or to `out`. Again it lists the folder as it is then.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # std::fs::write(dir.path().join("a.jsonl"), "{\"n\": 1}\n").unwrap();
/// let listed = windrow::write_manifest(dir.path(), &Default::default(), None, false)?;
/// assert_eq!((listed.files, listed.format.as_str()), (1, "jsonl"));
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// As [`listing`] and [`write_listing`]; `Exists` where another file is in the place of `out`, and not to be overwritten;
/// `Config` for an `out` that is one of the files listed.
pub fn write_manifest(
    path: impl AsRef<Path>,
    options: &Options,
    out: Option<&Path>,
    overwrite: bool,
) -> Result<ListedFolder> {
    let path = path.as_ref();
    if overwrite && out.is_none() {
        return Err(Error::config("@the overwrite@ is of a file of its own")
            .field("overwrite")
            .hint("name the file with @out@: the manifest beside the data is replaced in any case"));
    }
    let manifest = listing(path, options)?;
    let out = match out {
        None => write_listing(path, options, &manifest)?,
        Some(out) => {
            let files = manifest.listing.iter().flat_map(|listing| &listing.files);
            // The one beside the data is replaced, as without `out`.
            if out != path.join(MANIFEST_FILE) {
                one_file::refuse_input(out, files.map(|file| path.join(&file.name)))?;
            }
            one_file::write(out, manifest.to_text().as_bytes(), overwrite)?;
            out.to_path_buf()
        }
    };
    let listing = manifest.listing.unwrap_or_default();
    Ok(ListedFolder { out, files: listing.files.len() as u64, bytes: listing.bytes(), format: listing.of })
}
