//! What turns text into token IDs: the contract of a tokenizer's engines, and what they share.

use std::ops::Range;

use windrow_core::{Error, Result};

/// What turns text into IDs. An engine applies no template, never truncates and never pads.
pub(crate) trait Engine: Send + Sync {
    fn backend(&self) -> &'static str;

    /// Ids are below this.
    fn vocab_size(&self) -> u64;

    /// Special tokens, by id.
    fn special(&self) -> Vec<(String, u32)>;

    /// Adds the IDs of `text`, special tokens in it being text.
    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()>;

    /// Adds the IDs of `text`, special tokens in it being special.
    fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()>;

    /// Adds the IDs of `text`, with the bytes of it that each one encodes. They are in order, and may overlap in a character.
    fn encode_places(&self, text: &str, out: &mut Vec<u32>, places: &mut Vec<Range<usize>>) -> Result<()>;

    /// The bytes of the text of `ids`, also those of characters of which some are missing.
    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>>;

    /// The text, in which a character whose bytes are incomplete is U+FFFD.
    fn decode(&self, ids: &[u32]) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.decode_bytes(ids)?).into_owned())
    }

    fn id_of(&self, token: &str) -> Option<u32>;
}

/// Adds IDs to those that are there; where there are none, they take their place and nothing is copied.
pub(crate) fn add(ids: Vec<u32>, out: &mut Vec<u32>) {
    if out.is_empty() { *out = ids } else { out.extend(ids) }
}

/// The error for an ID that no token has.
pub(crate) fn no_such_id(id: u32, vocab_size: u64) -> Error {
    Error::out_of_range("token id", id, vocab_size)
        .hint("other data, or another tokenizer than the one that made it?")
}

/// The places of IDs that encode `sizes` bytes each, one after the other; an error where that is not all of the text.
pub(crate) fn places(
    text: &str,
    sizes: impl Iterator<Item = usize>,
    places: &mut Vec<Range<usize>>,
) -> Result<()> {
    let mut at = 0;
    for size in sizes {
        places.push(at..at + size);
        at += size;
    }
    if at == text.len() {
        Ok(())
    } else {
        Err(Error::corrupt(format!("the IDs encode {at} of {} bytes of the text", text.len())))
    }
}
