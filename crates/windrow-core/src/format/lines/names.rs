//! What files of JSON Lines are called.

use crate::store::key;

/// What the names of JSON Lines files end in.
pub const SUFFIXES: &[&str] = &[
    ".jsonl",
    ".JSONL",
    ".ndjson",
    ".jsonl.gz",
    ".JSONL.gz",
    ".ndjson.gz",
    ".jsonl.zst",
    ".JSONL.zst",
    ".ndjson.zst",
];

/// Whether a file is called as JSON Lines are, in small letters or in capitals.
pub fn is_named(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| key::has_suffix(name, suffix))
}
