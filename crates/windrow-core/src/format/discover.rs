//! Which files below a folder belong to a data set, and in which order.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::forager::{EXPANDED, LOCATIONS};
use crate::error::{Error, Result};
use crate::store::{Entry, Store, plain_name};

/// The files of lines below `prefix`, as [`lines_among`].
///
/// # Errors
/// What [`Store::walk`] says; as [`refuse_copies`].
pub(crate) fn line_files(store: &dyn Store, prefix: &str, suffixes: &[&str]) -> Result<Vec<Entry>> {
    let found: Vec<Entry> = lines_among(&store.walk(prefix)?, suffixes).into_iter().cloned().collect();
    refuse_copies(found.iter().map(|e| e.key.as_str()), |key| store.display(key))?;
    Ok(found)
}

/// That no file stands there twice, compressed and expanded or compressed in two ways, as `gzip -k` leaves it: each of its
/// records would come twice, or half of them more often where it was interrupted.
///
/// # Errors
/// `Config` naming both.
pub(crate) fn refuse_copies<'a>(
    keys: impl Iterator<Item = &'a str>,
    display: impl Fn(&str) -> String,
) -> Result<()> {
    let mut seen = HashMap::new();
    for key in keys {
        if let Some(other) = seen.insert(plain_name(key), key) {
            return Err(Error::config(format!(
                "{} stands beside it: the same records would come twice",
                display(other)
            ))
            .at(display(key))
            .hint("move one of the two to another folder, or name one of them instead of the folder"));
        }
    }
    Ok(())
}

/// The same as [`among`] without what an index expanded: it stands twice below the folder, compressed and in the index
/// folder, whatever that is called.
pub(crate) fn lines_among<'a>(entries: &'a [Entry], suffixes: &[&str]) -> Vec<&'a Entry> {
    let index =
        |e: &Entry| Some(format!("{}/{EXPANDED}/", e.key.strip_suffix(LOCATIONS)?.strip_suffix('/')?));
    let copies: Vec<String> = entries.iter().filter_map(index).collect();
    let mut found = among(entries, suffixes);
    found.retain(|e| !copies.iter().any(|folder| e.key.starts_with(folder)));
    found
}

/// The objects whose key ends in one of `suffixes`, in natural order; among equals the earlier suffix comes first. A walk
/// leaves out names that start with a dot.
pub(super) fn among<'a>(entries: &'a [Entry], suffixes: &[&str]) -> Vec<&'a Entry> {
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
/// `a1` stands before `a/1`.
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
    use crate::store::Memory;

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

    #[test]
    fn suffixes_choose_and_break_ties() {
        let store = Memory::new()
            .with("b/x.jsonl", *b"")
            .with("a.JSONL", *b"")
            .with("a.jsonl", *b"")
            .with("a.Jsonl", *b"")
            .with(".hid/x.jsonl", *b"")
            .with("a.json", *b"");
        let keys = |suffixes: &[&str]| -> Vec<String> {
            line_files(&store, "", suffixes).unwrap().into_iter().map(|e| e.key).collect()
        };
        assert_eq!(keys(&[".jsonl", ".JSONL"]), ["a.jsonl", "a.JSONL", "b/x.jsonl"]);
    }

    #[test]
    fn a_file_and_what_it_was_compressed_to_are_refused() {
        let found = |names: &[&str]| {
            let store = names.iter().fold(Memory::new(), |store, name| store.with(name, *b""));
            line_files(&store, "", &[".jsonl", ".jsonl.gz", ".jsonl.zst"])
        };
        assert_eq!(found(&["a.jsonl", "b.jsonl.gz", "b/a.jsonl.gz", "a.json", "a.gz"]).unwrap().len(), 3);
        for names in [["a.jsonl", "a.jsonl.gz"], ["x/a.jsonl.gz", "x/a.jsonl.zst"]] {
            let error = found(&names).unwrap_err();
            assert_eq!(error.kind(), crate::Kind::Config);
            assert!(error.message().contains("twice"), "{error}");
            for name in names {
                assert!(error.to_string().contains(name), "{error}");
            }
        }
    }

    #[test]
    fn texts_compare_as_wholes_numbers_count_and_case_does_not() {
        // Text before a number is compared as a whole: "a" < "a.b.jsonl".
        let want =
            ["a1.jsonl", "a.b.jsonl", "b/x2.jsonl", "b/x010.jsonl", "B/x.jsonl", "c1.5.jsonl", "c1.10.jsonl"];
        let mut store = Memory::new();
        for name in want.iter().rev().chain(&[".a/x.jsonl", "x.json", "x.Jsonl", ".y.jsonl"]) {
            store = store.with(name, Vec::new());
        }
        let found: Vec<_> = line_files(&store, "", &[".jsonl", ".JSONL", ".jsonl.gz"])
            .unwrap()
            .into_iter()
            .map(|e| e.key)
            .collect();
        assert_eq!(found, want);
    }
}
