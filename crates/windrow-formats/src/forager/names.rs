//! What the files of an index are called.

use windrow_core::format::lines::INDEX_ROWS;

/// One path per line, relative to the base folder.
pub(crate) const FILE_LIST: &str = "file_location.txt";
/// Rows of three little-endian u64: file number, first byte, size.
pub(crate) const LOCATIONS: &str = INDEX_ROWS;
/// Which arrays a sample is made of, when there is more than its tokens.
pub(crate) const SAMPLE_SCHEMA: &str = "sample_schema.json";
