//! Whether there are tokens at all, and tokens as text.

use windrow_core::source::{Kind, Source};

use crate::opening::formats::format_info;

#[cfg_attr(not(feature = "text"), path = "no_tokenizer.rs")]
mod decoding;

pub use decoding::{Tokenizer, decoded, quoted, tokenizer};

/// What the records are, where they cannot be token IDs: `JSON`, `float32`.
pub fn not_ids(source: &dyn Source) -> Option<String> {
    let schema = source.schema();
    match schema.kind {
        Kind::Json => Some("JSON".to_string()),
        Kind::Rows => Some("rows of columns".to_string()),
        Kind::Numbers if schema.element.dtype.is_integer() => None,
        Kind::Numbers => Some(schema.element.dtype.to_string()),
    }
}

/// Whether its whole numbers are token IDs, not measurements: the formats made for tokens say so.
pub fn is_tokens(source: &dyn Source) -> bool {
    let schema = source.schema();
    let made_for_tokens = format_info(source.format()).is_some_and(|info| info.is_for_tokens());
    let is_whole = schema.kind == Kind::Numbers && schema.element.dtype.is_integer();
    is_whole && (made_for_tokens || schema.vocab_size.is_some())
}
