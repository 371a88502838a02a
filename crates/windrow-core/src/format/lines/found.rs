//! Which files below a folder are JSON Lines.

use std::collections::{BTreeSet, HashSet};

use super::super::discover::{among, refuse_copies};
use super::super::{Format, foreign, lake, splits};
use super::json_kind::{self, JsonKind, first_keys};
use super::names;
use super::{EXPANDED, INDEX_ROWS};
use crate::error::{Error, Kind, Result};
use crate::store::{Entry, Store, Walked, key, not_only_hidden, plain_name, some_of};

/// The files of lines in a store, as [`lines_among`].
///
/// # Errors
/// What [`Store::walk`] says; as [`lake::refuse_walked`], [`refuse_copies`] and [`lines_among`].
pub fn line_files(table: &[&dyn Format], store: &dyn Store) -> Result<Vec<Entry>> {
    let walked = store.walk_all("")?;
    lake::refuse_walked(store, &walked)?;
    let found: Vec<Entry> = lines_among(table, store, &walked.entries, false)?.into_iter().cloned().collect();
    refuse_copies(found.iter().map(|e| e.key.as_str()), |key| store.display(key))?;
    let splits = splits::among(found.iter().map(|e| e.key.as_str()));
    if splits.len() > 1 {
        let (folder, splits) = (store.display(""), splits::listed(&splits));
        crate::warn!("{folder}: several splits become one data set: {splits}; name the files of one of them");
    }
    Ok(found)
}

/// The error that no files of lines are in a store, and what is there instead.
pub fn no_line_files(table: &[&dyn Format], store: &dyn Store) -> Error {
    let walked = match not_only_hidden(store, "") {
        Ok(walked) => walked,
        Err(e) if e.kind() == Kind::NotFound && e.hint_text().is_some() => return e,
        Err(_) => Walked::default(),
    };
    let (entries, hidden) = (&walked.entries, walked.hidden_names(""));
    let what = "there is no JSONL file in the folder or below it";
    let names = entries.iter().map(|entry| entry.key.as_str());
    let splits = splits::among(names.clone().filter(|name| name.contains('/')));
    match foreign::among(foreign::listed(table), names) {
        found if splits.len() > 1 && found.is_none_or(|(_, kind)| kind.hint.is_read) => {
            Error::not_found(format!("{what}; it holds several splits: {}", splits::listed(&splits)))
                .hint("name the folder of one of them, or give @split@")
        }
        Some((name, kind)) => {
            Error::not_found(format!("{what}, but {name:?}: {}", kind.described())).hint(kind.hint.text)
        }
        None => Error::not_found(what).hint(format!(
            "looked for *.jsonl and *.ndjson, and for lines in *.json; plain, .gz or .zst; hidden files and \
             folders are left out{}{}",
            if hidden.is_empty() { String::new() } else { format!(": {}", some_of(&hidden)) },
            if entries.iter().any(|entry| json_kind::may_hold_records(&entry.key)) {
                "; an array of objects in a *.json is opened and tokenised as it is, without an index"
            } else {
                ""
            }
        )),
    }
    .at(store.display(""))
}

/// The files of JSON Lines by their names, and those called `.json` by their content, in natural order. What an index
/// expanded is left out: it is twice below the folder, compressed and in the index folder, whatever that is called and
/// whatever is left of it.
/// One object alone in a `.json` is a line where its name or a key of it is as those of files of lines, where there are nothing
/// but such parts, or where lines are `asked` for.
///
/// # Errors
/// What looking into a `.json` says.
pub fn lines_among<'a>(
    table: &[&dyn Format],
    store: &dyn Store,
    entries: &'a [Entry],
    asked: bool,
) -> Result<Vec<&'a Entry>> {
    let index =
        |e: &Entry| Some(format!("{}/{EXPANDED}/", e.key.strip_suffix(INDEX_ROWS)?.strip_suffix('/')?));
    let copies: Vec<String> = entries.iter().filter_map(index).collect();
    let suffixes: Vec<&str> = names::SUFFIXES.iter().chain(json_kind::SUFFIXES).copied().collect();
    let mut found = among(entries, &suffixes);
    found.retain(|e| !copies.iter().any(|folder| e.key.starts_with(folder)));
    leave_out_expanded(store, entries, &mut found);
    warn_of_unread(table, store, entries, &found);
    let mut kinds = Vec::with_capacity(found.len());
    for entry in &found {
        kinds.push(if names::is_named(&entry.key) {
            JsonKind::Lines
        } else if !json_kind::may_hold_records(&entry.key) {
            JsonKind::Document
        } else {
            JsonKind::at(store, &entry.key)?
        });
    }
    let of_lines =
        found.iter().zip(&kinds).filter(|(entry, kind)| **kind == JsonKind::Lines && entry.size > 0);
    let of_lines: Vec<&Entry> = of_lines.map(|(entry, _)| *entry).collect();
    let alike = match of_lines.first() {
        Some(first) if kinds.contains(&JsonKind::OneLine) => Alike::to(store, first, &of_lines)?,
        _ => Alike::default(),
    };
    let parts_alone = of_lines.is_empty() && kinds.contains(&JsonKind::OneLine) && are_parts(store, entries)?;
    let has_lines = asked || parts_alone || !of_lines.is_empty();
    let mut lines = Vec::with_capacity(found.len());
    let mut left_out = Vec::new();
    for (entry, kind) in found.into_iter().zip(kinds) {
        let is_line = match kind {
            JsonKind::Lines => true,
            JsonKind::OneLine if asked => !json_kind::is_description(&entry.key),
            JsonKind::OneLine => {
                parts_alone && !json_kind::is_description(&entry.key) || alike.holds(store, entry)?
            }
            JsonKind::Document => false,
        };
        if is_line {
            lines.push(entry)
        } else if has_lines && entry.size > 0 && !json_kind::is_description(&entry.key) {
            left_out.push(entry)
        }
    }
    if let Some(first) = left_out.first() {
        let name = first_of(store, first, left_out.len());
        crate::warn!("{name}: left out of the lines beside it, one JSON document");
    }
    Ok(lines)
}

/// What a part of one line is compared with: the first of the files of lines, and the names of all.
#[derive(Default)]
struct Alike {
    keys: BTreeSet<String>,
    names: HashSet<String>,
}

impl Alike {
    fn to(store: &dyn Store, first: &Entry, all: &[&Entry]) -> Result<Alike> {
        let keys = first_keys(store.open(&first.key)?.as_ref())?.unwrap_or_default();
        Ok(Alike { keys, names: all.iter().map(|entry| name_of_parts(&entry.key)).collect() })
    }

    // A writer leaves out keys without a value, perhaps all that another part has.
    fn holds(&self, store: &dyn Store, entry: &Entry) -> Result<bool> {
        if self.names.is_empty() {
            return Ok(false);
        }
        let keys = first_keys(store.open(&entry.key)?.as_ref())?;
        let is_described = json_kind::is_description(&entry.key);
        let is_named_alike = || self.names.contains(&name_of_parts(&entry.key));
        Ok(keys.is_some_and(|keys| {
            if is_described { keys == self.keys } else { is_named_alike() || !keys.is_disjoint(&self.keys) }
        }))
    }
}

/// A name without its folder, in which numbers, also in hexadecimal, are one sign: what the parts of one output share.
fn name_of_parts(key: &str) -> String {
    let words = key::name_of(key).split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let is_number = |word: &str| {
        let word = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        word.bytes().any(|b| b.is_ascii_digit())
            || (word.len() > 1 && word.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    words.map(|word| if is_number(word) { "#" } else { word }).collect()
}

/// Whether files below a folder are parts of JSON Lines that happen to have a line each: objects in numbered files of one name, and
/// nothing else but descriptions, notes and parts without a line.
///
/// # Errors
/// What looking into a file says.
pub fn are_parts(store: &dyn Store, entries: &[Entry]) -> Result<bool> {
    const NOTES: &[&str] = &[".md", ".txt", ".crc"];
    let is_beside =
        |key: &str| json_kind::is_description(key) || NOTES.iter().any(|note| key::has_suffix(key, note));
    let mut names = HashSet::new();
    for entry in entries.iter().filter(|entry| !is_beside(&entry.key)) {
        if !json_kind::may_hold_records(&entry.key) {
            return Ok(false);
        }
        let name = name_of_parts(&entry.key);
        names.insert(name.clone());
        if !name.contains('#') || names.len() > 1 {
            return Ok(false);
        }
        let object = store.open(&entry.key)?;
        if entry.size > 0 && first_keys(object.as_ref())?.is_none() {
            return Ok(false);
        }
    }
    Ok(!names.is_empty())
}

// Names the first of `count` files, for a message.
fn first_of(store: &dyn Store, first: &Entry, count: usize) -> String {
    match count {
        1 => store.display(&first.key),
        n => format!("{} and {} more", store.display(&first.key), n - 1),
    }
}

// What an index expanded that is gone by now, where the compressed file is still there.
fn leave_out_expanded(store: &dyn Store, entries: &[Entry], found: &mut Vec<&Entry>) {
    let below = format!("/{EXPANDED}/");
    if !found.iter().any(|e| e.key.contains(&below)) {
        return;
    }
    let plain = |e: &Entry| Some(plain_name(&e.key)).filter(|name| *name != e.key).map(str::to_string);
    let compressed: HashSet<String> = entries.iter().filter_map(plain).collect();
    let is_copy = |key: &str| {
        key.match_indices(&below).any(|(at, _)| {
            let (index, name) = (&key[..at], &key[at + below.len()..]);
            compressed.contains(&key::below(key::folder_of(index), name))
        })
    };
    let (copies, rest): (Vec<&Entry>, Vec<&Entry>) = found.iter().copied().partition(|e| is_copy(&e.key));
    *found = rest;
    if let Some(first) = copies.first() {
        let name = first_of(store, first, copies.len());
        crate::warn!(
            "{name}: left out, an earlier index expanded it from the compressed file, which is read"
        );
    }
}

// Lines that are compressed in a way that is not read would be missed in silence; those whose expansion is there are not.
fn warn_of_unread(table: &[&dyn Format], store: &dyn Store, entries: &[Entry], found: &[&Entry]) {
    let is_lines =
        |name: &str| names::is_named(name) || json_kind::SUFFIXES[..1].iter().any(|s| name.ends_with(s));
    let kinds = foreign::listed(table);
    let unread = entries.iter().filter_map(|entry| {
        let (plain, kind) = foreign::compressed(kinds, &entry.key)?;
        (is_lines(plain) && !found.iter().any(|f| plain_name(&f.key) == plain)).then_some((entry, kind))
    });
    let unread: Vec<_> = unread.collect();
    if let Some((first, kind)) = unread.first() {
        crate::warn!(
            "{}: left out, {}; {}",
            first_of(store, first, unread.len()),
            kind.described(),
            kind.hint.text
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;

    fn keys(store: &Memory) -> Vec<String> {
        line_files(&[], store).unwrap().into_iter().map(|e| e.key).collect()
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
        assert_eq!(keys(&store), ["a.jsonl", "a.JSONL", "a.Jsonl", "b/x.jsonl"]);
    }

    #[test]
    fn a_file_and_what_it_was_compressed_to_are_refused() {
        let found = |names: &[&str]| {
            let store = names.iter().fold(Memory::new(), |store, name| store.with(name, *b""));
            line_files(&[], &store)
        };
        assert_eq!(found(&["a.jsonl", "b.jsonl.gz", "b/a.jsonl.gz", "a.json", "a.gz"]).unwrap().len(), 3);
        for names in [["a.jsonl", "a.jsonl.gz"], ["x/a.jsonl.gz", "x/a.jsonl.zst"]] {
            let error = found(&names).unwrap_err();
            assert_eq!(error.kind(), crate::Kind::Config);
            assert!(error.message().contains("twice"), "{error}");
            for name in names {
                assert!(format!("{error:#}").contains(name), "{error}");
            }
        }
    }

    #[test]
    fn what_an_index_that_is_gone_expanded_is_not_read_beside_what_is_compressed() {
        let store = Memory::new()
            .with("a.jsonl.gz", *b"")
            .with("b/c.jsonl.zst", *b"")
            .with("index/expanded/a.jsonl", *b"")
            .with("index/expanded/b/c.jsonl", *b"")
            .with("b/lines/expanded/c.jsonl", *b"");
        assert_eq!(keys(&store), ["a.jsonl.gz", "b/c.jsonl.zst"]);
        // Of what is there once, nothing is left out.
        let store = store.with("index/expanded/d.jsonl", *b"").with("expanded/a.jsonl", *b"");
        assert_eq!(
            keys(&store),
            ["a.jsonl.gz", "b/c.jsonl.zst", "expanded/a.jsonl", "index/expanded/d.jsonl"]
        );
    }

    #[test]
    fn texts_compare_as_wholes_numbers_count_and_case_does_not() {
        // Text before a number is compared as a whole: "a" < "a.b.jsonl".
        let want =
            ["a1.jsonl", "a.b.jsonl", "b/x2.jsonl", "b/x010.jsonl", "B/x.jsonl", "c1.5.jsonl", "c1.10.jsonl"];
        let mut store = Memory::new();
        for name in want.iter().rev().chain(&[".a/x.jsonl", "x.json", ".y.jsonl"]) {
            store = store.with(name, Vec::new());
        }
        assert_eq!(keys(&store), want);
    }

    #[test]
    fn a_json_file_is_lines_where_it_holds_lines() {
        let lines = *b"{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
        let store = Memory::new()
            .with("b.jsonl", lines)
            .with("a.json", lines)
            .with("c/last.json", *b"{\"text\": \"the one line of it\"}\n")
            .with("config.json", *b"{\"freq\": \"H\"}\n")
            .with("pretty.json", *b"{\n  \"text\": \"a\"\n}\n")
            .with("list.json", *b"[1, 2]\n")
            .with("windrow.json", lines)
            .with("0.jsonl", *b"");
        assert_eq!(keys(&store), ["0.jsonl", "a.json", "b.jsonl", "c/last.json"]);
        let one = Memory::new().with("a.json", *b"{\"text\": \"a\"}").with("config.json", *b"{}");
        assert!(keys(&one).is_empty());
        let asked = one.walk("").unwrap();
        assert_eq!(lines_among(&[], &one, &asked, true).unwrap()[0].key, "a.json");
        assert_eq!(lines_among(&[], &one, &asked, true).unwrap().len(), 1);
    }
}
