//! What a normalizer makes of a text, as text alone: the library keeps where each character came from, which nobody asks here.

use std::borrow::Cow;

use tokenizers::normalizers::{BertNormalizer, NormalizerWrapper};
use tokenizers::{NormalizedString, Normalizer};
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::{
    IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

/// The steps of a normalizer.
pub(super) struct Normal(Vec<Step>);

enum Step {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
    Prepend(String),
    Replace(String, String),
    Bert(BertNormalizer),
    // By the library itself.
    Other(NormalizerWrapper),
}

impl Normal {
    /// The steps that the library loaded.
    pub(super) fn of(normalizer: Option<&NormalizerWrapper>) -> Normal {
        let mut steps = Vec::new();
        normalizer.into_iter().for_each(|normalizer| flatten(normalizer, &mut steps));
        Normal(steps)
    }

    /// Normalises a text.
    pub(super) fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.iter().fold(Cow::Borrowed(text), |text, step| match step.apply(&text) {
            Some(changed) => Cow::Owned(changed),
            None => text,
        })
    }
}

impl Step {
    // `None` where nothing changes.
    fn apply(&self, text: &str) -> Option<String> {
        let (quick, first_other): (fn(&str) -> IsNormalized, u8) = match self {
            Step::Nfc => (|text| is_nfc_quick(text.chars()), 0xcc),
            Step::Nfd => (|text| is_nfd_quick(text.chars()), 0x80),
            Step::Nfkc => (|text| is_nfkc_quick(text.chars()), 0x80),
            Step::Nfkd => (|text| is_nfkd_quick(text.chars()), 0x80),
            Step::Lowercase => {
                return if text.is_ascii() {
                    text.bytes().any(|b| b.is_ascii_uppercase()).then(|| text.to_ascii_lowercase())
                } else {
                    // Each character by itself: a final sigma is an ordinary sigma here.
                    Some(text.chars().flat_map(char::to_lowercase).collect())
                };
            }
            Step::Prepend(before) => return (!text.is_empty()).then(|| format!("{before}{text}")),
            Step::Replace(from, to) => {
                return text.contains(from.as_str()).then(|| text.replace(from.as_str(), to));
            }
            Step::Bert(bert) => return Some(by_bert(bert, text)),
            Step::Other(normalizer) => {
                let mut text = NormalizedString::from(text);
                // Where it fails, the library continues with what there is.
                let _ = normalizer.normalize(&mut text);
                return Some(text.get().to_string());
            }
        };
        // Below U+0300, composed characters are as they should be; ASCII is in any form.
        if text.bytes().all(|byte| byte < first_other) || matches!(quick(text), IsNormalized::Yes) {
            return None;
        }
        Some(match self {
            Step::Nfd => text.nfd().map(|(c, _)| c).collect(),
            Step::Nfkc => text.nfkc().map(|(c, _)| c).collect(),
            Step::Nfkd => text.nfkd().map(|(c, _)| c).collect(),
            _ => text.nfc().map(|(c, _)| c).collect(),
        })
    }
}

fn by_bert(bert: &BertNormalizer, text: &str) -> String {
    let is_kept = |c: char| matches!(c, '\t' | '\n' | '\r') || c != '\u{fffd}' && !c.is_other();
    let is_ideograph = |c: char| {
        matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}' | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
    };
    let cleaned = text.chars().filter(|&c| !bert.clean_text || is_kept(c));
    let cleaned = cleaned.map(|c| if bert.clean_text && c.is_whitespace() { ' ' } else { c });
    let beside = |c: char| (bert.handle_chinese_chars && is_ideograph(c)).then_some(' ');
    let mut text: String = cleaned.flat_map(|c| beside(c).into_iter().chain([c]).chain(beside(c))).collect();
    if bert.strip_accents.unwrap_or(bert.lowercase) && !text.is_ascii() {
        text = text.nfd().map(|(c, _)| c).filter(|c| !c.is_mark_nonspacing()).collect();
    }
    if bert.lowercase { Step::Lowercase.apply(&text).unwrap_or(text) } else { text }
}

fn flatten(normalizer: &NormalizerWrapper, steps: &mut Vec<Step>) {
    steps.push(match normalizer {
        NormalizerWrapper::Sequence(all) => return all.as_ref().iter().for_each(|one| flatten(one, steps)),
        NormalizerWrapper::NFC(_) => Step::Nfc,
        NormalizerWrapper::NFD(_) => Step::Nfd,
        NormalizerWrapper::NFKC(_) => Step::Nfkc,
        NormalizerWrapper::NFKD(_) => Step::Nfkd,
        NormalizerWrapper::Lowercase(_) => Step::Lowercase,
        NormalizerWrapper::BertNormalizer(bert) => Step::Bert(*bert),
        NormalizerWrapper::Prepend(prepend) => Step::Prepend(prepend.prepend.clone()),
        NormalizerWrapper::Replace(replace) => {
            // What it looks for shows in nothing but its definition.
            let definition = serde_json::to_value(replace).unwrap_or_default();
            match definition["pattern"]["String"].as_str() {
                Some(from) if !from.is_empty() => Step::Replace(from.to_string(), replace.content.clone()),
                _ => Step::Other(normalizer.clone()),
            }
        }
        other => Step::Other(other.clone()),
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Most texts change nothing in most of them; each character once, and in company.
    fn check(text: &str) {
        let all = [
            r#"{"type": "NFC"}"#,
            r#"{"type": "NFD"}"#,
            r#"{"type": "NFKC"}"#,
            r#"{"type": "NFKD"}"#,
            r#"{"type": "Lowercase"}"#,
            r#"{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                "lowercase": true}"#,
            r#"{"type": "BertNormalizer", "clean_text": false, "handle_chinese_chars": false, "strip_accents": true,
                "lowercase": false}"#,
            r#"{"type": "Strip", "strip_left": true, "strip_right": false}"#,
            r#"{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x"},
                {"type": "Replace", "pattern": {"String": "aa"}, "content": "ab"},
                {"type": "Replace", "pattern": {"Regex": "b+"}, "content": ""}, {"type": "NFC"}]}"#,
        ];
        for definition in all {
            let normalizer: NormalizerWrapper = serde_json::from_str(definition).unwrap();
            let mut library = NormalizedString::from(text);
            normalizer.normalize(&mut library).unwrap();
            assert_eq!(Normal::of(Some(&normalizer)).apply(text), library.get(), "{definition} {text:?}");
        }
    }

    #[test]
    fn every_character_becomes_what_the_library_makes_of_it() {
        ["", "a", "aaa bb aab", " \u{a0}x "].into_iter().for_each(check);
        for some in ('\0'..'\u{20000}').collect::<Vec<_>>().chunks(16) {
            check(&some.iter().flat_map(|&c| ['a', c, '\u{301}', c, '\u{323}']).collect::<String>());
            some.iter().filter(|&&c| c < '\u{3000}').for_each(|c| check(&c.to_string()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn any_text_becomes_what_the_library_makes_of_it(text in "[aAbeé\u{301}\u{323}\u{345}ΣςİKſﬁ가ᄀ ]{0,8}.{0,4}") {
            check(&text);
        }
    }
}
