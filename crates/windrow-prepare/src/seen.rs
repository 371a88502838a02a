//! What is known of texts that lie nowhere, once they were handed over.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What is known of texts that were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// How many there were.
    pub(super) texts: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// The XXH3-64 of each text, whose seed is that of the texts before it.
    pub(super) xxh3: u64,
}

impl Seen {
    pub(super) fn add(&mut self, text: &str) {
        self.texts += 1;
        self.bytes += text.len() as u64;
        self.xxh3 = xxh3_64_with_seed(text.as_bytes(), self.xxh3);
    }

    /// An item that is no text, which is left out.
    pub(super) fn add_damaged(&mut self) {
        self.add("");
    }
}
