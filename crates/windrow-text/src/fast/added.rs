//! Added tokens, where the library finds them: the longest of the leftmost ones, first in the text as it is, then in what the
//! normalizer makes of the parts between.

use aho_corasick::{AhoCorasick, MatchKind};
use tokenizers::Tokenizer;

use super::normal::Normal;

/// The tokens of a definition.
pub(super) struct Added {
    pub(super) before: Matcher,
    pub(super) after: Matcher,
    // Some look at what is beside them, or take spaces along, or what is between is found by its place; of all tokens, and
    // of those that are not special.
    by_place: [bool; 2],
}

/// Those that are matched before or after normalizing.
pub(super) struct Matcher {
    automaton: Option<AhoCorasick>,
    // Of each pattern: the ID, and whether it is special.
    tokens: Vec<(u32, bool)>,
    any_in_text: bool,
}

/// What a text is made of.
pub(super) enum Part<'t> {
    Token(u32),
    Text(&'t str),
}

impl Added {
    /// The tokens that the library loaded. `first_only`: what is first in a text has other IDs than what is not.
    pub(super) fn of(loaded: &Tokenizer, normal: &Normal, first_only: bool) -> Result<Added, String> {
        let (mut before, mut after, mut by_place) = (Vec::new(), Vec::new(), [first_only; 2]);
        for (id, token) in loaded.get_added_tokens_decoder() {
            let special = loaded.get_added_vocabulary().is_special_token(&token.content);
            if token.single_word || token.lstrip || token.rstrip {
                by_place[0] = true;
                by_place[1] |= !special;
            }
            if token.normalized {
                after.push((normal.apply(&token.content).into_owned(), id, special))
            } else {
                before.push((token.content, id, special))
            }
        }
        Ok(Added { before: Matcher::of(before)?, after: Matcher::of(after)?, by_place })
    }

    /// Whether the library itself has to look for them.
    pub(super) fn is_for_the_library(&self, text: &str, as_text: bool, normal: &Normal) -> bool {
        self.by_place[usize::from(as_text)]
            && (self.before.is_match(text, as_text) || self.after.is_match(&normal.apply(text), as_text))
    }
}

impl Matcher {
    fn of(tokens: Vec<(String, u32, bool)>) -> Result<Matcher, String> {
        let build = || {
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(tokens.iter().map(|t| &t.0))
        };
        let automaton = if tokens.is_empty() { None } else { Some(build().map_err(|e| e.to_string())?) };
        let any_in_text = tokens.iter().any(|(.., special)| !special);
        Ok(Matcher {
            automaton,
            tokens: tokens.into_iter().map(|(_, id, special)| (id, special)).collect(),
            any_in_text,
        })
    }

    fn automaton(&self, as_text: bool) -> Option<&AhoCorasick> {
        self.automaton.as_ref().filter(|_| !as_text || self.any_in_text)
    }

    fn is_match(&self, text: &str, as_text: bool) -> bool {
        self.automaton(as_text).is_some_and(|automaton| automaton.is_match(text))
    }

    /// Hands over the tokens and what is between. Special ones are passed over where they are text; what they cover is not
    /// looked at again.
    pub(super) fn find<'t>(&self, text: &'t str, as_text: bool, mut part: impl FnMut(Part<'t>)) {
        let mut last = 0;
        for found in self.automaton(as_text).into_iter().flat_map(|automaton| automaton.find_iter(text)) {
            let (id, special) = self.tokens[found.pattern()];
            if as_text && special {
                continue;
            }
            if last < found.start() {
                part(Part::Text(&text[last..found.start()]));
            }
            part(Part::Token(id));
            last = found.end();
        }
        if last < text.len() {
            part(Part::Text(&text[last..]));
        }
    }
}
