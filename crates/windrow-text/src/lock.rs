//! Which tokenizer made the IDs: enough to recognise it, and to refuse another one.

use serde_json::{Map, Value};
use windrow_core::manifest::TokenizerLock;
use windrow_core::{Error, Result};

use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// What a manifest keeps of this tokenizer: ten strings with their IDs, fewer where it cannot encode them all.
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
    /// `Mismatch` naming what differs: the first golden string with other IDs, the vocabulary's size, the special
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
            let what = format!("it has {} IDs, there were {}", self.vocab_size(), lock.vocab_size);
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
