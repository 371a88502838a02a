//! The vocabularies that come with windrow, by name.

use splintr::{AnyTokenizer, Backend, Tokenizer as Bpe};
use windrow_core::{Error, Kind, Result};

use crate::pretokens::{PreTokens, Words};
use crate::tokenizer::{Engine, add, no_such_id};

/// A byte-pair vocabulary built into the program.
pub(crate) struct Named {
    bpe: Bpe,
    pre_tokens: PreTokens,
    special: Vec<(String, u32)>,
}

impl Named {
    /// Loads `cl100k_base`, `o200k_base`, `deepseek_v3` or, where it was built in, `llama3`.
    pub(crate) fn load(name: &str) -> Result<Named> {
        if name == "llama3" && !cfg!(feature = "llama3") {
            return Err(Error::unsupported("this build has no llama3 vocabulary").hint(
                "Meta's vocabulary is under the Llama 3.1 Community Licence, so it is left out unless asked for: \
                 build with the cargo feature `llama3`, or give the path of a tokenizer.json",
            ));
        }
        let wrong = |what: String| Error::new(Kind::NotFound, format!("no vocabulary {name:?}: {what}"));
        let any: AnyTokenizer = splintr::from_pretrained(name).map_err(|e| wrong(e.to_string()))?;
        let mut special: Vec<(String, u32)> =
            any.special_tokens().iter().map(|(token, &id)| (token.clone(), id)).collect();
        special.sort_by_key(|&(_, id)| id);
        match any.into_backend() {
            Backend::Bpe(bpe) => Ok(Named { bpe, pre_tokens: PreTokens::default(), special }),
            _ => Err(wrong("it is not a byte-pair vocabulary".to_string())),
        }
    }
}

impl Words for Bpe {
    #[inline(always)]
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        self.for_each_pre_token(text, word);
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        // Cut into nothing but itself when it stands alone, it has the ids there that it has in a text.
        let mut is_one = false;
        self.for_each_pre_token(word, |found| is_one = std::ptr::eq(found, word));
        if is_one {
            out.extend_from_slice(&self.encode_ordinary(word));
        }
        is_one
    }
}

impl Engine for Named {
    fn backend(&self) -> &'static str {
        "splintr"
    }

    fn vocab_size(&self) -> u64 {
        self.bpe.vocab_size() as u64
    }

    fn special(&self) -> Vec<(String, u32)> {
        self.special.clone()
    }

    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        if !self.pre_tokens.encode(&self.bpe, text, out) {
            add(self.bpe.encode_ordinary(text), out);
        }
        Ok(())
    }

    fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        add(self.bpe.encode_with_special(text), out);
        Ok(())
    }

    fn decode(&self, ids: &[u32]) -> Result<String> {
        let name_of = |id: u32| self.special.iter().find(|s| s.1 == id).map(|s| s.0.as_str());
        let mut bytes = Vec::new();
        let mut rest = ids;
        while let Some(&first) = rest.first() {
            let run = rest.iter().take_while(|&&id| name_of(id).is_none()).count();
            if run == 0 {
                bytes.extend_from_slice(name_of(first).unwrap_or_default().as_bytes());
                rest = &rest[1..];
                continue;
            }
            bytes.extend(self.bpe.decode_bytes(&rest[..run]).map_err(|e| match e {
                splintr::TokenizerError::InvalidTokenId(id) => no_such_id(id, self.vocab_size()),
                other => Error::corrupt("the ids cannot be decoded").caused_by(other),
            })?);
            rest = &rest[run..];
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn id_of(&self, token: &str) -> Option<u32> {
        match self.bpe.encode_ordinary(token)[..] {
            [id] => Some(id),
            _ => None,
        }
    }
}
