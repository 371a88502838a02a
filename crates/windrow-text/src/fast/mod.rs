//! The fast way of a byte-level BPE definition, equal to the tokenizers library by what it is made of.
//!
//! Added tokens and normalizers are the library's own. What lies between is cut into words by the definition's own
//! expressions or by a scanner that was shown to cut the same ([`cut`]), and each word is merged by the definition's rules
//! in the library's order ([`merges`]); most words were seen before, and their ids are remembered. A definition of another
//! kind has no fast way.

mod cut;
mod merges;
mod unlike;

use serde::Deserialize;
use tokenizers::models::ModelWrapper;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::{OffsetReferential, OffsetType, Tokenizer};

use crate::pretokens::{PreTokens, Words};

pub(crate) use cut::Cutter;
use merges::Merges;

/// What encodes in the reference's place.
pub(crate) struct Fast {
    model: Model,
    words: PreTokens,
    // Texts of lower bytes only are what the normalizer makes of them.
    unchanged_below: u8,
    any_added: bool,
    // Special tokens are not matched where they are text.
    any_added_in_text: bool,
}

// No text has it.
const NO_BYTE: u8 = 0xff;

struct Model {
    cutter: Cutter,
    merges: Merges,
}

impl Fast {
    /// The fast way of a definition that the library loaded; or why it has none.
    pub(crate) fn of(loaded: &Tokenizer, content: &[u8]) -> Result<Fast, String> {
        let ModelWrapper::BPE(model) = loaded.get_model() else {
            return Err("its model is not byte-pair encoding".to_string());
        };
        let cutter = Cutter::of(loaded.get_pre_tokenizer())?;
        let merges = Merges::of(model, &rules(content)?)?;
        let added = loaded.get_added_tokens_decoder();
        Ok(Fast {
            model: Model { cutter, merges },
            words: PreTokens::default(),
            unchanged_below: match loaded.get_normalizer() {
                None => NO_BYTE,
                // Below U+0300, composed characters stand as they are.
                Some(NormalizerWrapper::NFC(_)) => 0xcc,
                Some(NormalizerWrapper::NFD(_) | NormalizerWrapper::NFKC(_) | NormalizerWrapper::NFKD(_)) => {
                    0x80
                }
                Some(_) => 0,
            },
            any_added: !added.is_empty(),
            any_added_in_text: added.values().any(|token| !token.special),
        })
    }

    /// Adds the ids of a text. `with` is the reference, in which special tokens are special, or are not.
    pub(crate) fn encode(&self, with: &Tokenizer, text: &str, out: &mut Vec<u32>) {
        let any_added =
            if with.get_encode_special_tokens() { self.any_added_in_text } else { self.any_added };
        let is_unchanged = || text.bytes().all(|byte| byte < self.unchanged_below);
        if !any_added && (self.unchanged_below == NO_BYTE || is_unchanged()) {
            return self.encode_piece(text, out);
        }
        let pieces = with.get_added_vocabulary().extract_and_normalize(with.get_normalizer(), text);
        for (piece, _, added) in pieces.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            match added {
                Some(added) => out.extend(added.iter().map(|token| token.id)),
                None => self.encode_piece(piece, out),
            }
        }
    }

    fn encode_piece(&self, piece: &str, out: &mut Vec<u32>) {
        // Before nothing, no space is put.
        if piece.is_empty() {
            return;
        }
        match self.model.cutter.prefix_space && !piece.starts_with(' ') {
            true => self.encode_words(&format!(" {piece}"), out),
            false => self.encode_words(piece, out),
        }
    }

    fn encode_words(&self, text: &str, out: &mut Vec<u32>) {
        let Model { cutter, merges } = &self.model;
        let scanned = cutter.knows(text) && self.words.encode(&self.model, text, out);
        if !scanned && !self.words.encode(&Exactly(&self.model), text, out) {
            // What lies between words is left out.
            cutter.cut_exactly(text, |word| merges.encode(word.as_bytes(), out));
        }
    }
}

impl Words for Model {
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        self.cutter.cut(text, word);
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        let known = self.cutter.knows_word(word);
        if known {
            self.merges.encode(word.as_bytes(), out);
        }
        known
    }
}

/// The text that a token's letters stand for, one for each byte.
pub(crate) fn text_of(token: &str) -> String {
    let letters = merges::letters();
    let byte = |letter: char| letters.iter().position(|&known| known == letter).map(|byte| byte as u8);
    let bytes: Option<Vec<u8>> = token.chars().map(byte).collect();
    bytes.map_or_else(|| token.to_string(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The same words by the expressions.
struct Exactly<'m>(&'m Model);

impl Words for Exactly<'_> {
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        self.0.cutter.cut_exactly(text, word);
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        self.0.merges.encode(word.as_bytes(), out);
        true
    }
}

// The merges of a file in their order, which the library does not hand out.
fn rules(content: &[u8]) -> Result<Vec<(String, String)>, String> {
    #[derive(Deserialize)]
    struct File {
        model: Model,
    }
    #[derive(Deserialize)]
    struct Model {
        merges: Merges,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Merges {
        Pairs(Vec<(String, String)>),
        // As in a merges.txt.
        Lines(Vec<String>),
    }
    let file: File = serde_json::from_slice(content).map_err(|e| e.to_string())?;
    match file.model.merges {
        Merges::Pairs(pairs) => Ok(pairs),
        Merges::Lines(lines) => {
            let pair = |line: &String| line.split_once(' ').map(|(a, b)| (a.to_string(), b.to_string()));
            let rules = lines.iter().filter(|line| !line.starts_with("#version"));
            rules.map(|line| pair(line).ok_or_else(|| format!("a merge has no two tokens: {line}"))).collect()
        }
    }
}
