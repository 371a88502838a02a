//! Where a tokenizer.json cuts a text into words: by its own expressions, or by a scanner that was shown to cut as they do.

use std::sync::Arc;

use splintr::{Backend, Tokenizer as Scanner};
use tokenizers::SplitDelimiterBehavior::{Isolated, Removed};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};

use super::unlike::Unlike;

/// The expression of a `ByteLevel` step.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The expressions that a scanner replaces. `every_character_is_cut_as_the_expressions_cut_it` shows for each that the
/// scanner cuts as the library does, but for the places of [`Unlike`].
#[rustfmt::skip]
const SCANNED: &[(Unlike, &[&str])] = &[
    (Unlike::Nowhere, &[GPT2]),
    // llama-3
    (Unlike::LongS, &[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    // Qwen 2 and 3
    (Unlike::LongS, &[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    // Qwen 3.5
    (Unlike::LongS, &[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    // o200k
    (Unlike::LongS, &[r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    // Mistral's Tekken
    (Unlike::Nowhere, &[r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    // DeepSeek V3
    (Unlike::KanaMarks, &[
        r"\p{N}{1,3}",
        "[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ]),
];

/// The steps of a pre-tokenizer that ends in bytes.
pub(crate) struct Cutter {
    /// A space goes before a text that begins with none.
    pub(super) prefix_space: bool,
    steps: Vec<Step>,
    // For the steps after the first ones.
    scanner: Option<(usize, Unlike, Arc<Scanner>)>,
}

/// The expressions of the vocabularies that come with windrow, in the order of their names.
#[rustfmt::skip]
const NAMED: &[(&str, Unlike, &[&str])] = &[
    // As tiktoken writes it, but for quantifiers that do not matter here; there, `$` is the end of the text.
    ("cl100k_base", Unlike::LongS, &[r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"]),
    ("deepseek_v3", SCANNED[6].0, SCANNED[6].1),
    ("llama3", SCANNED[1].0, SCANNED[1].1),
    ("o200k_base", SCANNED[4].0, SCANNED[4].1),
];

enum Step {
    Digits { individual: bool },
    Expression(Split),
}

impl Cutter {
    /// Whether the last step makes bytes of the words.
    pub(super) fn ends_in_bytes(pre_tokenizer: Option<&PreTokenizerWrapper>) -> bool {
        let mut flat = Vec::new();
        pre_tokenizer.into_iter().for_each(|all| flatten(all, &mut flat));
        matches!(flat.last(), Some(PreTokenizerWrapper::ByteLevel(_)))
    }

    /// The library's own steps; or why they are not of a kind that only cuts.
    pub(super) fn of(pre_tokenizer: Option<&PreTokenizerWrapper>) -> Result<Cutter, String> {
        let mut flat = Vec::new();
        pre_tokenizer.into_iter().for_each(|all| flatten(all, &mut flat));
        let Some((PreTokenizerWrapper::ByteLevel(last), before)) = flat.split_last() else {
            return Err("its words are not bytes (no ByteLevel step at the end)".to_string());
        };
        let mut steps = before.iter().map(|step| Step::of(step)).collect::<Result<Vec<_>, _>>()?;
        if last.add_prefix_space && !steps.is_empty() {
            return Err("it puts a space before each word".to_string());
        }
        if last.use_regex {
            let split = Split::new(SplitPattern::Regex(GPT2.to_string()), Isolated, false);
            steps.push(Step::Expression(split.map_err(|e| e.to_string())?));
        }
        let scanner = (0..=steps.len()).find_map(|from| {
            let (unlike, expressions) = *SCANNED.iter().find(|(_, all)| is_scanned(&steps[from..], all))?;
            Some((from, unlike, Arc::new(scanner(expressions)?)))
        });
        Ok(Cutter { prefix_space: last.add_prefix_space, steps, scanner })
    }

    /// Of a vocabulary that comes with windrow, which cuts as a scanner of its own.
    pub(crate) fn named(name: &str, scanner: Arc<Scanner>) -> Option<Cutter> {
        let (_, unlike, expressions) = *NAMED.iter().find(|named| named.0 == name)?;
        let split =
            |expression: &&str| Split::new(SplitPattern::Regex(expression.to_string()), Isolated, false);
        let steps = expressions.iter().map(|e| split(e).ok().map(Step::Expression)).collect::<Option<_>>()?;
        Some(Cutter { prefix_space: false, steps, scanner: Some((0, unlike, scanner)) })
    }

    /// The words of a text, in order. With a scanner, they are right where [`Cutter::knows`] the text and each of them.
    #[inline(always)]
    pub(crate) fn cut(&self, text: &str, mut word: impl FnMut(&str)) {
        match &self.scanner {
            Some((0, _, scanner)) => scanner.for_each_pre_token(text, word),
            Some((first, _, scanner)) => {
                cut(&self.steps[..*first], text, &mut |piece| scanner.for_each_pre_token(piece, &mut word));
            }
            None => cut(&self.steps, text, &mut word),
        }
    }

    /// The words of any text, by the expressions themselves.
    pub(crate) fn cut_exactly(&self, text: &str, mut word: impl FnMut(&str)) {
        cut(&self.steps, text, &mut word);
    }

    /// Whether `cut` may be asked about the text.
    pub(crate) fn knows(&self, text: &str) -> bool {
        self.scanner.as_ref().is_none_or(|(_, unlike, _)| !unlike.in_text(text))
    }

    /// Whether `cut` is to be believed about all of a text.
    pub(crate) fn knows_all(&self, text: &str) -> bool {
        self.scanner.as_ref().is_none_or(|(_, unlike, _)| !unlike.may_be_in(text))
    }

    /// Whether `cut` is to be believed about a word.
    pub(crate) fn knows_word(&self, word: &str) -> bool {
        self.scanner.as_ref().is_none_or(|(_, unlike, _)| !unlike.in_word(word))
    }
}

impl Step {
    fn of(step: &PreTokenizerWrapper) -> Result<Step, String> {
        match step {
            PreTokenizerWrapper::Digits(digits) => Ok(Step::Digits { individual: digits.individual_digits }),
            PreTokenizerWrapper::Split(split) if matches!(split.behavior, Isolated | Removed) => {
                Ok(Step::Expression(split.clone()))
            }
            _ => Err("it cuts words in another way than by expressions and digits".to_string()),
        }
    }

    fn cut<'t>(&self, text: &'t str, piece: &mut dyn FnMut(&'t str)) {
        match self {
            Step::Expression(split) => {
                let (found, between) = match split.behavior {
                    Removed => (split.invert, !split.invert),
                    _ => (true, true),
                };
                let mut last = 0;
                for (start, end) in split.regex.find_iter(text) {
                    if between && last < start {
                        piece(&text[last..start]);
                    }
                    if found && start < end {
                        piece(&text[start..end]);
                    }
                    last = end;
                }
                if between && last < text.len() {
                    piece(&text[last..]);
                }
            }
            Step::Digits { individual } => {
                let mut last = 0;
                let mut was = None;
                for (at, c) in text.char_indices() {
                    let is = c.is_numeric();
                    if was.is_some_and(|was| was != is || is && *individual) {
                        piece(&text[last..at]);
                        last = at;
                    }
                    was = Some(is);
                }
                if last < text.len() {
                    piece(&text[last..]);
                }
            }
        }
    }
}

fn cut<'t>(steps: &[Step], text: &'t str, word: &mut dyn FnMut(&'t str)) {
    match steps {
        [] => word(text),
        [step, rest @ ..] => step.cut(text, &mut |piece| cut(rest, piece, word)),
    }
}

fn flatten<'p>(step: &'p PreTokenizerWrapper, flat: &mut Vec<&'p PreTokenizerWrapper>) {
    match step {
        PreTokenizerWrapper::Sequence(steps) => steps.as_ref().iter().for_each(|step| flatten(step, flat)),
        step => flat.push(step),
    }
}

// Each of them matches somewhere in any text that is not empty, or, of several, keeps what it does not match: whether
// what lies between matches is removed makes a difference for the latter only.
fn is_scanned(steps: &[Step], expressions: &[&str]) -> bool {
    let same = |(step, expression): (&Step, &&str)| match step {
        Step::Expression(split) => {
            let keeps = matches!(split.behavior, Isolated) || split.invert && expressions.len() == 1;
            keeps && matches!(&split.pattern, SplitPattern::Regex(regex) if regex == expression)
        }
        Step::Digits { .. } => false,
    };
    steps.len() == expressions.len() && steps.iter().zip(expressions).all(same)
}

// It cuts only; its vocabulary is the bytes.
fn scanner(expressions: &[&str]) -> Option<Scanner> {
    let bytes: serde_json::Map<String, serde_json::Value> = super::merges::letters()
        .iter()
        .zip(0..)
        .map(|(c, id)| (c.to_string(), serde_json::Value::from(id)))
        .collect();
    let split = |e: &&str| serde_json::json!({"type": "Split", "pattern": {"Regex": e}, "behavior": "Isolated", "invert": false});
    let mut steps: Vec<serde_json::Value> = expressions.iter().map(split).collect();
    steps.push(serde_json::json!(
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
    ));
    let definition = serde_json::json!({
        "model": {"type": "BPE", "vocab": bytes, "merges": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
    });
    match splintr::from_json_bytes(definition.to_string().as_bytes()).ok()?.into_backend() {
        Backend::Bpe(scanner) => Some(scanner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::pre_tokenizers::digits::Digits;
    use tokenizers::pre_tokenizers::sequence::Sequence;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    use super::*;

    fn split(expression: &str) -> PreTokenizerWrapper {
        Split::new(SplitPattern::Regex(expression.to_string()), Isolated, false).unwrap().into()
    }

    fn of(steps: Vec<PreTokenizerWrapper>) -> (Cutter, PreTokenizerWrapper) {
        let last = PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, true, false));
        let all = PreTokenizerWrapper::Sequence(Sequence::new(steps.into_iter().chain([last]).collect()));
        (Cutter::of(Some(&all)).unwrap(), all)
    }

    // Of the one vocabulary whose expression is not an other's.
    fn cl100k() -> (Cutter, PreTokenizerWrapper) {
        let Backend::Bpe(bpe) = splintr::from_pretrained("cl100k_base").unwrap().into_backend() else {
            panic!()
        };
        (Cutter::named("cl100k_base", Arc::new(bpe)).unwrap(), of(vec![split(NAMED[0].2[0])]).1)
    }

    fn scanned() -> Vec<(Cutter, PreTokenizerWrapper)> {
        SCANNED.iter().map(|(_, expressions)| of(expressions.iter().map(|e| split(e)).collect())).collect()
    }

    fn words(cut: impl FnOnce(&mut dyn FnMut(&str))) -> Vec<String> {
        let mut words = Vec::new();
        cut(&mut |word| words.push(word.to_string()));
        words
    }

    // In company of each kind of character, at the start and the end of a piece.
    fn places(c: char) -> String {
        format!(
            "{c}{c} {c}a{c}a A{c}b{c}A 1{c}1 !{c}! \u{301}{c}\u{301}\n{c}\n '{c} '{c}e 'l{c} 'r{c} b'{c}b {c}s\u{3b1}{c}\u{4e00}{c}\t{c}'s {c}"
        )
    }

    // Of the planes of ideographs, and of those that are empty or private, samples.
    fn characters() -> impl Iterator<Item = char> {
        let dense = ('\0'..'\u{20000}').chain('\u{e0000}'..'\u{e0200}');
        dense.chain(('\u{20000}'..'\u{40000}').step_by(61)).chain(('\u{40000}'..=char::MAX).step_by(997))
    }

    // The words that `cut` is believed about, else those of the expressions.
    fn believed(cutter: &Cutter, text: &str) -> Vec<String> {
        let found = words(|word| cutter.cut(text, word));
        if cutter.knows(text) && found.iter().all(|word| cutter.knows_word(word)) {
            found
        } else {
            words(|word| cutter.cut_exactly(text, word))
        }
    }

    fn by_library(steps: &PreTokenizerWrapper, text: &str) -> Vec<String> {
        let bytes: std::collections::HashMap<char, u8> =
            super::super::merges::letters().into_iter().zip(0..=255).collect();
        let mut pieces = PreTokenizedString::from(text);
        steps.pre_tokenize(&mut pieces).unwrap();
        let words = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        words
            .iter()
            .map(|(w, ..)| String::from_utf8(w.chars().map(|c| bytes[&c]).collect()).unwrap())
            .collect()
    }

    #[test]
    fn every_character_is_cut_as_the_expressions_cut_it() {
        for (cutter, steps) in scanned().into_iter().chain([cl100k()]) {
            assert!(cutter.scanner.as_ref().is_some_and(|scanner| scanner.0 == 0));
            for c in characters() {
                let text = places(c);
                let exactly = words(|word| cutter.cut_exactly(&text, word));
                assert_eq!(believed(&cutter, &text), exactly, "{c:?}");
                if c < '\u{500}' {
                    assert_eq!(exactly, by_library(&steps, &text), "{c:?}");
                }
            }
        }
    }

    // One of each class, and those that are separate.
    const CHARACTERS: [char; 40] = [
        'a', 's', 'S', 'e', 'l', 'V', 'ſ', 'K', '\'', '\'', '’', ' ', ' ', '\n', '\r', '\t', '\u{a0}',
        '\u{2028}', '\u{85}', '0', '7', '½', '٣', 'é', 'Ǆ', 'ǅ', 'ʰ', 'ª', '中', 'か', 'ー', '・', '\u{301}',
        '\u{93e}', '!', '/', '€', '🙂', '\u{200d}', '\0',
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn any_text_is_cut_as_the_library_cuts_it(text in vec(select(&CHARACTERS[..]), 0..24)) {
            use std::sync::LazyLock;
            static ALL: LazyLock<Vec<(Cutter, PreTokenizerWrapper)>> = LazyLock::new(|| {
                let digits = |individual| PreTokenizerWrapper::Digits(Digits::new(individual));
                let removed = Split::new(SplitPattern::String("a".to_string()), Removed, false).unwrap();
                let others = [
                    vec![digits(true), split(GPT2)],
                    vec![digits(false)],
                    vec![split("s(?=a)|as"), digits(true)],
                    vec![removed.into(), split(GPT2)],
                ];
                scanned().into_iter().chain(others.map(of)).chain([cl100k()]).collect()
            });
            let text: String = text.into_iter().collect();
            for (cutter, steps) in &*ALL {
                let library = by_library(steps, &text);
                prop_assert_eq!(&words(|word| cutter.cut_exactly(&text, word)), &library, "{:?}", text);
                prop_assert_eq!(&believed(cutter, &text), &library, "{:?}", text);
            }
        }
    }
}
