//! JSON records: every one is JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Verifier;

impl Verifier<'_> {
    /// One record; a byte-order mark is forgiven at the beginning of a file.
    pub fn json(&mut self, name: &str, record: u64, is_first: bool, line: &[u8]) {
        self.findings.checked_records += 1;
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(unmarked) if is_first => unmarked,
            _ => line,
        };
        let found = match simdutf8::compat::from_utf8(line) {
            Err(e) => Some(format!("invalid UTF-8 at byte {} of the line", e.valid_up_to())),
            Ok(text) if text.trim_ascii().is_empty() => Some("a blank line".to_string()),
            // Escapes and numbers too, which nothing that only skips a value looks at.
            Ok(text) => serde_json::from_str::<Json>(text).err().map(|e| e.to_string()),
        };
        if let Some(found) = found.filter(|_| !self.cut.contains(name)) {
            self.findings.problem(name, Some(record), "JSON", "a JSON value".to_string(), found);
        }
    }
}

/// A JSON value as it is read, of which nothing is kept.
struct Json;

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Json)
    }
}

impl<'de> Visitor<'de> for Json {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json)
    }

    fn visit_str<E>(self, _: &str) -> Result<Json, E> {
        Ok(Json)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        while seq.next_element::<Json>()?.is_some() {}
        Ok(Json)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        while map.next_entry::<Json, Json>()?.is_some() {}
        Ok(Json)
    }
}
