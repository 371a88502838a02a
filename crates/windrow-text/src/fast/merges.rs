//! Byte-pair merges of a word, in the order of the tokenizers library: the pair of the lowest rank first, of equal ones the
//! left.
//!
//! A rule is known by its two tokens, not by what they give together: `ab` + `c` is another rule than `a` + `bc`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// A rule that is not there; it comes after all others.
const NONE: Rule = Rule { rank: u32::MAX, id: 0 };

/// Words of more bytes are merged with a queue, which costs less there.
const SHORT: usize = 96;

/// What a model makes of a word.
pub(super) struct Merges {
    start: Start,
    rules: Rules,
    // Words that are tokens, where those are taken without merging.
    whole: Option<HashMap<Box<[u8]>, u32>>,
}

/// The tokens that merging begins with.
enum Start {
    /// One for each byte; `None` where the model leaves such a byte out.
    Bytes(Box<[Option<u32>; 256]>),
    Characters {
        ids: HashMap<char, u32>,
        // Of a character that has none: its bytes, or one token for it, or for several, or nothing.
        bytes: Option<Box<[u32; 256]>>,
        unknown: Option<u32>,
        fuse: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    rank: u32,
    // Of the token that it makes.
    id: u32,
}

impl Merges {
    /// The model's, with its rules in the order of the file; or why it has another meaning than what is merged here.
    pub(super) fn of(model: &BPE, rules: &[(String, String)], of_bytes: bool) -> Result<Merges, String> {
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if is_set(&model.continuing_subword_prefix) || is_set(&model.end_of_word_suffix) {
            return Err("its tokens are marked inside or at the end of a word".to_string());
        }
        if model.dropout.is_some_and(|p| p != 0.0) {
            return Err("it drops merges at random".to_string());
        }
        let vocab = model.get_vocab();
        let mut ids: Vec<u32> = vocab.values().copied().collect();
        ids.sort_unstable();
        if ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("two of its tokens have the same ID".to_string());
        }
        let start =
            if of_bytes { Start::of_bytes(model, &vocab)? } else { Start::of_characters(model, &vocab)? };
        let mut table = Rules::with_room_for(rules.len());
        for (rank, (left, right)) in rules.iter().enumerate() {
            let id = |token: &str| vocab.get(token).copied().ok_or("a merge names a token that is not there");
            let rule = Rule { rank: rank as u32, id: id(&format!("{left}{right}"))? };
            table.put(pair(id(left)?, id(right)?), rule);
        }
        let whole = model.ignore_merges.then(|| {
            let bytes: HashMap<char, u8> = letters().into_iter().zip(0..=255).collect();
            let of = |token: &str| -> Option<Box<[u8]>> {
                if of_bytes {
                    token.chars().map(|letter| bytes.get(&letter).copied()).collect()
                } else {
                    Some(token.as_bytes().into())
                }
            };
            vocab.iter().filter_map(|(token, &id)| Some((of(token)?, id))).collect()
        });
        Ok(Merges { start, rules: table, whole })
    }

    /// Whether what comes before a mark, or several, is never merged with them by the rules, so that both are words.
    pub(super) fn none_crosses(&self, mark: char, rules: &[(String, String)]) -> bool {
        let crosses = |(left, right): &(String, String)| right.starts_with(mark) && !left.ends_with(mark);
        // Where unknown characters are left out, the marks on both sides of one become neighbours.
        let is_known = matches!(
            &self.start,
            Start::Characters { ids, bytes, unknown, .. }
                if ids.contains_key(&mark) && (bytes.is_some() || unknown.is_some())
        );
        is_known && self.whole.is_none() && !rules.iter().any(crosses)
    }

    /// Adds the IDs of a word.
    pub(super) fn encode(&self, word: &str, out: &mut Vec<u32>) {
        if let Some(&id) = self.whole.as_ref().and_then(|whole| whole.get(word.as_bytes())) {
            out.push(id);
        } else if word.len() <= SHORT {
            self.encode_short(word, out);
        } else {
            self.encode_long(word, out);
        }
    }

    // Looks for the first rule again after each merge.
    fn encode_short(&self, word: &str, out: &mut Vec<u32>) {
        // There are no more of them than bytes.
        let (mut ids, mut n) = ([0; SHORT], 0);
        self.start.tokens(word, |id| {
            ids[n] = id;
            n += 1;
        });
        // Of each token and the next one.
        let mut rules = [NONE; SHORT];
        for i in 1..n {
            rules[i - 1] = self.rules.get(pair(ids[i - 1], ids[i]));
        }
        while n > 1 {
            let (mut at, mut first) = (0, NONE);
            for (i, rule) in rules[..n - 1].iter().enumerate() {
                if rule.rank < first.rank {
                    (at, first) = (i, *rule);
                }
            }
            if first == NONE {
                break;
            }
            ids[at] = first.id;
            ids.copy_within(at + 2..n, at + 1);
            rules.copy_within(at + 1..n - 1, at);
            n -= 1;
            if at > 0 {
                rules[at - 1] = self.rules.get(pair(ids[at - 1], ids[at]));
            }
            if at + 1 < n {
                rules[at] = self.rules.get(pair(ids[at], ids[at + 1]));
            }
        }
        out.extend_from_slice(&ids[..n]);
    }

    fn encode_long(&self, word: &str, out: &mut Vec<u32>) {
        // Where a token was merged into the one before it.
        const GONE: u32 = u32::MAX;
        let mut ids = Vec::with_capacity(word.len());
        self.start.tokens(word, |id| ids.push(id));
        let n = ids.len();
        let (mut before, mut after): (Vec<usize>, Vec<usize>) =
            ((0..n).map(|i| i.wrapping_sub(1)).collect(), (1..=n).collect());
        let mut queue = BinaryHeap::new();
        let ask = |queue: &mut BinaryHeap<_>, ids: &[u32], left: usize, right: usize| {
            let rule = self.rules.get(pair(ids[left], ids[right]));
            if rule != NONE {
                queue.push(Reverse((rule.rank, left, rule.id)));
            }
        };
        (1..n).for_each(|i| ask(&mut queue, &ids, i - 1, i));
        while let Some(Reverse((rank, left, id))) = queue.pop() {
            let right = after[left];
            // It was put there before one of the two became another.
            if ids[left] == GONE
                || right == n
                || self.rules.get(pair(ids[left], ids[right])) != (Rule { rank, id })
            {
                continue;
            }
            ids[left] = id;
            ids[right] = GONE;
            after[left] = after[right];
            if after[left] < n {
                before[after[left]] = left;
                ask(&mut queue, &ids, left, after[left]);
            }
            if before[left] < n {
                ask(&mut queue, &ids, before[left], left);
            }
        }
        out.extend(ids.into_iter().filter(|&id| id != GONE));
    }
}

impl Start {
    fn of_bytes(model: &BPE, vocab: &HashMap<String, u32>) -> Result<Start, String> {
        let bytes = letters().map(|letter| vocab.get(letter.encode_utf8(&mut [0; 4]) as &str).copied());
        if (model.unk_token.is_some() || model.byte_fallback) && bytes.contains(&None) {
            return Err("its vocabulary has no token for some of the 256 bytes".to_string());
        }
        Ok(Start::Bytes(Box::new(bytes)))
    }

    fn of_characters(model: &BPE, vocab: &HashMap<String, u32>) -> Result<Start, String> {
        let one = |token: &str| {
            let mut chars = token.chars();
            chars.next().filter(|_| chars.next().is_none())
        };
        let ids = vocab.iter().filter_map(|(token, &id)| Some((one(token)?, id))).collect();
        let mut bytes = None;
        if model.byte_fallback {
            let mut all = [0; 256];
            for (byte, id) in all.iter_mut().enumerate() {
                let known = vocab.get(&format!("<{byte:#04X}>"));
                *id = *known.ok_or("its vocabulary has no token for some of the 256 bytes")?;
            }
            bytes = Some(Box::new(all));
        }
        let id_of = |token| vocab.get(token).copied().ok_or("its token for unknown characters is not there");
        let unknown = model.unk_token.as_ref().map(id_of).transpose()?;
        Ok(Start::Characters { ids, bytes, unknown, fuse: model.fuse_unk })
    }

    fn tokens(&self, word: &str, mut token: impl FnMut(u32)) {
        match self {
            Start::Bytes(bytes) => word.bytes().filter_map(|byte| bytes[usize::from(byte)]).for_each(token),
            Start::Characters { ids, bytes, unknown, fuse } => {
                let mut was_unknown = false;
                for c in word.chars() {
                    match (ids.get(&c), bytes, unknown) {
                        (Some(&id), ..) => token(id),
                        (None, Some(bytes), _) => {
                            c.encode_utf8(&mut [0; 4])
                                .bytes()
                                .for_each(|byte| token(bytes[usize::from(byte)]));
                        }
                        (None, None, Some(id)) if !(*fuse && was_unknown) => token(*id),
                        _ => {}
                    }
                    was_unknown = bytes.is_none() && !ids.contains_key(&c);
                }
            }
        }
    }
}

/// How the library writes each byte in its tokens.
pub(crate) fn letters() -> [char; 256] {
    let known = ByteLevel::alphabet();
    let mut letters = ['\0'; 256];
    let mut others = '\u{100}'..;
    for (byte, letter) in letters.iter_mut().enumerate() {
        let own = char::from(byte as u8);
        *letter = if known.contains(&own) { own } else { others.next().unwrap_or_default() };
    }
    letters
}

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// The rules by their pair: each in the first free place from where its hash points on.
struct Rules {
    places: Vec<(u64, Rule)>,
}

impl Rules {
    fn with_room_for(n: usize) -> Rules {
        Rules { places: vec![(0, NONE); (2 * n + 1).next_power_of_two()] }
    }

    // Where a pair is, or would be.
    #[inline]
    fn place(&self, pair: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        // More than half of the places are free.
        while self.places[at].1 != NONE && self.places[at].0 != pair {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline]
    fn get(&self, pair: u64) -> Rule {
        self.places[self.place(pair)].1
    }

    // Of two rules of one pair, the later one holds.
    fn put(&mut self, pair: u64, rule: Rule) {
        let at = self.place(pair);
        self.places[at] = (pair, rule);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use tokenizers::Model;
    use tokenizers::models::bpe::Vocab;

    use super::*;

    // A model over a few bytes; rules are taken from tokens that are there.
    fn model(picks: &[(usize, usize)], ignore_merges: bool) -> (BPE, Vec<(String, String)>) {
        let mut tokens: Vec<String> = letters().iter().map(char::to_string).collect();
        let few = ["a", "b", "Ã", "©", "Ġ"];
        let mut from: Vec<String> = few.map(str::to_string).to_vec();
        let mut rules = Vec::new();
        for (left, right) in picks {
            let (left, right) = (from[left % from.len()].clone(), from[right % from.len()].clone());
            let made = format!("{left}{right}");
            if !tokens.contains(&made) {
                tokens.push(made.clone());
                from.push(made);
            }
            rules.push((left, right));
        }
        let vocab: Vocab = tokens.into_iter().rev().zip(7..).collect();
        let builder = BPE::builder().vocab_and_merges(vocab, rules.clone()).ignore_merges(ignore_merges);
        (builder.build().unwrap(), rules)
    }

    fn by_library(model: &BPE, word: &str) -> Vec<u32> {
        let letters = letters();
        let written: String = word.bytes().map(|byte| letters[usize::from(byte)]).collect();
        model.tokenize(&written).unwrap().iter().map(|token| token.id).collect()
    }

    #[test]
    fn each_byte_is_written_as_the_library_writes_it() {
        let mut all: Vec<char> = letters().to_vec();
        all.sort_unstable();
        let mut known: Vec<char> = ByteLevel::alphabet().into_iter().collect();
        known.sort_unstable();
        assert_eq!(all, known);
        assert_eq!([' ', '\n', 'a', '\u{ff}'].map(|c| letters()[c as usize]), ['Ġ', 'Ċ', 'a', 'ÿ']);
    }

    #[test]
    fn a_rule_is_a_pair_of_tokens_and_not_what_they_give_together() {
        // `abc` is made of `ab` and `c`; `bc` comes first, and `a` + `bc` is not a rule.
        let rules = [("b", "a"), ("a", "b"), ("ab", "a")].map(|(a, b)| (a.to_string(), b.to_string()));
        let vocab = letters().into_iter().map(String::from).chain(["ba", "ab", "aba"].map(str::to_string));
        let vocab: Vocab = vocab.zip(0..).collect();
        let model = BPE::builder().vocab_and_merges(vocab, rules.to_vec()).build().unwrap();
        let mut ids = Vec::new();
        Merges::of(&model, &rules, true).unwrap().encode("aba", &mut ids);
        assert_eq!((ids.clone(), ids), (vec![97, 256], by_library(&model, "aba")));
    }

    #[test]
    fn marks_around_a_character_that_is_left_out_are_neighbours() {
        let (model, rules) = of_characters(&[(0, 0)], 0);
        let merges = Merges::of(&model, &rules, false).unwrap();
        assert!(!merges.none_crosses('▁', &rules));
        let mut ids = Vec::new();
        merges.encode("▁中▁", &mut ids);
        let library: Vec<u32> = model.tokenize("▁中▁").unwrap().iter().map(|token| token.id).collect();
        assert_eq!((ids.len(), &ids), (1, &library));
        // With a token for unknown characters nothing is left out.
        let (model, rules) = of_characters(&[(0, 0)], 4);
        assert!(Merges::of(&model, &rules, false).unwrap().none_crosses('▁', &rules));
    }

    // Over a few characters, one of which may be unknown.
    fn of_characters(picks: &[(usize, usize)], bits: u8) -> (BPE, Vec<(String, String)>) {
        let mut tokens: Vec<String> = ["▁", "a", "b", "é", "<unk>"].map(String::from).to_vec();
        if bits & 1 > 0 {
            tokens.extend((0..256).map(|byte| format!("<{byte:#04X}>")));
        }
        let mut from: Vec<String> = tokens[..5].to_vec();
        let mut rules = Vec::new();
        for (left, right) in picks {
            let (left, right) = (from[left % from.len()].clone(), from[right % from.len()].clone());
            let made = format!("{left}{right}");
            if !tokens.contains(&made) {
                tokens.push(made.clone());
                from.push(made);
            }
            rules.push((left, right));
        }
        let vocab: Vocab = tokens.into_iter().zip(3..).collect();
        let mut builder = BPE::builder().vocab_and_merges(vocab, rules.clone());
        builder = builder.byte_fallback(bits & 1 > 0).fuse_unk(bits & 2 > 0).ignore_merges(bits & 8 > 0);
        if bits & 4 > 0 {
            builder = builder.unk_token("<unk>".to_string());
        }
        (builder.build().unwrap(), rules)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn any_rules_give_any_word_the_librarys_ids(
            picks in vec((0usize..40, 0usize..40), 0..60),
            words in vec("[abé ]{1,120}|a{1,200}|(ab){1,100}", 1..8),
            ignore_merges: bool,
        ) {
            let (model, rules) = model(&picks, ignore_merges);
            let merges = Merges::of(&model, &rules, true).unwrap();
            for word in &words {
                let mut ids = Vec::new();
                merges.encode(word, &mut ids);
                prop_assert_eq!(&ids, &by_library(&model, word), "{}", word);
                let mut long = Vec::new();
                if !ignore_merges {
                    merges.encode_long(word, &mut long);
                    prop_assert_eq!(long, ids, "{}", word);
                }
            }
        }

        #[test]
        fn any_rules_give_words_of_characters_the_librarys_ids(
            picks in vec((0usize..40, 0usize..40), 0..60),
            words in vec("[▁abéx中]{1,60}|a{1,200}|(▁a中x){1,40}", 1..8),
            bits in 0u8..16,
        ) {
            let (model, rules) = of_characters(&picks, bits);
            let merges = Merges::of(&model, &rules, false).unwrap();
            for word in &words {
                let mut ids = Vec::new();
                merges.encode(word, &mut ids);
                let library: Vec<u32> = model.tokenize(word).unwrap().iter().map(|token| token.id).collect();
                prop_assert_eq!(&ids, &library, "{}", word);
                if merges.none_crosses('▁', &rules) {
                    let mut parts = Vec::new();
                    let spaces = super::super::spaces::Spaces::of(None, |_| true).unwrap();
                    spaces.cut(word, |part| merges.encode(part, &mut parts));
                    prop_assert_eq!(parts, ids, "{} in parts", word);
                }
            }
        }
    }
}
