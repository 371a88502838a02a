//! Files of JSON Lines, the input of most tasks: what they are called, which of a folder they are, where their lines end.

mod ends;
mod found;
pub mod json_kind;
mod names;

pub use self::ends::line_ends;
pub use self::found::{are_parts, line_files, lines_among, no_line_files};
pub use self::json_kind::{
    HEAD, JsonKind, SUFFIXES as JSON_SUFFIXES, first_keys, is_description, is_lines, may_hold_records,
};
pub use self::names::{SUFFIXES, is_named};

/// The folder that holds an index of lines, below the folder with the lines.
pub const INDEX_FOLDER: &str = "index";
/// The file of an index folder that says where each line begins.
pub const INDEX_ROWS: &str = "sample_locations.bin";
/// The path of [`INDEX_ROWS`] from the folder with the lines.
pub const INDEX_ROWS_BELOW: &str = "index/sample_locations.bin";
/// Folder of what was compressed, below an index folder.
pub const EXPANDED: &str = "expanded";
