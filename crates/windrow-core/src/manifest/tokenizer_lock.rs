//! Which tokenizer made the token IDs: its hash, its special tokens, and texts with the token IDs that they must give.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which tokenizer made the IDs; enough to refuse another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenizerLock {
    /// A built-in name, or the file name of a tokenizer.json.
    pub name: String,
    /// XXH3-64 of its definition, 16 hexadecimal digits.
    pub hash: String,
    /// Ids are below this.
    pub vocab_size: u64,
    /// Special tokens and their IDs.
    pub special: Map<String, Value>,
    /// Strings and their IDs.
    pub golden: Vec<Golden>,
    /// Version of the windrow that locked it.
    pub windrow: String,
}

impl TokenizerLock {
    /// Whether both are of one tokenizer, or neither of any: its name and the windrow that locked it do not count.
    pub fn are_same(one: Option<&TokenizerLock>, other: Option<&TokenizerLock>) -> bool {
        fn decides(lock: &TokenizerLock) -> (&str, u64, &Map<String, Value>, &[Golden]) {
            (&lock.hash, lock.vocab_size, &lock.special, &lock.golden)
        }
        one.map(decides) == other.map(decides)
    }
}

/// A string and the IDs it must give.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Golden {
    /// The text.
    pub text: String,
    /// Its IDs.
    pub ids: Vec<u32>,
}
