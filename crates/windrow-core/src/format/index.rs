//! An index of lines beside the data: what of it is the format's own.

use super::verify::{IndexAt, Verifier};
use crate::error::Result;

/// A format that is an index of lines beside the data: `prepare` scans the lines, the format says how a row is stored.
pub trait LineIndex: Sync {
    /// Name of the format that reads it.
    fn name(&self) -> &'static str;

    /// That a folder may be called so.
    ///
    /// # Errors
    /// `Config` naming `option`.
    fn check_folder_name(&self, option: &str, name: &str) -> Result<()>;

    /// Whether an index folder has a file or folder of this name: only then is it replaced.
    fn is_own(&self, name: &str) -> bool;

    /// The file that holds the rows, in the index folder.
    fn rows_file(&self) -> &'static str;

    /// Appends the row of a line to `out`: the number of its file, its first byte and its size with the line break.
    fn add_row(&self, out: &mut Vec<u8>, file: u64, byte: u64, size: u64);

    /// The file that holds the list of files, in the index folder.
    fn list_file(&self) -> &'static str;

    /// The list of files, whose paths are relative to the folder with the lines.
    ///
    /// # Errors
    /// `Unsupported` for a path that cannot be listed.
    fn list(&self, paths: &[String]) -> Result<String>;

    /// Whether a folder with such files, as `has` says, is an index of it, or half of one.
    fn is_index(&self, has: &dyn Fn(&str) -> bool) -> bool;

    /// Checks an index against the data that it speaks of.
    ///
    /// # Errors
    /// As [`Verify::records`](super::verify::Verify::records).
    fn verify(&self, at: &IndexAt<'_>, out: &mut Verifier<'_>) -> Result<()>;
}
