//! The fast way of a definition, equal to the tokenizers library by what it is made of.
//!
//! Added tokens ([`added`]) and normalizers ([`normal`]) are applied as the library does it. What is between is cut into
//! words: of bytes, by the definition's own expressions or by a scanner that was shown to cut the same ([`cut`]); of
//! characters, at marks for spaces ([`spaces`]) or as BERT cuts them ([`bert`]). Each word is merged by the definition's rules
//! in the library's order ([`merges`]), or given to the library's own model; most words were seen before, and their IDs are
//! remembered. A definition of another kind has no fast way.

mod added;
mod bert;
mod cut;
mod merges;
mod normal;
mod spaces;
mod unlike;

use serde::Deserialize;
use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{Model as _, OffsetReferential, OffsetType, Tokenizer};

use crate::pretokens::{PreTokens, Words};

use added::{Added, Part};
pub(crate) use cut::Cutter;
use merges::Merges;
pub(crate) use merges::letters;
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
    // Where they are not merged by rules, the library's model is asked about words that are new.
    merges: Option<Merges>,
}

/// What the words of a text are made of, and how it is cut into them.
enum Way {
    Bytes(Cutter),
    Characters(Spaces),
    Bert,
}

impl Fast {
    /// The fast way of a definition that the library loaded; or why it has none.
    pub(crate) fn of(loaded: &Tokenizer, content: &[u8]) -> Result<Fast, String> {
        let steps = loaded.get_pre_tokenizer();
        let model = match loaded.get_model() {
            ModelWrapper::BPE(model) => {
                let (rules, of_bytes) = (rules(content)?, Cutter::ends_in_bytes(steps));
                let merges = Merges::of(model, &rules, of_bytes)?;
                let way = if of_bytes {
                    Way::Bytes(Cutter::of(steps)?)
                } else {
                    Way::Characters(Spaces::of(steps, |mark| merges.none_crosses(mark, &rules))?)
                };
                Model { way, merges: Some(merges) }
            }
            _ => Model {
                way: match steps {
                    Some(PreTokenizerWrapper::BertPreTokenizer(_)) => Way::Bert,
                    steps => Way::Characters(Spaces::of(steps, |_| false)?),
                },
                merges: None,
            },
        };
        let normal = Normal::of(loaded.get_normalizer());
        let first_only = matches!(&model.way, Way::Characters(spaces) if spaces.marks_first_only());
        let added = Added::of(loaded, &normal, first_only)?;
        Ok(Fast { added, normal, model, words: PreTokens::default() })
    }

    /// Adds the IDs of a text; false, and what was added is of no use, where the reference itself has to encode it. `with`
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
                None => self.encode_part(with, part, place.0 == 0, out),
            });
        }
        let mut fits = true;
        self.added.before.find(text, as_text, |part| match part {
            Part::Token(id) => out.push(id),
            Part::Text(part) => self.added.after.find(&self.normal.apply(part), as_text, |part| match part {
                Part::Token(id) => out.push(id),
                Part::Text(part) => fits = fits && self.encode_part(with, part, true, out),
            }),
        });
        fits
    }

    // What is between added tokens, which is never empty.
    fn encode_part(&self, with: &Tokenizer, part: &str, at_start: bool, out: &mut Vec<u32>) -> bool {
        let model = Asked { model: &self.model, library: with.get_model(), exactly: false };
        match &self.model.way {
            Way::Bytes(cutter) => {
                if cutter.prefix_space && !part.starts_with(' ') {
                    self.encode_bytes(&model, cutter, &format!(" {part}"), out)
                } else {
                    self.encode_bytes(&model, cutter, part, out)
                }
            }
            Way::Characters(spaces) => {
                let marked = spaces.marked(part, at_start);
                marked.is_some_and(|marked| self.words.encode(&model, &marked, out))
            }
            Way::Bert => self.words.encode(&model, part, out),
        }
    }

    fn encode_bytes(&self, model: &Asked<'_>, cutter: &Cutter, text: &str, out: &mut Vec<u32>) -> bool {
        let scanned = cutter.knows(text) && self.words.encode(model, text, out);
        let exactly = Asked { exactly: true, ..*model };
        if !scanned && !self.words.encode(&exactly, text, out) {
            // What lies between words is left out.
            cutter.cut_exactly(text, |word| _ = Words::encode(&exactly, word, out));
        }
        true
    }
}

/// A model that is asked for words, by the expressions themselves or by what replaces them.
#[derive(Clone, Copy)]
struct Asked<'m> {
    model: &'m Model,
    library: &'m ModelWrapper,
    exactly: bool,
}

impl Words for Asked<'_> {
    #[inline(always)]
    fn cut(&self, text: &str, word: impl FnMut(&str)) {
        match &self.model.way {
            Way::Bytes(cutter) if self.exactly => cutter.cut_exactly(text, word),
            Way::Bytes(cutter) => cutter.cut(text, word),
            Way::Characters(spaces) => spaces.cut(text, word),
            Way::Bert => bert::cut(text, word),
        }
    }

    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool {
        match (&self.model.way, &self.model.merges) {
            (Way::Bytes(cutter), _) if !self.exactly && !cutter.knows_word(word) => return false,
            (_, Some(merges)) => merges.encode(word, out),
            (way, None) => {
                let word = if matches!(way, Way::Bert) { bert::bare(word) } else { word };
                let Ok(tokens) = self.library.tokenize(word) else { return false };
                out.extend(tokens.iter().map(|token| token.id));
            }
        }
        true
    }
}

/// The text of a token.
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
