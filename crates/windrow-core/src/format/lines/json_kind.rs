//! What a file called `.json` holds, which the name does not say: JSON Lines, as C4, Dolma and GluonTS call theirs so too,
//! or one document: a list of series, or a description of other data.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, ErrorKind, Read};

use serde::de::IgnoredAny;

use crate::error::Result;
use crate::format::Probe;
use crate::manifest::MANIFEST_FILE;
use crate::store::{Object, Store, expanded_stream, key, plain_name, unless_damaged};

/// What the names of such files end in.
pub const SUFFIXES: &[&str] = &[".json", ".json.gz", ".json.zst"];

/// Bytes looked at to tell what values a file begins with.
pub const HEAD: usize = 64 << 10;

/// Bytes looked at for the end of the first line.
const MOST: u64 = 16 << 20;

/// Names of files that describe data, whatever their size.
const DESCRIPTIONS: &[&str] = &[
    MANIFEST_FILE,
    "meta.json",
    "metadata.json",
    "config.json",
    "dataset_info.json",
    "dataset_infos.json",
    "dataset_dict.json",
    "features.json",
    "index.json",
    "info.json",
    "manifest.json",
    "schema.json",
    "state.json",
    "stats.json",
    "zarr.json",
    "generation_config.json",
    "preprocessor_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
];

/// What a `.json` file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// A value a line, two lines or more.
    Lines,
    /// One list or object, which ends with its line: a document, or lines of which there is one.
    OneLine,
    /// One document, or no JSON at all.
    Document,
}

/// Whether a file of this name may hold records.
pub fn may_hold_records(name: &str) -> bool {
    let name = key::name_of(name);
    let is_side =
        name == MANIFEST_FILE || name == "meta.json" || name.ends_with(&format!(".{MANIFEST_FILE}"));
    SUFFIXES.iter().any(|suffix| key::has_suffix(name, suffix)) && !is_side
}

/// Whether the name is one that descriptions of data have.
pub fn is_description(name: &str) -> bool {
    let name = plain_name(key::name_of(name));
    DESCRIPTIONS.contains(&name)
        || name.ends_with(&format!(".{MANIFEST_FILE}"))
        || name.ends_with(".metadata.json")
}

/// Whether a file called `.json` holds lines.
pub fn is_lines(probe: &Probe) -> bool {
    may_hold_records(&probe.file_name())
        && JsonKind::at(probe.store.as_ref(), &probe.key).is_ok_and(|kind| kind == JsonKind::Lines)
}

impl JsonKind {
    /// What the beginning of an object says, expanded where it is compressed.
    ///
    /// # Errors
    /// `Io`.
    pub fn of(object: &dyn Object) -> Result<JsonKind> {
        let Ok(stream) = expanded_stream(object)? else { return Ok(JsonKind::Document) };
        let mut stream = stream.take(MOST);
        let mut scan = FirstLine::default();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(scan.at_the_end()),
                Ok(size) => {
                    if let Some(kind) = buffer[..size].iter().find_map(|byte| scan.take(*byte)) {
                        return Ok(kind);
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Damage is reported by whoever reads all of it; what comes before the damage may be enough.
                Err(e) => return unless_damaged(e).map_or(Ok(scan.at_the_end()), Err),
            }
        }
    }

    /// The kind of the file with this key.
    ///
    /// # Errors
    /// What [`Store::open`] says.
    pub fn at(store: &dyn Store, key: &str) -> Result<JsonKind> {
        JsonKind::of(store.open(key)?.as_ref())
    }
}

/// Looks for the end of the first line that holds anything, and for what follows it.
#[derive(Default)]
struct FirstLine {
    /// Bytes of a byte order mark so far.
    mark: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The value of the line is complete; its line has ended.
    is_whole: bool,
    has_ended: bool,
}

impl FirstLine {
    // What this byte decides.
    fn take(&mut self, byte: u8) -> Option<JsonKind> {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                b'\n' => return Some(JsonKind::Document),
                _ => {}
            }
            return None;
        }
        match byte {
            b'\n' if self.is_whole => self.has_ended = true,
            b'\n' if self.depth > 0 => return Some(JsonKind::Document),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ if self.has_ended => return Some(JsonKind::Lines),
            _ if self.is_whole => return Some(JsonKind::Document),
            b'{' | b'[' => self.depth += 1,
            _ if self.depth == 0 => {
                // A value that is neither list nor object begins no record.
                match BOM.get(self.mark) {
                    Some(wanted) if *wanted == byte => self.mark += 1,
                    _ => return Some(JsonKind::Document),
                }
            }
            b'"' => self.in_string = true,
            b'}' | b']' => {
                self.depth -= 1;
                self.is_whole = self.depth == 0;
            }
            _ => {}
        }
        None
    }

    fn at_the_end(&self) -> JsonKind {
        if self.is_whole { JsonKind::OneLine } else { JsonKind::Document }
    }
}

/// The keys of the object that the first line holds; `None` where it holds something else.
///
/// # Errors
/// `Io`.
pub fn first_keys(object: &dyn Object) -> Result<Option<BTreeSet<String>>> {
    let Ok(stream) = expanded_stream(object)? else { return Ok(None) };
    let mut text = Vec::new();
    // What is damaged or too long has no keys that could be compared.
    let read = BufReader::new(stream.take(MOST)).read_until(b'\n', &mut text);
    if let Some(error) = read.err().and_then(unless_damaged) {
        return Err(error);
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let found: Option<BTreeMap<String, IgnoredAny>> = serde_json::from_slice(text).ok();
    Ok(found.map(|keys| keys.into_keys().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};
    use crate::store::Memory;

    // Lines, of which the bytes from some place on cannot be had.
    struct Refusing {
        text: Vec<u8>,
        from: u64,
        kind: Kind,
    }

    impl Object for Refusing {
        fn size(&self) -> u64 {
            self.text.len() as u64
        }

        fn name(&self) -> &str {
            "a.json"
        }

        fn modified_ns(&self) -> Option<u64> {
            None
        }

        fn read<'a>(&'a self, start: u64, size: usize, _: &'a mut Vec<u8>) -> Result<&'a [u8]> {
            if start + size as u64 > self.from {
                Err(Error::new(self.kind, "refused").byte(start))
            } else {
                Ok(&self.text[start as usize..start as usize + size])
            }
        }
    }

    #[test]
    fn bytes_that_cannot_be_had_are_an_error_and_damage_is_not() {
        let line = format!("{{\"text\": \"{}\"}}\n", "x".repeat(300_000));
        for kind in [Kind::Io, Kind::Interrupted, Kind::Memory, Kind::Corrupt] {
            let object = Refusing { text: line.repeat(2).into_bytes(), from: 100_000, kind };
            let found =
                (JsonKind::of(&object).map_err(|e| e.kind()), first_keys(&object).map_err(|e| e.kind()));
            match kind {
                Kind::Corrupt => assert_eq!(found, (Ok(JsonKind::Document), Ok(None))),
                _ => assert_eq!(found, (Err(kind), Err(kind))),
            }
        }
    }

    fn kind(text: &str) -> JsonKind {
        let store = Memory::new().with("a.json", text.as_bytes());
        JsonKind::at(&store, "a.json").unwrap()
    }

    #[test]
    fn lines_are_told_from_documents_by_their_first_line() {
        let long = format!("{{\"text\": \"{}\"}}\n{{}}", "x".repeat(200_000));
        for text in [
            "{\"a\": 1}\n{\"a\": 2}\n",
            "{\"a\": [1, {\"b\": \"}\\\"\\n{\"}]}\r\n[",
            "\u{feff}{}\n\n{}",
            " [1, 2]\n[3]",
            "\n{}\nx",
            "{\"a\": NaN}\n{\"a\": 1",
            &long,
        ] {
            assert_eq!(kind(text), JsonKind::Lines, "{text:.40}");
        }
        for text in ["{\"a\": 1}", "[[1, 2], [3]]\n", "{}\n\n  \n"] {
            assert_eq!(kind(text), JsonKind::OneLine, "{text}");
        }
        for text in [
            "",
            "{\n  \"a\": 1\n}\n",
            "[\n[1],\n[2]\n]",
            "{\"a\": 1} {\"a\": 2}\n{}",
            "{\"a\": \"\n\"}\n{}",
            "1\n2\n",
            "\"a\"\n\"b\"\n",
            "text\n{}\n",
            "{\"a\": 1",
        ] {
            assert_eq!(kind(text), JsonKind::Document, "{text}");
        }
    }

    #[test]
    fn names_say_what_describes_data() {
        assert!(may_hold_records("x/data.json.gz") && may_hold_records("config.json"));
        assert!(!may_hold_records("x/windrow.json") && !may_hold_records("a.bin.windrow.json"));
        assert!(is_description("x/dataset_info.json") && !is_description("x/data.json"));
        assert!(is_description("x/a.jsonl.windrow.json"));
    }
}
