//! The fast way of a BPE definition, equal to the tokenizers library by what it is made of.
//!
//! Added tokens ([`added`]) and normalizers ([`normal`]) are applied as the library does it. What is between is cut into
//! words: of bytes, by the definition's own expressions or by a scanner that was shown to cut the same ([`cut`]); of
//! characters, at marks for spaces ([`spaces`]). Each word is merged by the definition's rules in the library's order
//! ([`merges`]); most words were seen before, and their ids are remembered. A definition of another kind has no fast way.

mod added;
mod cut;
mod merges;
mod normal;
mod spaces;
mod unlike;

use serde::Deserialize;
use tokenizers::models::ModelWrapper;
use tokenizers::{OffsetReferential, OffsetType, Tokenizer};

use crate::pretokens::{PreTokens, Words};

use added::{Added, Part};
pub(crate) use cut::Cutter;
use merges::Merges;
use normal::Normal;
use spaces::Spaces;

/// What encodes in the reference's place.
pub(crate) struct Fast {
    added: Added,
    normal: Normal,
    model: Model,
    words: PreTokens,
}

struct Model {
    way: Way,
    merges: Merges,
}

/// What the words of a text are made of, and how it is cut into them.
enum Way {
    Bytes(Cutter),
    Characters(Spaces),
}

impl Fast {
    /// The fast way of a definition that the library loaded; or why it has none.
    pub(crate) fn of(loaded: &Tokenizer, content: &[u8]) -> Result<Fast, String> {
        let ModelWrapper::BPE(model) = loaded.get_model() else {
            return Err("its model is not byte-pair encoding".to_string());
        };
        let (rules, steps) = (rules(content)?, loaded.get_pre_tokenizer());
        let of_bytes = Cutter::ends_in_bytes(steps);
        let merges = Merges::of(model, &rules, of_bytes)?;
        let way = match of_bytes {
            true => Way::Bytes(Cutter::of(steps)?),
            false => Way::Characters(Spaces::of(steps, |mark| merges.none_crosses(mark, &rules))?),
        };
        let normal = Normal::of(loaded.get_normalizer());
        let first_only = matches!(&way, Way::Characters(spaces) if spaces.marks_first_only());
        let added = Added::of(loaded, &normal, first_only)?;
        Ok(Fast { added, normal, model: Model { way, merges }, words: PreTokens::default() })
    }

    /// Adds the ids of a text; false, and what was added is of no use, where the reference itself has to encode it. `with`
    /// is the reference, in which special tokens are special, or are not.
    pub(crate) fn encode(&self, with: &Tokenizer, text: &str, out: &mut Vec<u32>) -> bool {
        let as_text = with.get_encode_special_tokens();
        if self.added.is_for_the_library(text, as_text, &self.normal) {
            let parts = with.get_added_vocabulary().extract_and_normalize(with.get_normalizer(), text);
            let mut parts = parts.get_splits(OffsetReferential::Original, OffsetType::Byte).into_iter();
            return parts.all(|(part, place, added)| match added {
                Some(added) => {
                    out.extend(added.iter().map(|token| token.id));
                    true
                }
                None => self.encode_part(part, place.0 == 0, out),
            });
        }
        let mut fits = true;
        self.added.before.find(text, as_text, |part| match part {
            Part::Token(id) => out.push(id),
            Part::Text(part) => self.added.after.find(&self.normal.apply(part), as_text, |part| match part {
                Part::Token(id) => out.push(id),
                Part::Text(part) => fits = fits && self.encode_part(part, true, out),
            }),
        });
        fits
    }

    // What is between added tokens, which is never empty.
    fn encode_part(&self, part: &str, at_start: bool, out: &mut Vec<u32>) -> bool {
        match &self.model.way {
            Way::Bytes(cutter) => match cutter.prefix_space && !part.starts_with(' ') {
                true => self.encode_bytes(cutter, &format!(" {part}"), out),
                false => self.encode_bytes(cutter, part, out),
            },
            Way::Characters(spaces) => {
                let marked = spaces.marked(part, at_start);
                return marked.is_some_and(|marked| self.words.encode(&self.model, &marked, out));
            }
        }
        true
    }

    fn encode_bytes(&self, cutter: &Cutter, text: &str, out: &mut Vec<u32>) {
        let Model { merges, .. } = &self.model;
        let scanned = cutter.knows(text) && self.words.encode(&self.model, text, out);
        if !scanned && !self.words.encode(&Exactly { cutter, merges }, text, out) {
            // What lies between words is left out.
            cutter.cut_exactly(text, |word| merges.encode(word, out));
        }
    }
}

impl Words for Model {
    #[inline(always)]
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        match &self.way {
            Way::Bytes(cutter) => cutter.cut(text, word),
            Way::Characters(spaces) => spaces.cut(text, word),
        }
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        let known = match &self.way {
            Way::Bytes(cutter) => cutter.knows_word(word),
            Way::Characters(_) => true,
        };
        if known {
            self.merges.encode(word, out);
        }
        known
    }
}

/// The same words by the expressions.
struct Exactly<'m> {
    cutter: &'m Cutter,
    merges: &'m Merges,
}

impl Words for Exactly<'_> {
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        self.cutter.cut_exactly(text, word);
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        self.merges.encode(word, out);
        true
    }
}

/// The text that a token stands for.
pub(crate) fn text_of(loaded: &Tokenizer, token: &str) -> String {
    if !Cutter::ends_in_bytes(loaded.get_pre_tokenizer()) {
        return token.replace('\u{2581}', " ");
    }
    let letters = merges::letters();
    let byte = |letter: char| letters.iter().position(|&known| known == letter).map(|byte| byte as u8);
    let bytes: Option<Vec<u8>> = token.chars().map(byte).collect();
    bytes.map_or_else(|| token.to_string(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
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
