//! JSON text as values, whole numbers beyond 64 bits with all their digits.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use windrow_core::{Error, Place, Result, Row, Value};

/// Digits of the longest number that is below 2^63 whatever they are.
const SAFE_DIGITS: usize = 18;

/// The value that a JSON text writes. `place` is where it begins.
///
/// # Errors
/// As [`parse_json`].
pub(super) fn json_value(text: &[u8], place: &Place) -> Result<Value> {
    parse_json(text, place).map(|parsed| with_digits(text, parsed))
}

/// The value that a JSON text writes, which was parsed already.
pub(super) fn with_digits(text: &[u8], parsed: Json) -> Value {
    if !loses_digits(text) {
        return Value::from(parsed);
    }
    // It is JSON, so this reads it too.
    exactly(text).unwrap_or_else(|_| Value::from(parsed))
}

// Whether the parser may have made a float of a whole number: of one beyond 64 bits, and of -0.
fn loses_digits(text: &[u8]) -> bool {
    let mut run = 0;
    for (at, byte) in text.iter().enumerate() {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        if run > SAFE_DIGITS || (run == 1 && *byte == b'0' && at > 0 && text[at - 1] == b'-') {
            return true;
        }
    }
    false
}

fn exactly(text: &[u8]) -> serde_json::Result<Value> {
    let raw: &RawValue = serde_json::from_slice(text)?;
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text)?;
            let row = members.into_iter().map(|(name, raw)| Ok((name, exactly(raw.get().as_bytes())?)));
            Ok(Value::Struct(Row::of_distinct(row.collect::<serde_json::Result<_>>()?)))
        }
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(text)?;
            let values = values.into_iter().map(|raw| exactly(raw.get().as_bytes()));
            values.collect::<serde_json::Result<_>>().map(Value::List)
        }
        Some(b'-' | b'0'..=b'9') if text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) => {
            Ok(match (text.parse::<i64>(), text.parse::<u64>()) {
                (Ok(whole), _) => Value::I64(whole),
                (_, Ok(whole)) => Value::U64(whole),
                _ => Value::Big(text.to_string()),
            })
        }
        _ => serde_json::from_str::<serde_json::Value>(text).map(Value::from),
    }
}

/// Names and texts of an object, each name once: the last of equal ones counts, in the place of the first.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members: Vec<(String, &RawValue)> = Vec::new();
                let mut places: HashMap<String, usize> = HashMap::new();
                while let Some((name, raw)) = map.next_entry::<String, &RawValue>()? {
                    match places.get(&name) {
                        Some(place) => members[*place].1 = raw,
                        None => {
                            places.insert(name.clone(), members.len());
                            members.push((name, raw));
                        }
                    }
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Each)
    }
}

/// The value that a JSON record writes. `place` is where the record begins; its byte is made absolute in errors.
///
/// Values nest at most 127 deep; of equal keys the last counts; NaN and Infinity are not JSON.
///
/// # Errors
/// `Corrupt` naming the byte that is not JSON.
///
/// ```
/// # use windrow_core::Place;
/// # use windrow_formats::parse_json;
/// assert_eq!(parse_json(br#"{"text": "a"}"#, &Place::default())?["text"], "a");
/// let place = Place { byte: Some(100), ..Place::default() };
/// assert_eq!(parse_json(b"[1, NaN]", &place).unwrap_err().place().byte, Some(104));
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub fn parse_json(bytes: &[u8], place: &Place) -> Result<Json> {
    serde_json::from_slice(bytes).map_err(|cause| {
        let at = error_byte(bytes, &cause);
        let rest = bytes.get(at..).unwrap_or_default();
        let found = match rest.first() {
            None => "the end of the line".to_string(),
            Some(_) => {
                format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(24)]))
            }
        };
        let mut error = Error::corrupt(format!("expected JSON, found {found}"));
        if let Some(file) = &place.file {
            error = error.at(file);
        }
        if let Some(record) = place.record {
            error = error.record(record);
        }
        let hint = if is_number_word(rest) {
            "JSON has no NaN or Infinity: write null instead"
        } else if cause.to_string().starts_with("recursion limit") {
            "values may nest 127 deep"
        } else {
            "every line must hold one JSON value"
        };
        error.byte(place.byte.unwrap_or(0).saturating_add(at as u64)).hint(hint).caused_by(cause)
    })
}

/// The parser counts columns from 1 within a line; a byte that ends a token is what it stumbled over.
pub(super) fn error_byte(bytes: &[u8], cause: &serde_json::Error) -> usize {
    let line_start = match cause.line().checked_sub(2) {
        Some(before) => memchr::memchr_iter(b'\n', bytes).nth(before).map_or(0, |at| at + 1),
        None => 0,
    };
    // At the end of the text the column is that of the last byte.
    let column = if cause.is_eof() { cause.column() } else { cause.column().saturating_sub(1) };
    let at = (line_start + column).min(bytes.len());
    // A number too large for a float64 is known by its last digit.
    if cause.to_string().starts_with("number out of range") {
        let in_number = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
        return bytes[..at].iter().rposition(|b| !in_number(b)).map_or(0, |b| b + 1);
    }
    // In `NaN` and `-Infinity` it stumbles at a later letter.
    let word = bytes[..at].iter().rposition(|b| !b.is_ascii_alphabetic() && *b != b'-').map_or(0, |b| b + 1);
    if is_number_word(&bytes[word..]) { word } else { at }
}

fn is_number_word(bytes: &[u8]) -> bool {
    [&b"NaN"[..], b"-NaN", b"nan", b"Infinity", b"-Infinity", b"inf", b"-inf"]
        .iter()
        .any(|word| bytes.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_keep_their_digits() {
        let text = br#"{"a": [-0, 18446744073709551616, -9223372036854775808, 18446744073709551615, 1e3],
                       "b": 1, "c": {"d": "0123456789012345678"}, "b": 123456789012345678901234567890}"#;
        let Value::Struct(row) = json_value(text, &Place::default()).unwrap() else { panic!("an object") };
        let numbers = vec![
            Value::I64(0),
            Value::Big("18446744073709551616".to_string()),
            Value::I64(i64::MIN),
            Value::U64(u64::MAX),
            Value::F64(1000.0),
        ];
        assert_eq!(row.get("a"), Some(&Value::List(numbers)));
        assert_eq!(row.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(row.get("b"), Some(&Value::Big("123456789012345678901234567890".to_string())));
        let Some(Value::Struct(inner)) = row.get("c") else { panic!("an object") };
        assert_eq!(inner.get("d").and_then(Value::as_text), Some("0123456789012345678"));
        assert_eq!(json_value(b"-0.5", &Place::default()).unwrap(), Value::F64(-0.5));
    }
}
