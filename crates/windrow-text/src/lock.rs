//! Which tokenizer made the ids: enough to recognise it, and to refuse another one.

use serde_json::{Map, Value};
use windrow_core::manifest::{Golden, TokenizerLock};
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::tokenizer::{Engine, Tokenizer};

// One for each thing in which tokenizers are known to differ.
const STRINGS: [&str; 10] = [
    "Hello world",
    "  two spaces,\ta tab\r\nand a line",
    "In 1969, 12345 people paid $3.50",
    "I'm sure you'll say it’s fine",
    "naïve café e\u{301} ﬁ",
    "中文 日本語 한국어 العربية",
    "👩‍👩‍👧 👍🏽",
    "fn main() { println!(\"{}\", x[0] != 1); }",
    "<|endoftext|></s>[CLS]",
    "UPPER lower CamelCase snake_case",
];

impl Tokenizer {
    /// What a manifest keeps of this tokenizer: ten strings with their ids, fewer where it cannot encode them all.
    pub fn lock(&self) -> TokenizerLock {
        let mut special = Map::new();
        for (token, id) in self.special() {
            special.insert(token.clone(), Value::from(*id));
        }
        TokenizerLock {
            name: self.name().to_string(),
            hash: self.hash().to_string(),
            vocab_size: self.vocab_size(),
            special,
            golden: self.golden().to_vec(),
            windrow: env!("CARGO_PKG_VERSION").to_string(),
        }
    }

    /// Whether the data was made by this tokenizer; its name does not count, a file may be renamed.
    ///
    /// # Errors
    /// `Mismatch` naming what differs: the first golden string with other ids, the vocabulary's size, the special
    /// tokens, or the definition's hash.
    pub fn check_lock(&self, lock: &TokenizerLock) -> Result<()> {
        for golden in &lock.golden {
            let ids = self.ids(&golden.text)?;
            if ids != golden.ids {
                return Err(self
                    .other_than(lock, format!("{:?} gives {ids:?}, it gave {:?}", golden.text, golden.ids)));
            }
        }
        if lock.vocab_size != self.vocab_size() {
            let what = format!("it has {} ids, there were {}", self.vocab_size(), lock.vocab_size);
            return Err(self.other_than(lock, what));
        }
        for (token, id) in self.special() {
            let was = lock.special.get(token);
            if was.and_then(Value::as_u64) != Some(u64::from(*id)) {
                let was = was.map_or("not special".to_string(), Value::to_string);
                return Err(self.other_than(lock, format!("{token} is {id}, it was {was}")));
            }
        }
        if lock.special.len() != self.special().len() {
            let what =
                format!("it has {} special tokens, there were {}", self.special().len(), lock.special.len());
            return Err(self.other_than(lock, what));
        }
        if lock.hash != self.hash() {
            let what = format!("its definition hashes to {}, it was {}", self.hash(), lock.hash);
            return Err(self.other_than(lock, what));
        }
        Ok(())
    }

    fn ids(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encode(text, &mut ids)?;
        Ok(ids)
    }

    fn other_than(&self, lock: &TokenizerLock, what: String) -> Error {
        Error::mismatch(format!("another tokenizer made this data: {what}")).field("tokenizer").hint(format!(
            "the data was made with {:?} by windrow {}; this is {:?}",
            lock.name,
            lock.windrow,
            self.name()
        ))
    }
}

/// XXH3-64 of a tokenizer.json, 16 hexadecimal digits.
pub(crate) fn hash_of(content: &[u8]) -> String {
    format!("{:016x}", xxh3_64(content))
}

/// The same for a built-in one, which has no file: over its name, its size and the ids of the golden strings.
pub(crate) fn hash_of_builtin(name: &str, vocab_size: u64, golden: &[Golden]) -> String {
    let mut content = format!("{name}\n{vocab_size}\n").into_bytes();
    for one in golden {
        content.extend(one.ids.iter().flat_map(|id| id.to_le_bytes()));
        content.push(b'\n');
    }
    hash_of(&content)
}

/// The strings and their ids. One that cannot be encoded, in a vocabulary without a token for it, is left out.
pub(crate) fn golden(engine: &dyn Engine) -> Vec<Golden> {
    let ids = |text: &str| {
        let mut ids = Vec::new();
        engine.encode(text, &mut ids).ok().map(|()| ids)
    };
    STRINGS.iter().filter_map(|text| Some(Golden { text: text.to_string(), ids: ids(text)? })).collect()
}
