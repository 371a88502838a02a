//! JSON records: every one is JSON.

use std::fmt;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Work;
use crate::prepare::chunks::Chunks;
use crate::prepare::input::Input;

impl Work<'_> {
    /// Every line of a file, plain or compressed.
    pub(super) fn json_lines(&mut self, path: &Path) -> crate::Result<()> {
        let name = path.display().to_string();
        let input = Input::probe(path, &path.file_name().unwrap_or_default().to_string_lossy());
        let Some(input) = self.findings.take(&name, "file", "to be readable", input)? else { return Ok(()) };
        self.findings.checked_files += 1;
        let mut before = 0;
        let mut chunks = Chunks::new(std::slice::from_ref(&input), 1 << 20, 0, 0, 0);
        let mut room = Vec::new();
        while let Some(chunk) = chunks.read(room) {
            let Some(chunk) = self.findings.take(&name, "content", "to be whole", chunk)? else { break };
            let lines = chunk.bytes().split_inclusive(|b| *b == b'\n');
            for (number, line) in (chunk.line..).zip(lines) {
                self.json(&name, number, number == 0, line);
            }
            self.step(chunk.stored - before)?;
            before = chunk.stored;
            room = chunk.into_room();
        }
        Ok(())
    }

    /// One record; a byte-order mark is forgiven at the beginning of a file.
    pub(super) fn json(&mut self, name: &str, record: u64, is_first: bool, line: &[u8]) {
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
        if let Some(found) = found {
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
