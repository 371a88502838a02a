//! What the folder and the files of an index are called.

/// The folder that holds the index, below the base folder.
pub const INDEX_FOLDER: &str = "index";
/// One path per line, relative to the base folder.
pub(crate) const FILE_LIST: &str = "file_location.txt";
/// Rows of three little-endian u64: file number, first byte, size.
pub(crate) const LOCATIONS: &str = "sample_locations.bin";
/// Which arrays a sample is made of, when there is more than its tokens.
pub(crate) const SAMPLE_SCHEMA: &str = "sample_schema.json";
/// Folder of what was compressed, below an index folder.
pub(crate) const EXPANDED: &str = "expanded";
