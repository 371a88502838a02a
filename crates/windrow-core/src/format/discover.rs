//! Which files below a folder belong to a data set, and in which order.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::store::{Entry, key, plain_name};

/// That no file is there twice, compressed and expanded or compressed in two ways, as `gzip -k` leaves it: each of its
/// records would come twice, or half of them more often where it was interrupted.
///
/// # Errors
/// `Config` naming both.
pub fn refuse_copies<'a>(
    keys: impl Iterator<Item = &'a str>,
    display: impl Fn(&str) -> String,
) -> Result<()> {
    let mut seen: HashMap<(&str, String), Vec<&str>> = HashMap::new();
    for key in keys {
        let plain = plain_name(key);
        let (stem, suffix) = plain.rsplit_once('.').unwrap_or((plain, ""));
        // `a.jsonl` and `a.JSONL` may be two files, `a.JSONL.gz` is a copy of one of them.
        let others = seen.entry((stem, suffix.to_ascii_lowercase())).or_default();
        let is_copy =
            |other: &&str| plain_name(other) == plain || plain != key || plain_name(other) != *other;
        let copy = others.iter().copied().find(is_copy);
        others.push(key);
        if let Some(other) = copy {
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

/// That of shards whose names say how many there are, `train-00000-of-00002.parquet`, none is missing.
///
/// # Errors
/// `NotFound` naming the first that is missing.
pub fn refuse_missing_shards<'a>(
    keys: impl Iterator<Item = &'a str>,
    display: impl Fn(&str) -> String,
) -> Result<()> {
    let mut seen: HashMap<(&str, &str, &str), Vec<u64>> = HashMap::new();
    for key in keys {
        if let Some((before, number, total, after)) = shard(key) {
            seen.entry((before, total, after)).or_default().push(number);
        }
    }
    for ((before, total, after), mut numbers) in seen {
        numbers.sort_unstable();
        numbers.dedup();
        let count: u64 = total.parse().unwrap_or(u64::MAX);
        let missing = (0..count).zip(numbers.iter().map(Some).chain(std::iter::repeat(None)));
        if let Some((missing, _)) = missing.into_iter().find(|(expected, found)| *found != Some(expected)) {
            let width = total.len();
            return Err(Error::not_found(format!("a shard of {count} is not there"))
                .at(display(&format!("{before}{missing:0width$}-of-{total}{after}")))
                .hint("the copy looks unfinished: fetch it again, or name the files that are meant"));
        }
    }
    Ok(())
}

// What is before the number of a shard, the number, how many there are, and what is behind that.
fn shard(key: &str) -> Option<(&str, u64, &str, &str)> {
    let (head, tail) = key.rsplit_once("-of-")?;
    let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    let start = head.len() - head.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (total, after) = tail.split_at(end);
    let number = head[start..].parse().ok()?;
    (!total.is_empty()).then_some((&head[..start], number, total, after))
}

/// The objects whose key ends in one of `suffixes`, whatever the case, in natural order; among equals the earlier suffix comes
/// first, and last what is written in another case. A walk leaves out names that start with a dot.
pub fn among<'a>(entries: &'a [Entry], suffixes: &[&str]) -> Vec<&'a Entry> {
    let rank = |name: &str| {
        let in_case = suffixes.iter().position(|suffix| name.ends_with(suffix));
        in_case
            .or_else(|| suffixes.iter().any(|suffix| key::has_suffix(name, suffix)).then_some(suffixes.len()))
    };
    let mut found: Vec<(Vec<Part<'_>>, usize, &Entry)> = entries
        .iter()
        .filter(|e| !e.is_folder)
        .filter_map(|e| Some((rank(&e.key)?, e)))
        .map(|(rank, e)| (Parts::of(&e.key).collect(), rank, e))
        .collect();
    // A stable sort of what the walk sorted by key: what compares equal keeps that order.
    found.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|f| f.2).collect()
}

/// Compares names as people do: without case, and runs of digits by the number they write.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    Parts::of(a).cmp(Parts::of(b))
}

/// Text, then the digits after it without leading zeros, and how many those are. Texts compare as wholes, not character by
/// character, so that `a1` comes before `a/1`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part<'a> {
    text: Text<'a>,
    digits: Option<(usize, &'a str)>,
}

/// Text that compares in lower case. Names are sorted by the thousand, so nothing is allocated for those in ASCII.
struct Text<'a>(&'a str);

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.0, other.0);
        if a == b {
            return Ordering::Equal;
        }
        if a.is_ascii() && b.is_ascii() {
            let lower = |byte: u8| byte.to_ascii_lowercase();
            a.bytes().map(lower).cmp(b.bytes().map(lower))
        } else {
            a.to_lowercase().cmp(&b.to_lowercase())
        }
    }
}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Text<'_> {}

/// The parts of a name, one at least.
struct Parts<'a>(Option<&'a str>);

impl<'a> Parts<'a> {
    fn of(name: &'a str) -> Parts<'a> {
        Parts(Some(name))
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let rest = self.0?;
        // Digits of ASCII, so both ends are those of characters.
        let text_end = rest.bytes().position(|byte| byte.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text_end);
        let digits_end = tail.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, tail) = tail.split_at(digits_end);
        self.0 = Some(tail).filter(|tail| !tail.is_empty());
        let number = digits.trim_start_matches('0');
        Some(Part { text: Text(text), digits: (!digits.is_empty()).then_some((number.len(), number)) })
    }
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
    fn a_suffix_may_be_in_capitals() {
        let names = ["a.NPY", "a.npy", "b.Npy.GZ", "c.npz", "npy"];
        let entries: Vec<Entry> = names
            .map(|name| Entry {
                key: name.to_string(),
                size: 1,
                is_folder: false,
                modified_ns: None,
                tag: None,
            })
            .into();
        let found: Vec<&str> =
            among(&entries, &[".npy", ".npy.gz"]).into_iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(found, ["a.npy", "a.NPY", "b.Npy.GZ"]);
        let twice = refuse_copies(["a.NPY", "a.NPY.GZ"].into_iter(), str::to_string);
        assert!(twice.is_err());
        let copies = |keys: [&'static str; 2]| refuse_copies(keys.into_iter(), str::to_string).is_err();
        assert!(copies(["a.jsonl", "a.JSONL.gz"]) && copies(["a.JSONL.GZ", "a.jsonl.zst"]));
        assert!(!copies(["a.jsonl", "a.JSONL"]) && !copies(["A.jsonl.gz", "a.jsonl"]));
    }

    #[test]
    fn a_missing_shard_is_named() {
        let check = |keys: &[&str]| refuse_missing_shards(keys.iter().copied(), str::to_string);
        assert!(
            check(&["d/train-00000-of-00002.x", "d/train-00001-of-00002.x", "test-0-of-1.x", "a"]).is_ok()
        );
        let error = check(&["d/train-00000-of-00003.x", "d/train-00002-of-00003.x"]).unwrap_err();
        assert_eq!(error.place().file.as_deref(), Some("d/train-00001-of-00003.x"), "{error}");
        assert!(check(&["t-0-of-99999999999999999999.x"]).is_err());
    }

    #[test]
    fn numbers_compare_as_numbers_and_case_does_not_count() {
        ordered(&["a", "a1", "a1.5", "a1.10", "a2", "A10", "a/1", "B", "c"]);
        ordered(&["", "0", "1", "99999999999999999999998", "99999999999999999999999", "x"]);
        assert_eq!(natural_order("a01.X", "A1.x"), Ordering::Equal);
        // Beyond ASCII too.
        ordered(&["a", "ä1", "Ä2", "ä10", "É"]);
        assert_eq!(natural_order("Ä1", "ä01"), Ordering::Equal);
    }
}
