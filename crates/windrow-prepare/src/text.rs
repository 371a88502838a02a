//! The text of one field of a JSON line, borrowed from the line where it holds no escapes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windrow_core::format::foreign::encoding;
use windrow_core::{Error, Kind, Result};

use super::encode::LinePlace;
use super::ordinary::string_in;

/// The string that is in `field` of a JSON object: under that key, else at that path of keys with dots, as
/// [`Takes::Text`](crate::Takes::Text) has it; of a field that is there twice, the last one.
///
/// A byte-order mark is left out at byte 0. Other fields are skipped, whatever they hold. Text with escapes is
/// copied into `room`, whose memory serves line after line ([`crate::encode::Encoded::room`]); what it holds before does not matter.
///
/// # Errors
/// `Corrupt` naming file, line and byte: a blank line, bytes that are not UTF-8, no JSON, no object, no such field, or a
/// field that holds no string.
pub fn text_of<'a>(
    line: &'a [u8],
    field: &str,
    place: &LinePlace<'_>,
    room: &'a mut Vec<u8>,
) -> Result<Cow<'a, str>> {
    let text = line_text(line, place)?;
    let skipped = (line.len() - text.len()) as u64;
    let corrupt = |column: usize, message: String| {
        place.error(Kind::Corrupt, message).byte(place.byte + skipped + column as u64)
    };
    if text.trim_ascii().is_empty() {
        return Err(corrupt(0, format!("a blank line; expected a JSON object with {field:?}"))
            .hint("remove blank lines from the input"));
    }
    if let Some(found) = string_in(text, field, room) {
        return Ok(Cow::Borrowed(found));
    }
    let not_json = |at: usize, e: serde_json::Error| {
        corrupt(at.min(text.len()), "the line is not JSON".to_string())
            .caused_by(e)
            .hint("a record is one line of JSON, which holds one object")
    };
    match at_path(text, field) {
        Ok(Some(found)) if found.get().starts_with('"') => {
            let start = found.get().as_ptr() as usize - text.as_ptr() as usize;
            serde_json::from_str(found.get()).map_err(|e| not_json(start + e.column().saturating_sub(1), e))
        }
        Ok(Some(found)) => {
            let what = kind_of(found.get());
            Err(corrupt(0, format!("field {field:?} holds {what}; expected a string")).field(field))
        }
        Ok(None) => Err(no_field(text, field, corrupt(0, format!("no field {field:?} in the line")))),
        Err(e) if e.is_data() => {
            Err(corrupt(0, format!("expected a JSON object with {field:?}, found {}", kind_of(text))))
        }
        Err(e) if e.is_syntax() => match without_number_words(text) {
            Some(plain) => {
                let place = LinePlace { byte: place.byte + skipped, ..*place };
                text_of(plain.as_bytes(), field, &place, &mut Vec::new())
                    .map(|found| Cow::Owned(found.into_owned()))
            }
            None => Err(not_json(e.column().saturating_sub(1), e)),
        },
        Err(e) => Err(not_json(e.column().saturating_sub(1), e)),
    }
}

/// A line as text; a byte-order mark is left out at byte 0.
///
/// # Errors
/// `Corrupt` naming the byte that is not UTF-8.
pub fn line_text<'a>(line: &'a [u8], place: &LinePlace<'_>) -> Result<&'a str> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    let unmarked = if place.byte == 0 { line.strip_prefix(BOM).unwrap_or(line) } else { line };
    simdutf8::compat::from_utf8(unmarked).map_err(|e| {
        let at = e.valid_up_to();
        let byte = place.byte + (line.len() - unmarked.len() + at) as u64;
        let error =
            place.error(Kind::Corrupt, format!("invalid UTF-8: byte 0x{:02x}", unmarked[at])).byte(byte);
        match encoding(unmarked) {
            Some(found) => error.hint(format!("it looks like {found}: iconv -f {found} -t UTF-8 OLD > NEW")),
            None => error
                .hint("convert the input to UTF-8, from Latin-1 for one: iconv -f LATIN1 -t UTF-8 OLD > NEW"),
        }
    })
}

/// The fields of a record. `NaN` and `Infinity`, which only Python writes, are 0 with a decimal point there: no ID and no mask is.
///
/// # Errors
/// What is not a JSON object.
pub fn record_of(text: &str) -> serde_json::Result<Map<String, Value>> {
    serde_json::from_str(text).or_else(|e| match without_number_words(text) {
        Some(plain) if e.is_syntax() => serde_json::from_str(&plain),
        _ => Err(e),
    })
}

// What is in the field.
pub(super) fn field_in<'a>(text: &'a str, field: &str) -> serde_json::Result<Option<&'a RawValue>> {
    let mut json = serde_json::Deserializer::from_str(text);
    let found = Field(field).deserialize(&mut json)?;
    json.end().map(|()| found)
}

// What is in the field, or at a path of such fields: keys may have dots themselves.
fn at_path<'a>(text: &'a str, path: &str) -> serde_json::Result<Option<&'a RawValue>> {
    if let Some(found) = field_in(text, path)? {
        return Ok(Some(found));
    }
    for (dot, _) in path.rmatch_indices('.') {
        if let Some(inner) = field_in(text, &path[..dot])?.filter(|inner| inner.get().starts_with('{'))
            && let Some(found) = at_path(inner.get(), &path[dot + 1..])?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Takes out what is in the field of a record, or at a path of such fields, as [`text_of`] finds it.
pub fn taken(record: &mut Map<String, Value>, path: &str) -> Option<Value> {
    record.remove(path).or_else(|| {
        path.rmatch_indices('.')
            .find_map(|(dot, _)| taken(record.get_mut(&path[..dot])?.as_object_mut()?, &path[dot + 1..]))
    })
}

// The line with numbers of the same length where Python writes NaN and Infinity, which no JSON has; `None` without any.
fn without_number_words(text: &str) -> Option<String> {
    const WORDS: [(&str, &str); 2] = [("NaN", "0.0"), ("Infinity", "0.000000")];
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', 'N', 'I']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let is_value = plain.trim_end_matches('-').trim_ascii_end().ends_with([':', ',', '[']);
        let word = WORDS.iter().find(|(word, _)| {
            let ends = |behind: &str| behind.trim_ascii_start().starts_with([',', ']', '}']);
            is_value && from.strip_prefix(word).is_some_and(ends)
        });
        let size = match word {
            Some((word, number)) => {
                plain.push_str(number);
                word.len()
            }
            None => {
                let size = if from.starts_with('"') { quoted(from) } else { 1 };
                plain.push_str(&from[..size]);
                size
            }
        };
        rest = &from[size..];
    }
    plain.push_str(rest);
    (plain != text).then_some(plain)
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

fn no_field(text: &str, field: &str, error: Error) -> Error {
    let keys: Vec<String> = match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(map) => map.keys().take(10).cloned().collect(),
        Err(_) => Vec::new(),
    };
    let error = error.field(field);
    if keys.is_empty() {
        error
    } else {
        error.hint(format!("it has {}; choose one with @text_field@", keys.join(", ")))
    }
}

fn kind_of(text: &str) -> &'static str {
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

struct Field<'f>(&'f str);

impl<'a> DeserializeSeed<'a> for Field<'_> {
    type Value = Option<&'a RawValue>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Field<'_> {
    type Value = Option<&'a RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(Key(self.0))? {
            if is_it {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key is the one.
struct Key<'f>(&'f str);

impl<'a> DeserializeSeed<'a> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> std::result::Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> std::result::Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: LinePlace<'_> = LinePlace { file: "f.jsonl", line: 0, byte: 100 };

    fn text(line: &[u8]) -> Result<String> {
        text_of(line, "text", &PLACE, &mut Vec::new()).map(Cow::into_owned)
    }

    #[test]
    fn text_is_borrowed_where_it_can_be() {
        let line = br#"{"a":[{"b":1}],"text":"x"}"#;
        let mut room = Vec::new();
        let found = text_of(line, "text", &PLACE, &mut room).unwrap();
        assert!(matches!(found, Cow::Borrowed("x")) && line.as_ptr_range().contains(&found.as_ptr()));
        assert_eq!(text(br#"{"text":"a\n\u00e9"}"#).unwrap(), "a\n\u{e9}");
        let first = LinePlace { byte: 0, ..PLACE };
        let marked = "\u{feff}{\"text\":\"é\"} \r".as_bytes();
        assert_eq!(text_of(marked, "text", &first, &mut Vec::new()).unwrap(), "é");
        // Anywhere else it is no part of JSON.
        assert!(text(marked).is_err());
        assert_eq!(text(br#"{"text":"a","text":"b"}"#).unwrap(), "b");
    }

    #[test]
    fn a_path_leads_into_objects_where_no_key_has_its_name() {
        let at = |line: &str, path: &str| {
            text_of(line.as_bytes(), path, &PLACE, &mut Vec::new()).map(Cow::into_owned)
        };
        for (line, path) in [
            (r#"{"meta": {"text": "x"}}"#, "meta.text"),
            (r#"{"meta": {"text": "y"}, "meta.text": "x"}"#, "meta.text"),
            (r#"{"a": {"b": {"c": "y"}}, "a.b": {"c": "x"}}"#, "a.b.c"),
            (r#"{"a": {"b.c": "x"}}"#, "a.b.c"),
            (r#"{"a": 1, "b": NaN, "meta": {"text": "x"}}"#, "meta.text"),
        ] {
            assert_eq!(at(line, path).unwrap(), "x", "{line}");
            let mut record = record_of(line).unwrap();
            assert_eq!(taken(&mut record, path), Some("x".into()), "{line}");
        }
        let said = at(r#"{"meta": {"text": 1}}"#, "meta.text").unwrap_err();
        assert!(said.message().contains("holds a number"), "{said}");
        assert!(at(r#"{"meta": {"other": "x"}}"#, "meta.text").unwrap_err().message().contains("no field"));
    }

    #[test]
    fn numbers_that_only_python_writes_may_stand_in_other_fields() {
        for line in [
            r#"{"a": NaN, "text": "x"}"#,
            r#"{"text": "x", "a": [-Infinity, Infinity, {"b": NaN}]}"#,
            r#"{"a\"NaN": "q\\", "b":NaN,"text":"x"}"#,
        ] {
            assert_eq!(text(line.as_bytes()).unwrap(), "x", "{line}");
        }
        assert_eq!(text(br#"{"a": NaN, "text": ", NaN, "}"#).unwrap(), ", NaN, ");
        assert_eq!(text("{\"é\": NaN, \"text\": \"É: NaN,\"}".as_bytes()).unwrap(), "É: NaN,");
    }

    #[test]
    fn records_may_hold_them_too() {
        let record = record_of(r#"{"a": [NaN, -Infinity], "text": "NaN", "mask": [1]}"#).unwrap();
        assert_eq!((record["text"].as_str(), record["mask"][0].as_u64()), (Some("NaN"), Some(1)));
        // They are no IDs.
        assert_eq!(record["a"][0].as_i64(), None);
        for line in ["", "[NaN]", r#"{"a": NaN1}"#, r#"{"a": NaN, "b"}"#] {
            assert!(record_of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_and_where() {
        let deep = [b"{\"text\":".as_slice(), &b"[".repeat(100_000)].concat();
        for (line, message, byte) in [
            (b"  ".as_slice(), "a blank line", 100),
            (b"{\"text\":\"\xff\"}", "invalid UTF-8: byte 0xff", 109),
            (b"{\"text\":\"x\"", "not JSON", 110),
            (b"{\"text\":\"x\"} 1", "not JSON", 113),
            (b"{\"text\":NaN}", "holds a number", 100),
            (b"{\"a\":NaN1,\"text\":\"x\"}", "not JSON", 105),
            (b"{\"a\":1NaN,\"text\":\"x\"}", "not JSON", 106),
            (b"{\"a\":NaN,\"text\":\"x\" 1}", "not JSON", 121),
            (br#"{"a":1, "text": "x\ud800y"}"#, "not JSON", 100 + 24),
            (b"[1]", "found a list", 100),
            (b"3", "found a number", 100),
            (b"{\"t\":1}", "no field \"text\"", 100),
            (b"{\"text\":null}", "holds null", 100),
            (b"{\"text\":[\"x\"]}", "holds a list", 100),
            (b"{\"text\":{\"x\":1}}", "holds an object", 100),
            (&deep, "not JSON", 100 + deep.len() as u64),
        ] {
            let error = text(line).unwrap_err();
            assert!(error.message().contains(message), "{error}");
            assert_eq!(error.kind(), Kind::Corrupt);
            assert_eq!(error.place().file.as_deref(), Some("f.jsonl"));
            assert_eq!(error.place().record, Some(0));
            assert!(error.place().byte.is_some_and(|b| b.abs_diff(byte) <= 1), "{error}: {byte}");
        }
    }
}
