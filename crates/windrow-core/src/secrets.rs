//! URLs as they may be written down and shown: without what lets others in.

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

/// A text with every URL in it as [`without_secrets`] gives it.
///
/// ```
/// # use windrow_core::store::text_without_secrets;
/// let text = "cannot read \"http://me:word@host/a?sig=1\": no answer";
/// assert_eq!(text_without_secrets(text), "cannot read \"http://host/a\": no answer");
/// assert_eq!(text_without_secrets("gone (https://host/a?sig=1), https"), "gone (https://host/a), https");
/// ```
pub fn text_without_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("http") {
        let (before, url) = rest.split_at(at);
        out.push_str(before);
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            let (letters, behind) = url.split_at("http".len());
            out.push_str(letters);
            rest = behind;
            continue;
        }
        // What no URL holds ends it; a query may hold all else, and punctuation at its end belongs to the sentence.
        let end = url.find(|c: char| c.is_whitespace() || "\"<>`".contains(c)).unwrap_or(url.len());
        let url_end = url[..end].trim_end_matches([':', ',', '.', ';', ')', ']', '}', '\'']).len();
        out.push_str(&without_secrets(&url[..url_end]));
        rest = &url[url_end..];
    }
    out + rest
}
