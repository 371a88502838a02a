//! What is in the place of a manifest while a data set comes into a store object by object: opening it is an error that says so.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    windrow: String,
    /// Which run writes it.
    unfinished: String,
}

/// The text that says of a data set that it is not finished; `run` is what the run that writes it is known by.
///
/// ```
/// use windrow_core::manifest::{Manifest, unfinished, unfinished_by};
///
/// let text = unfinished("3f");
/// assert_eq!(unfinished_by(text.as_bytes()).as_deref(), Some("3f"));
/// let e = Manifest::parse(text.as_bytes(), "s3://bucket/tokens/windrow.json").unwrap_err();
/// assert!(e.message().contains("not finished"));
/// ```
pub fn unfinished(run: &str) -> String {
    let text =
        Written { version: 1, windrow: env!("CARGO_PKG_VERSION").to_string(), unfinished: run.to_string() };
    // Serialising plain structs cannot fail.
    serde_json::to_string_pretty(&text).unwrap_or_default() + "\n"
}

/// The run that writes the data set whose manifest this is; `None` for one that is finished.
pub fn unfinished_by(text: &[u8]) -> Option<String> {
    serde_json::from_slice::<Written>(text).ok().map(|found| found.unfinished)
}

pub(super) fn refuse(text: &[u8], name: &str) -> Result<()> {
    match unfinished_by(text) {
        None => Ok(()),
        Some(_) => Err(Error::new(
            Kind::Stale,
            "the data set is not finished: it is being written, or its writing was stopped",
        )
        .at(name)
        .hint("wait until it is whole; if nobody writes it any more, run the same command again")),
    }
}
