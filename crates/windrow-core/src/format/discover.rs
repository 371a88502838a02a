//! Which files below a folder belong to a data set, and in which order.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::store::{Entry, plain_name};

/// That no file is there twice, compressed and expanded or compressed in two ways, as `gzip -k` leaves it: each of its
/// records would come twice, or half of them more often where it was interrupted.
///
/// # Errors
/// `Config` naming both.
pub fn refuse_copies<'a>(
    keys: impl Iterator<Item = &'a str>,
    display: impl Fn(&str) -> String,
) -> Result<()> {
    let mut seen = HashMap::new();
    for key in keys {
        if let Some(other) = seen.insert(plain_name(key), key) {
            return Err(Error::config(format!(
                "{} is beside it: the same records would come twice",
                display(other)
            ))
            .at(display(key))
            .hint("move one of the two to another folder, or name one of them instead of the folder"));
        }
    }
    Ok(())
}

/// The objects whose key ends in one of `suffixes`, in natural order; among equals the earlier suffix comes first. A walk
/// leaves out names that start with a dot.
pub fn among<'a>(entries: &'a [Entry], suffixes: &[&str]) -> Vec<&'a Entry> {
    let rank = |key: &str| suffixes.iter().position(|suffix| key.ends_with(suffix));
    let mut found: Vec<(Vec<Part>, usize, &Entry)> = entries
        .iter()
        .filter(|e| !e.is_folder)
        .filter_map(|e| Some((parts(&e.key), rank(&e.key)?, e)))
        .collect();
    // A stable sort of what the walk sorted by key: what compares equal keeps that order.
    found.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|f| f.2).collect()
}

/// Compares names as people do: without case, and runs of digits by the number they write.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    parts(a).cmp(&parts(b))
}

/// Text, then the digits after it without leading zeros. Texts compare as wholes, not character by character, so that
/// `a1` comes before `a/1`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    text: String,
    digits: Option<(usize, String)>,
}

fn parts(name: &str) -> Vec<Part> {
    let mut out = Vec::new();
    let mut rest = name;
    while !rest.is_empty() || out.is_empty() {
        let text_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text_end);
        let digits_end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, tail) = tail.split_at(digits_end);
        let number = digits.trim_start_matches('0');
        out.push(Part {
            text: text.to_lowercase(),
            digits: (!digits.is_empty()).then(|| (number.len(), number.to_string())),
        });
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(names: &[&str]) {
        for pair in names.windows(2) {
            assert_eq!(natural_order(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn numbers_compare_as_numbers_and_case_does_not_count() {
        ordered(&["a", "a1", "a1.5", "a1.10", "a2", "A10", "a/1", "B", "c"]);
        ordered(&["", "0", "1", "99999999999999999999998", "99999999999999999999999", "x"]);
        assert_eq!(natural_order("a01.X", "A1.x"), Ordering::Equal);
    }
}
