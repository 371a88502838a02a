//! What tells a URL of a store from a path of this machine.

use std::path::Path;

/// Whether it is a URL, and none of a file on this machine.
///
/// ```
/// # use windrow_core::store::is_url;
/// assert!(is_url("s3://bucket/tokens.bin"));
/// assert!(!is_url("file:///data/tokens.bin") && !is_url("data/tokens.bin"));
/// ```
pub fn is_url(path: impl AsRef<Path>) -> bool {
    let scheme = path.as_ref().to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        scheme != "file" && !scheme.is_empty() && scheme.bytes().all(is_name)
    })
}
