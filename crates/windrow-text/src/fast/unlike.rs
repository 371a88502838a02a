//! Where the scanners are known to cut otherwise than the expressions that they replace.

/// Of a scanner, where that is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unlike {
    Nowhere,
    /// At `ſ` after an apostrophe, which is an `s` to an expression in which case does not count; scanners look for ASCII.
    LongS,
    /// In words with characters of the kana blocks that are not letters, such as `・`: a later expression cuts them off again.
    KanaMarks,
}

impl Unlike {
    /// Whether a text holds such a place.
    pub(super) fn in_text(self, text: &str) -> bool {
        self == Unlike::LongS && memchr::memmem::find(text.as_bytes(), "'ſ".as_bytes()).is_some()
    }

    /// Whether its words may.
    pub(super) fn may_be_in(self, text: &str) -> bool {
        self.in_text(text) || self == Unlike::KanaMarks && text.contains(is_kana_mark)
    }

    /// Whether a word, as the scanner cut it, does.
    pub(super) fn in_word(self, word: &str) -> bool {
        self == Unlike::KanaMarks && word.contains(is_kana_mark) && word.chars().nth(1).is_some()
    }
}

fn is_kana_mark(c: char) -> bool {
    matches!(c, '\u{3040}' | '\u{3097}' | '\u{3098}' | '\u{309b}' | '\u{309c}' | '\u{30a0}' | '\u{30fb}')
}
