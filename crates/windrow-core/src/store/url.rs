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

/// A URL as it may be written down: of a web server without what is behind `?`, which may be a signature, and without a password.
/// All else is as it is.
///
/// ```
/// # use windrow_core::store::without_secrets;
/// assert_eq!(without_secrets("https://me:word@host/a.jsonl?sig=1"), "https://host/a.jsonl");
/// assert_eq!(without_secrets("s3://bucket/a?b.jsonl"), "s3://bucket/a?b.jsonl");
/// assert_eq!(without_secrets("texts/a.jsonl"), "texts/a.jsonl");
/// ```
pub fn without_secrets(url: &str) -> String {
    let Some((scheme @ ("http" | "https"), rest)) = url.split_once("://") else { return url.to_string() };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}
