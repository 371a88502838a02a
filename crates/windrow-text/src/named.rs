//! The vocabularies that come with windrow, by name.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use splintr::{AnyTokenizer, Backend, Tokenizer as Bpe};
use windrow_core::{Error, Kind, Result};

use crate::engine::{Engine, add, no_such_id, places};
use crate::fast::Cutter;
use crate::pretokens::{PreTokens, Words};

/// A byte-pair vocabulary built into the program.
pub(crate) struct Named {
    words: NamedWords,
    pre_tokens: PreTokens,
    special: Vec<(String, u32)>,
}

/// What its library makes of a text: the words, and the IDs of each.
struct NamedWords {
    bpe: Arc<Bpe>,
    cutter: Cutter,
}

impl Named {
    /// Loads `cl100k_base`, `o200k_base`, `deepseek_v3` or, where it was built in, `llama3`.
    pub(crate) fn load(name: &str) -> Result<Named> {
        if name == "llama3" && !cfg!(feature = "llama3") {
            return Err(Error::built_without("llama3").hint(
                "Meta's vocabulary is under the Llama 3.1 Community Licence, so it is left out unless asked for: \
                 `cargo add windrow --features llama3`, or give the path of a tokenizer.json",
            ));
        }
        let wrong = |what: String| Error::new(Kind::NotFound, format!("no vocabulary {name:?}: {what}"));
        let any: AnyTokenizer = splintr::from_pretrained(name).map_err(|e| wrong(e.to_string()))?;
        let mut special: Vec<(String, u32)> =
            any.special_tokens().iter().map(|(token, &id)| (token.clone(), id)).collect();
        special.sort_by_key(|&(_, id)| id);
        let Backend::Bpe(bpe) = any.into_backend() else {
            return Err(wrong("it is not a byte-pair vocabulary".to_string()));
        };
        let bpe = Arc::new(bpe);
        let cutter = Cutter::named(name, bpe.clone());
        let cutter = cutter.ok_or_else(|| wrong("its expressions are not known".to_string()))?;
        Ok(Named { words: NamedWords { bpe, cutter }, pre_tokens: PreTokens::default(), special })
    }
}
impl Words for Bpe {
    #[inline(always)]
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        self.for_each_pre_token(text, word);
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        // Cut into nothing but itself when it is alone, it has the IDs there that it has in a text.
        let mut is_one = false;
        self.for_each_pre_token(word, |found| is_one = std::ptr::eq(found, word));
        if is_one {
            out.extend_from_slice(&self.encode_ordinary(word));
        }
        is_one
    }
}

impl NamedWords {
    // As tiktoken defines it: the two parts that give the token of the lowest id first, of equal ones the left.
    fn merge(&self, word: &[u8], out: &mut Vec<u32>) {
        let id = |start: usize, end: usize| self.bpe.encoder().get(&word[start..end]);
        let mut ends: Vec<usize> = (0..=word.len()).collect();
        if id(0, word.len()).is_some() {
            ends = vec![0, word.len()];
        }
        while let Some((_, left)) =
            (2..ends.len()).filter_map(|i| Some((id(ends[i - 2], ends[i])?, i - 1))).min()
        {
            ends.remove(left);
        }
        out.extend(ends.windows(2).filter_map(|part| id(part[0], part[1])));
    }
}

impl Words for NamedWords {
    #[inline(always)]
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        self.cutter.cut(text, word);
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        self.cutter.knows_word(word) && Words::encode(&*self.bpe, word, out)
    }
}

impl Engine for Named {
    fn backend(&self) -> &'static str {
        "splintr"
    }

    fn vocab_size(&self) -> u64 {
        self.words.bpe.vocab_size() as u64
    }

    fn special(&self) -> Vec<(String, u32)> {
        self.special.clone()
    }

    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        let NamedWords { cutter, .. } = &self.words;
        if !cutter.knows(text) || !self.pre_tokens.encode(&self.words, text, out) {
            cutter.cut_exactly(text, |word| {
                if !Words::encode(&*self.words.bpe, word, out) {
                    self.words.merge(word.as_bytes(), out);
                }
            });
        }
        Ok(())
    }

    fn encode_special(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        if self.words.cutter.knows_all(text) {
            add(self.words.bpe.encode_with_special(text), out);
            return Ok(());
        }
        let mut rest = text;
        let next = |rest: &str| {
            let found = self
                .special
                .iter()
                .filter_map(|(token, id)| Some((rest.find(token)?, Reverse(token.len()), *id)));
            found.min()
        };
        while let Some((at, Reverse(len), id)) = next(rest) {
            self.encode(&rest[..at], out)?;
            out.push(id);
            rest = &rest[at + len..];
        }
        self.encode(rest, out)
    }

    fn encode_places(&self, text: &str, out: &mut Vec<u32>, at: &mut Vec<Range<usize>>) -> Result<()> {
        let before = out.len();
        self.encode_special(text, out)?;
        // Its tokens are bytes, one after the other those of the text.
        let size = |&id: &u32| match self.special.iter().find(|special| special.1 == id) {
            Some((token, _)) => token.len(),
            None => self.words.bpe.decode_bytes(&[id]).map_or(0, |bytes| bytes.len()),
        };
        places(text, out[before..].iter().map(size), at)
    }

    fn decode_bytes(&self, ids: &[u32]) -> Result<Vec<u8>> {
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
            bytes.extend(self.words.bpe.decode_bytes(&rest[..run]).map_err(|e| match e {
                splintr::TokenizerError::InvalidTokenId(id) => no_such_id(id, self.vocab_size()),
                other => Error::corrupt("the IDs cannot be decoded").caused_by(other),
            })?);
            rest = &rest[run..];
        }
        Ok(bytes)
    }

    fn id_of(&self, token: &str) -> Option<u32> {
        match self.words.bpe.encode_ordinary(token)[..] {
            [id] => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_the_scanners_cut_otherwise_have_their_librarys_ids() {
        for name in ["cl100k_base", "o200k_base", "deepseek_v3"] {
            let named = Named::load(name).unwrap();
            for text in ["in'ſein", "'ſ e", "it's 'ſ", "ジョン・スミス 「か」・", "e'ſ・゛か"]
            {
                let mut words = Vec::new();
                named.words.cutter.cut_exactly(text, |word| words.push(word.to_string()));
                let (mut got, mut special, mut want) = (Vec::new(), Vec::new(), Vec::new());
                for word in &words {
                    // Bytes stand for themselves in the tables of the first two only.
                    match name {
                        "deepseek_v3" => assert!(Words::encode(&*named.words.bpe, word, &mut want), "{word}"),
                        _ => named.words.merge(word.as_bytes(), &mut want),
                    }
                }
                named.encode(text, &mut got).unwrap();
                assert_eq!(got, want, "{name} {text} {words:?}");
                named.encode_special(&format!("{text}<|endoftext|>{text}"), &mut special).unwrap();
                if name != "deepseek_v3" {
                    assert_eq!(
                        special,
                        [
                            &want[..],
                            &[named.special.iter().find(|s| s.0 == "<|endoftext|>").unwrap().1],
                            &want
                        ]
                        .concat()
                    );
                }
            }
        }
    }

    #[test]
    fn merges_by_id_are_those_of_the_library() {
        for name in ["cl100k_base", "o200k_base"] {
            let named = Named::load(name).unwrap();
            for word in [
                " the",
                "in's",
                "antidisestablishmentarianism",
                "aaaaaaaaaaa",
                "…………",
                "日本語の文字列",
                " ſein",
            ] {
                let mut ids = Vec::new();
                named.words.merge(word.as_bytes(), &mut ids);
                assert_eq!(ids, named.words.bpe.encode_ordinary(word), "{name} {word}");
            }
        }
    }
}
