//! What `windrow index` and `verify` ask of the format: its rows, its list of files, and their names.

use std::path::{Component, Path};

use windrow_core::format::lines::EXPANDED;
use windrow_core::format::verify::{IndexAt, Verifier};
use windrow_core::format::{Format, LineIndex};
use windrow_core::manifest::{CHECKSUMS_FILE, MANIFEST_FILE};
use windrow_core::{Error, Result};

use super::names::{FILE_LIST, LOCATIONS, SAMPLE_SCHEMA};
use super::{Forager, file_list, location_row, verify};

/// The rows and the list of files of an index.
pub(super) struct Index;

impl LineIndex for Index {
    fn name(&self) -> &'static str {
        Forager.name()
    }

    fn check_folder_name(&self, option: &str, name: &str) -> Result<()> {
        check_folder_name(option, name)
    }

    fn is_own(&self, name: &str) -> bool {
        is_of_index(name)
    }

    fn rows_file(&self) -> &'static str {
        LOCATIONS
    }

    fn add_row(&self, out: &mut Vec<u8>, file: u64, byte: u64, size: u64) {
        out.extend_from_slice(&location_row(file, byte, size));
    }

    fn list_file(&self) -> &'static str {
        FILE_LIST
    }

    fn list(&self, paths: &[String]) -> Result<String> {
        file_list(paths)
    }

    // Half an index is one too.
    fn is_index(&self, has: &dyn Fn(&str) -> bool) -> bool {
        [LOCATIONS, FILE_LIST].into_iter().any(has)
    }

    fn verify(&self, at: &IndexAt<'_>, out: &mut Verifier<'_>) -> Result<()> {
        verify::index(at, out)
    }
}

/// That an option names one folder.
///
/// # Errors
/// `Config`.
pub(super) fn check_folder_name(option: &str, name: &str) -> Result<()> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) if !name.starts_with('.') && !name.contains(['/', '\0', '\n']) => {
            Ok(())
        }
        _ => Err(Error::config(format!("{option} is {name:?}; expected the plain name of one folder"))),
    }
}

/// Whether an index folder has a file or folder of this name.
pub(super) fn is_of_index(name: &str) -> bool {
    [FILE_LIST, LOCATIONS, SAMPLE_SCHEMA, MANIFEST_FILE, CHECKSUMS_FILE, EXPANDED].contains(&name)
}
