//! Where BERT's pre-tokenizer cuts a text into words: at whitespace, which goes, and around each punctuation mark.

use unicode_categories::UnicodeCategories;

/// The words of a text in order, each with the whitespace before it; whitespace at the end is the last one.
pub(super) fn cut(text: &str, mut word: impl FnMut(&str)) {
    let (mut start, mut in_word) = (0, false);
    for (at, c) in text.char_indices() {
        let is_mark = c.is_ascii_punctuation() || !c.is_ascii() && c.is_punctuation();
        if in_word && (is_mark || c.is_whitespace()) {
            word(&text[start..at]);
            (start, in_word) = (at, false);
        }
        if is_mark {
            let end = at + c.len_utf8();
            word(&text[start..end]);
            start = end;
        } else if !c.is_whitespace() {
            in_word = true;
        }
    }
    if start < text.len() {
        word(&text[start..]);
    }
}

/// The word without that whitespace.
pub(super) fn bare(word: &str) -> &str {
    word.trim_start_matches(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    use super::*;

    fn check(text: &str) {
        let mut library = PreTokenizedString::from(text);
        BertPreTokenizer.pre_tokenize(&mut library).unwrap();
        let library = library.get_splits(OffsetReferential::Original, OffsetType::Byte);
        let (mut whole, mut words) = (String::new(), Vec::new());
        cut(text, |word| {
            whole.push_str(word);
            words.push(bare(word).to_string());
        });
        assert_eq!(whole, text);
        words.retain(|word| !word.is_empty());
        assert_eq!(words, library.iter().map(|split| split.0).collect::<Vec<_>>(), "{text:?}");
    }

    #[test]
    fn every_character_is_cut_as_the_library_cuts_it() {
        for some in ('\0'..'\u{20000}').collect::<Vec<_>>().chunks(32) {
            check(&some.iter().flat_map(|&c| ['a', c, 'b', ' ', c, c, '\n', '!', c]).collect::<String>());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_as_the_library_cuts_it(text in "[ab \t\u{a0}\u{2028}!.,«中é]{0,12}.{0,4}") {
            check(&text);
        }
    }
}
