//! What a tokenizer.json claims, read before anything believes it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use windrow_core::{Error, Result};

// A toy file may number its few tokens as it likes; above this, an ID must be justified by the size of the file.
const SMALL_ID: u64 = 1 << 16;

/// The claims that decide whether the file is loaded at all.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The largest id plus one.
    pub(crate) vocab_size: u64,
    /// Tokens that are matched in the text before the model sees it.
    pub(crate) added: Vec<Added>,
}

/// One of them.
#[derive(Debug, Deserialize)]
pub(crate) struct Added {
    id: u32,
    pub(crate) content: String,
}

impl Definition {
    /// Reads and checks the claims.
    ///
    /// # Errors
    /// `Corrupt` when it is not a tokenizer.json or numbers more tokens than it can hold; `Unsupported` when the model
    /// draws its merges at random.
    pub(crate) fn read(content: &[u8]) -> Result<Definition> {
        let file: File = serde_json::from_slice(content).map_err(|e| {
            Error::corrupt("this is not a tokenizer.json").caused_by(e).hint(
                "a truncated download? it is the file that save_pretrained() of a fast tokenizer writes",
            )
        })?;
        if let Some(dropout) = file.model.dropout.filter(|&p| p != 0.0) {
            return Err(Error::unsupported(format!(
                "the tokenizer drops merges at random (dropout {dropout}): every run would give other IDs"
            ))
            .field("model.dropout")
            .hint("set it to null"));
        }
        let added = file.added_tokens.unwrap_or_default();
        let vocab_size = added
            .iter()
            .map(|a| u64::from(a.id) + 1)
            .fold(file.model.vocab.size, |most, size| most.max(size));
        // Engines arrange tables by id. A token takes more than one byte of the file, so IDs stay below its size.
        if vocab_size > SMALL_ID.max(content.len() as u64) {
            return Err(Error::corrupt(format!(
                "it numbers a token {}, but a file of {} bytes cannot hold that number of tokens",
                vocab_size - 1,
                content.len()
            ))
            .field("model.vocab"));
        }
        Ok(Definition { vocab_size, added })
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Option<Vec<Added>>,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    dropout: Option<f64>,
    vocab: Vocab,
}

/// The vocabulary's size, counted in passing: `{token: id}` or, in a unigram model, `[[token, score]]`.
struct Vocab {
    size: u64,
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Count)
    }
}

struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = Vocab;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vocabulary: {token: id} or [[token, score]]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
        let mut size = 0;
        while let Some((_, id)) = map.next_entry::<IgnoredAny, u64>()? {
            if id > u64::from(u32::MAX) {
                return Err(A::Error::custom(format!("token ID {id} does not fit 32 bits")));
            }
            size = size.max(id + 1);
        }
        Ok(Vocab { size })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vocab, A::Error> {
        let mut size = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            size += 1;
        }
        Ok(Vocab { size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Definition> {
        Definition::read(text.as_bytes())
    }

    #[test]
    fn the_size_is_the_largest_id_plus_one() {
        let added = r#""added_tokens":[{"id":9,"content":"<s>","special":true},{"id":2,"content":"x"}]"#;
        let map = read(&format!(r#"{{{added},"model":{{"type":"BPE","vocab":{{"a":0,"b":7}}}}}}"#)).unwrap();
        assert_eq!(map.vocab_size, 10);
        assert_eq!(map.added.iter().map(|a| a.content.as_str()).collect::<Vec<_>>(), ["<s>", "x"]);
        let list = read(r#"{"added_tokens":null,"model":{"vocab":[["a",-1.5],["b",-2]]}}"#).unwrap();
        assert_eq!(list.vocab_size, 2);
    }

    #[test]
    fn claims_that_cannot_hold_are_refused() {
        for (text, says) in [
            ("", "not a tokenizer.json"),
            ("[]", "not a tokenizer.json"),
            (r#"{"model":{"vocab":3}}"#, "expected a vocabulary"),
            (r#"{"model":{"vocab":{"a":-1}}}"#, "not a tokenizer.json"),
            (r#"{"model":{"vocab":{"a":4294967296}}}"#, "does not fit 32 bits"),
            (r#"{"model":{"vocab":{"a":4294967295}}}"#, "numbers a token 4294967295"),
            (
                r#"{"added_tokens":[{"id":999999,"content":"x"}],"model":{"vocab":{}}}"#,
                "numbers a token 999999",
            ),
            (r#"{"model":{"dropout":0.1,"vocab":{"a":0}}}"#, "at random"),
        ] {
            let e = format!("{:#}", read(text).unwrap_err());
            assert!(e.contains(says), "{text}: {e}");
        }
    }
}
