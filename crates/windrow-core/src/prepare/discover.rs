//! Which files below a folder hold JSON lines, and in which order they are taken.

use crate::error::Result;
use crate::store::{Entry, Store};

/// Names that JSON lines go by.
pub(super) const SUFFIXES: &[&str] =
    &[".jsonl", ".JSONL", ".jsonl.gz", ".jsonl.zst", ".JSONL.gz", ".JSONL.zst"];

/// All objects below `prefix` whose name ends in one of `suffixes`, in natural order: without regard to case, and with
/// runs of digits compared as whole numbers (`2 < 10`); where that makes no difference, by suffix as listed. Names and folders that start with a dot are left out.
pub(super) fn discover(store: &dyn Store, prefix: &str, suffixes: &[&str]) -> Result<Vec<Entry>> {
    let mut found = store.walk(prefix)?;
    let rank = |e: &Entry| suffixes.iter().position(|s| e.key.ends_with(s));
    found.retain(|e| rank(e).is_some());
    found.sort_by_cached_key(|e| (natural_key(&e.key), rank(e), e.key.clone()));
    Ok(found)
}

/// Text and number in turn. A number is its digits without leading zeros, the shorter one first.
type NaturalKey = Vec<(String, Option<(usize, String)>)>;

fn natural_key(path: &str) -> NaturalKey {
    let mut key = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let digit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, from_digit) = rest.split_at(digit);
        let end = from_digit.find(|c: char| !c.is_ascii_digit()).unwrap_or(from_digit.len());
        let digits = from_digit[..end].trim_start_matches('0');
        let number = (end > 0).then(|| (digits.len(), digits.to_string()));
        key.push((text.to_lowercase(), number));
        rest = &from_digit[end..];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;

    #[test]
    fn numbers_count_and_case_does_not() {
        // Text before a number is compared as a whole: "a" < "a.b.jsonl".
        let want =
            ["a1.jsonl", "a.b.jsonl", "b/x2.jsonl", "b/x010.jsonl", "B/x.jsonl", "c1.5.jsonl", "c1.10.jsonl"];
        let mut store = Memory::new();
        for name in want.iter().rev().chain(&[".a/x.jsonl", "x.json", "x.Jsonl", ".y.jsonl"]) {
            store = store.with(name, Vec::new());
        }
        let found: Vec<_> = discover(&store, "", SUFFIXES).unwrap().into_iter().map(|e| e.key).collect();
        assert_eq!(found, want);
    }
}
