//! A tokenizer over a text field or column, as `prepare` asks for it.

use windrow_core::Result;
use windrow_core::manifest::TokenizerLock;
use windrow_prepare::{Encode, Encoded, Ids, LinePlace, Takes, text_of};
use windrow_text::Tokenizer;

/// Takes the text of a JSON field, or of a column, and encodes it.
#[derive(Clone)]
pub struct TextEncoder {
    tokenizer: Tokenizer,
    field: String,
    eos: Option<u32>,
    special: bool,
}

impl TextEncoder {
    /// Encodes the field `field` of each line, or that column of each row. `eos`: `auto`, `none`, an ID or a token's name.
    ///
    /// # Errors
    /// `Config` when the tokenizer has no such EOS token.
    pub fn new(tokenizer: Tokenizer, field: &str, eos: &str) -> Result<TextEncoder> {
        let eos = tokenizer.resolve_eos(eos)?;
        Ok(TextEncoder { tokenizer, field: field.to_string(), eos, special: false })
    }

    /// Turns special tokens' text in documents into their IDs; by default text is text.
    #[must_use]
    pub fn special_tokens(mut self, special: bool) -> Self {
        self.special = special;
        self
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Adds the IDs of a text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_text(&self, text: &str, out: &mut Ids) -> Result<()> {
        out.append(|ids| {
            if self.special {
                self.tokenizer.encode_special(text, ids)
            } else {
                self.tokenizer.encode(text, ids)
            }
        })
    }
}

impl Encode for TextEncoder {
    fn encode(&self, line: &[u8], place: &LinePlace, out: &mut Encoded) -> Result<()> {
        self.encode_text(&text_of(line, &self.field, place, &mut out.room)?, &mut out.ids)
    }

    fn takes(&self) -> Option<Takes<'_>> {
        Some(Takes::Text(&self.field))
    }

    fn encode_text(&self, text: &str, out: &mut Encoded) -> Result<()> {
        TextEncoder::encode_text(self, text, &mut out.ids)
    }

    fn lock(&self) -> Option<TokenizerLock> {
        Some(self.tokenizer.lock())
    }

    fn describe(&self) -> String {
        let lock = self.tokenizer.lock();
        format!("tokenizer={}:{} field={} special={}", lock.name, lock.hash, self.field, self.special)
    }

    fn vocab_size(&self) -> Option<u64> {
        Some(self.tokenizer.vocab_size())
    }

    fn eos(&self) -> Option<i64> {
        self.eos.map(i64::from)
    }
}
