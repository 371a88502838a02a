//! The keys of a record and the JSON text of each: what is under other keys than those of a conversation is not read.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::value::RawValue;
use windrow_core::{Error, Result};

/// A record, and where in its text the values of its keys are.
pub(crate) struct Record<'t> {
    text: &'t str,
    places: HashMap<String, Range<usize>>,
}

impl<'t> Record<'t> {
    /// The keys of a JSON object. As Python writes them, NaN and infinity are values too; they are refused where they are read.
    ///
    /// # Errors
    /// `Corrupt` for what is not JSON or not an object.
    pub(crate) fn of(text: &'t str) -> Result<Record<'t>> {
        let found = match places(text) {
            Err(e) if e.is_syntax() => places(&without_number_words(text)).map_err(|_| e),
            other => other,
        };
        match found {
            Ok(places) => Ok(Record { text, places }),
            Err(e) if e.is_data() => Err(Error::corrupt("expected a JSON object with a conversation")),
            Err(e) => Err(Error::corrupt("the line is not JSON")
                .caused_by(e)
                .hint("a record is one line of JSON, which holds one object")),
        }
    }

    /// The JSON text under a key; of a key that is there twice, the last one.
    pub(crate) fn own(&self, key: &str) -> Option<&'t str> {
        self.places.get(key).map(|place| &self.text[place.clone()])
    }

    /// The JSON text under a key, or at a path of keys with dots: keys may have dots themselves.
    pub(crate) fn get(&self, path: &str) -> Option<&'t str> {
        let inside = |dot: usize| Record::of(self.own(&path[..dot])?).ok()?.get(&path[dot + 1..]);
        self.own(path).or_else(|| path.rmatch_indices('.').find_map(|(dot, _)| inside(dot)))
    }

    /// Its keys, in order.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<_> = self.places.iter().collect();
        keys.sort_by_key(|(_, place)| place.start);
        keys.into_iter().map(|(key, _)| key.as_str()).collect()
    }
}

fn places(text: &str) -> serde_json::Result<HashMap<String, Range<usize>>> {
    let fields: HashMap<String, &RawValue> = serde_json::from_str(text)?;
    let place = |raw: &RawValue| {
        let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        start..start + raw.get().len()
    };
    Ok(fields.into_iter().map(|(key, raw)| (key, place(raw))).collect())
}

// The text with empty lists of the same length in the place of NaN and infinity, which no JSON has: a list is JSON where one
// of them would be, and nowhere else.
fn without_number_words(text: &str) -> String {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let size = match WORDS.into_iter().find(|word| rest.starts_with(word)) {
            Some(word) => {
                plain.push_str(&format!("[{:1$}]", "", word.len() - 2));
                word.len()
            }
            None => {
                let size = if first == '"' { quoted(rest) } else { first.len_utf8() };
                plain.push_str(&rest[..size]);
                size
            }
        };
        rest = &rest[size..];
    }
    plain
}

// Bytes of the string that a text begins with; all of them where it has no end.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_words_of_python_are_values_and_nothing_else_is() {
        let text = r#"{"a": NaN, "NaN\"": [-Infinity,Infinity], "b": "é NaN", "m": [1]}"#;
        let record = Record::of(text).unwrap();
        assert_eq!(record.keys(), ["a", "NaN\"", "b", "m"]);
        assert_eq!(
            [record.get("a"), record.get("b"), record.get("m")],
            [Some("NaN"), Some("\"é NaN\""), Some("[1]")]
        );
        for wrong in
            ["{NaN: 1}", r#"{"a": 1NaN}"#, r#"{"a": -NaN}"#, r#"{"a": NaNNaN}"#, r#"{"a": +Infinity}"#, "{"]
        {
            let error = Record::of(wrong).err().unwrap();
            assert_eq!(error.message(), "the line is not JSON", "{wrong}");
        }
    }
}
