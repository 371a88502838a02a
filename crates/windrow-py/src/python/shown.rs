//! How handles show themselves: what is in their `repr`, and a small table in notebooks.

use std::fmt::Write as _;
use std::iter;
use std::path::Path;

use windrow::dev::store::{is_url, without_secrets};
pub(crate) use windrow::preview::text::count;
use windrow::{Paths, Samples};

/// The tensors of a row, as `input_ids int64 [1024], labels int64 [1024]`; of records their columns.
pub(crate) fn tensors(samples: &Samples) -> String {
    if let Some(rows) = samples.feed().collate().rows() {
        return rows.holds().to_string();
    }
    // Where shapes follow the samples, these are the shortest.
    let fields = samples.feed().collate().fields(&mut iter::empty()).unwrap_or_default();
    let each = fields.iter().map(|field| format!("{} {} {:?}", field.name, field.dtype, field.shape));
    each.collect::<Vec<_>>().join(", ")
}

/// A path in quotes, or a list of them, the first ones of many; URLs without a query or a password.
pub(crate) fn paths(paths: &Paths) -> String {
    const SHOWN: usize = 3;
    let name = |path: &Path| {
        if is_url(path) {
            format!("{:?}", without_secrets(&path.to_string_lossy()))
        } else {
            format!("{path:?}")
        }
    };
    if let Some(path) = paths.only() {
        return name(path);
    }
    let mut shown: Vec<String> = paths.iter().take(SHOWN).map(name).collect();
    let more = paths.iter().len().saturating_sub(SHOWN);
    shown.extend((more > 0).then(|| format!("… {more} more")));
    format!("[{}]", shown.join(", "))
}

/// A title and rows of name and text, as HTML.
pub(crate) fn table(title: &str, rows: &[(&str, String)]) -> String {
    let mut html = format!("<table><caption>{}</caption>", escaped(title));
    for (name, text) in rows {
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "<tr><th style=\"text-align:left\">{}</th><td style=\"text-align:left\">{}</td></tr>",
            escaped(name),
            escaped(text)
        );
    }
    html + "</table>"
}

// Paths and names of parts are the user's own text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
