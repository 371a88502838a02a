//! Small encoders that a person can check by eye.

use windrow_core::{Error, Kind, Result};
use windrow_prepare::{Encode, Encoded, LinePlace, Takes, text_of};

/// One id per character of `text`.
pub(super) struct Ord;

impl Encode for Ord {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        out.ids.extend(text_of(line, "text", place, &mut out.room)?.chars().map(i64::from_char));
        Ok(())
    }

    fn takes(&self) -> Option<Takes<'_>> {
        Some(Takes::Text("text"))
    }

    fn encode_text(&self, text: &str, out: &mut Encoded) -> Result<()> {
        out.ids.extend(text.chars().map(i64::from_char));
        Ok(())
    }

    fn describe(&self) -> String {
        "ord".to_string()
    }

    fn vocab_size(&self) -> Option<u64> {
        Some(0x11_0000)
    }
}

trait FromChar {
    fn from_char(c: char) -> i64;
}

impl FromChar for i64 {
    fn from_char(c: char) -> i64 {
        i64::from(u32::from(c))
    }
}

/// The whole numbers in `text`.
pub(super) struct WordsInt;

impl Encode for WordsInt {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        out.ids.extend(
            text_of(line, "text", place, &mut out.room)?
                .split_whitespace()
                .map(|w| w.parse::<i64>().unwrap()),
        );
        Ok(())
    }

    fn parallel(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "words_int".to_string()
    }
}

/// Parts with a loss mask of 1 beside those of the masked types.
pub(super) struct Parts {
    pub(super) masked: Vec<String>,
}

impl Encode for Parts {
    fn encode(&self, line: &[u8], _: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        for part in value["parts"].as_array().unwrap() {
            let is_masked = self.masked.iter().any(|m| part["type"] == m.as_str());
            for c in part["text"].as_str().unwrap().chars() {
                out.ids.push(i64::from_char(c));
                out.tracks[0].push(u8::from(is_masked));
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        "parts".to_string()
    }
}

/// [`Ord`], but fails at a line.
pub(super) struct FailsAt {
    pub(super) file: &'static str,
    pub(super) line: u64,
    pub(super) kind: Kind,
}

impl Encode for FailsAt {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        if place.file.ends_with(self.file) && place.line == self.line {
            return Err(Error::new(self.kind, "the encoder fails here"));
        }
        Ord.encode(line, place, out)
    }

    fn describe(&self) -> String {
        Ord.describe()
    }

    fn vocab_size(&self) -> Option<u64> {
        Ord.vocab_size()
    }
}
