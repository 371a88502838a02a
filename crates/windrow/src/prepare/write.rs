//! How data is written: a format by the name that users type, with its own options.

use std::sync::Arc;

use serde_json::{Map, Value};
use windrow_core::Result;
use windrow_core::format::FormatInfo;
use windrow_core::format::write::{self, WriteFormat};

use crate::opening::formats::formats;

/// Other names of a format where it is written.
const ALIASES: [(&str, &str); 1] = [("jsonl", "series-jsonl")];
/// What `tokenize` writes by default.
pub const TOKENIZE_TO: &str = "forager";
/// What `encode` writes by default.
pub const ENCODE_TO: &str = "codes";

/// A format that is written.
#[non_exhaustive]
pub struct Written {
    /// What `to` takes.
    pub to: &'static str,
    /// Its description.
    pub info: &'static FormatInfo,
    /// Whether `tokenize` writes it.
    pub is_for_tokenize: bool,
}

/// The formats that are written, in the order in which they are asked.
///
/// ```
/// let of_tokenize = |to: &str| windrow::written().iter().any(|written| written.to == to && written.is_for_tokenize);
/// // Shards hold any numbers, token IDs among them.
/// assert!(["forager", "tokens", "megatron", "shards", "llmc", "datatrove"].iter().all(|to| of_tokenize(to)));
/// assert!(!["npy", "npz", "jsonl", "codes"].iter().any(|to| of_tokenize(to)));
/// ```
pub fn written() -> Vec<Written> {
    let alias =
        |name: &'static str| ALIASES.iter().find(|(_, of)| *of == name).map_or(name, |(alias, _)| alias);
    let row = |info: &'static FormatInfo| {
        let writer = write::writer(formats(), info.name, &Map::new()).ok()?;
        Some(Written { to: alias(info.name), info, is_for_tokenize: !writer.info().id_dtypes.is_empty() })
    };
    formats().iter().filter_map(|format| row(format.info())).collect()
}

/// How `to` is written, with `options` of its own.
///
/// ```
/// # use serde_json::{Map, json};
/// let options = Map::from_iter([("max_shard_bytes".to_string(), json!(1 << 20))]);
/// assert_eq!(windrow::writer("shards", &options)?.name(), "shards");
/// assert!(windrow::writer("npy", &options).is_err());
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// `Config` when there is no such format, when it is only read, and for an option that it does not have.
pub fn writer(to: &str, options: &Map<String, Value>) -> Result<Arc<dyn WriteFormat>> {
    Ok(Arc::from(write::writer(formats(), name_of(to), options)?))
}

/// Names of the options that `to` has of its own; none where there is no such format.
///
/// ```
/// assert_eq!(windrow::write_options("shards"), ["max_shard_bytes", "normalize"]);
/// ```
pub fn write_options(to: &str) -> Vec<&'static str> {
    write::option_names(formats(), name_of(to))
}

fn name_of(to: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == to).map_or(to, |(_, name)| name)
}
