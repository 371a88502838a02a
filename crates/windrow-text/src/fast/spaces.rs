//! Where a text of characters is cut into words: at the mark that stands for a space, if at all.

use std::borrow::Cow;

use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::pre_tokenizers::split::SplitPattern;

/// What SentencePiece writes for a space.
const MARK: char = '\u{2581}';

/// The pre-tokenizer of a model of characters.
pub(super) struct Spaces {
    mark: char,
    // Spaces become marks, and one goes before a text.
    before: Option<PrependScheme>,
    // All whitespace goes first, and one before each part.
    splits: bool,
    words: Words,
    // A text in which this is found is cut further.
    other: Option<String>,
}

enum Words {
    /// Each mark begins one.
    EachMark,
    /// Adjacent marks do: no rule merges over the border before them.
    Marks,
    /// The whole text is one.
    One,
}

impl Spaces {
    /// The library's own; or why it is not of a kind that is known.
    pub(super) fn of(
        pre_tokenizer: Option<&PreTokenizerWrapper>,
        none_crosses: impl Fn(char) -> bool,
    ) -> Result<Spaces, String> {
        let whole = |mark| if none_crosses(mark) { Words::Marks } else { Words::One };
        match pre_tokenizer {
            None => Ok(Spaces { mark: MARK, before: None, splits: false, words: whole(MARK), other: None }),
            Some(PreTokenizerWrapper::Metaspace(meta)) => {
                let mark = meta.get_replacement();
                let words = if meta.split { Words::EachMark } else { whole(mark) };
                Ok(Spaces { mark, before: Some(meta.prepend_scheme), splits: false, words, other: None })
            }
            Some(PreTokenizerWrapper::Split(split)) => match &split.pattern {
                // As behind a normalizer that leaves none of it.
                SplitPattern::String(text) if !text.is_empty() && !split.invert => Ok(Spaces {
                    mark: MARK,
                    before: None,
                    splits: false,
                    words: whole(MARK),
                    other: Some(text.clone()),
                }),
                _ => Err("it cuts a text of characters by an expression".to_string()),
            },
            Some(PreTokenizerWrapper::Sequence(steps)) => match steps.as_ref() {
                [PreTokenizerWrapper::WhitespaceSplit(_), PreTokenizerWrapper::Metaspace(meta)]
                    if meta.split && meta.prepend_scheme == PrependScheme::Always =>
                {
                    let (mark, before) = (meta.get_replacement(), Some(PrependScheme::Always));
                    Ok(Spaces { mark, before, splits: true, words: Words::EachMark, other: None })
                }
                _ => Err("it cuts a text of characters by several steps".to_string()),
            },
            Some(_) => Err("it cuts a text of characters by more than spaces".to_string()),
        }
    }

    /// Whether only the first part of a text gets a mark.
    pub(super) fn marks_first_only(&self) -> bool {
        self.before == Some(PrependScheme::First)
    }

    /// The text with its marks; `None` where it is cut further. `at_start`: where it is the first part of one.
    pub(super) fn marked<'t>(&self, text: &'t str, at_start: bool) -> Option<Cow<'t, str>> {
        if self.other.as_ref().is_some_and(|other| text.contains(other.as_str())) {
            return None;
        }
        if self.splits {
            let mut marked = String::with_capacity(text.len() + self.mark.len_utf8());
            for part in text.split(char::is_whitespace).filter(|part| !part.is_empty()) {
                if !part.starts_with(self.mark) {
                    marked.push(self.mark);
                }
                marked.push_str(part);
            }
            return Some(Cow::Owned(marked));
        }
        let Some(before) = self.before else { return Some(Cow::Borrowed(text)) };
        let mut marked = text.replace(' ', self.mark.encode_utf8(&mut [0; 4]));
        let is_due = match before {
            PrependScheme::Always => true,
            PrependScheme::First => at_start,
            PrependScheme::Never => false,
        };
        if is_due && !marked.starts_with(self.mark) {
            marked.insert(0, self.mark);
        }
        Some(Cow::Owned(marked))
    }

    /// The words of a marked text, in order.
    pub(super) fn cut(&self, text: &str, mut word: impl FnMut(&str)) {
        let mut start = 0;
        let mut cut = |at: usize| {
            if start < at {
                word(&text[start..at]);
                start = at;
            }
        };
        match self.words {
            Words::EachMark => text.match_indices(self.mark).for_each(|(at, _)| cut(at)),
            Words::Marks => {
                let mut end = 0;
                for (at, mark) in text.match_indices(self.mark) {
                    if at > end {
                        cut(at);
                    }
                    end = at + mark.len();
                }
            }
            Words::One => {}
        }
        cut(text.len());
    }
}
