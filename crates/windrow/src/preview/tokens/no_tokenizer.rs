//! What a build without tokenizers shows of tokens: no text.

use windrow_core::manifest::Manifest;
use windrow_core::{Error, Result};

/// A tokenizer, of which a build without the feature `text` has none.
#[derive(Clone, Debug)]
pub enum Tokenizer {}

/// None, where none is asked for.
///
/// # Errors
/// `Unsupported` for one that is asked for.
pub fn tokenizer(asked: Option<&str>, _: Option<&Manifest>) -> Result<Option<Tokenizer>> {
    match asked {
        Some(_) => Err(Error::built_without("text")),
        None => Ok(None),
    }
}

/// The text of token IDs; none where the tokenizer lacks one of them.
pub fn decoded(tokenizer: &Tokenizer, _: &[i64]) -> Option<String> {
    match *tokenizer {}
}

/// The text of one token between quotes; none where the tokenizer lacks it.
pub fn quoted(tokenizer: &Tokenizer, _: i64) -> Option<String> {
    match *tokenizer {}
}
