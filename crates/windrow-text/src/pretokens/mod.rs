//! The IDs of pre-tokens, remembered: of the words that a text is cut into, most were seen before.
//!
//! A tokenizer asks the tables of its vocabulary about one word after the other, and most of its time is the memory's. Here
//! a thread asks tables of its own, about many words at once, and the tokenizer only about those that are not in them. Ids
//! are the tokenizer's, always: a word is remembered only where it answers for it, and words are looked up only in texts
//! that they make up without a gap.

mod table;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use table::{Ids, Key, Table, hash, key, lengthened, short_key};

/// A tokenizer that gives the same IDs for a text as for its words one after the other.
pub(crate) trait Words {
    /// Hands over the words of a text in order, as parts of it.
    fn cut(&self, text: &str, word: impl FnMut(&str));

    /// Adds the IDs of a word, the same wherever it is; false where it cannot answer for them.
    fn encode(&self, word: &str, out: &mut Vec<u32>) -> bool;
}

/// What several threads remember, each for itself.
#[derive(Default)]
pub(crate) struct PreTokens {
    // Of those threads that encode nothing at the moment.
    idle: Mutex<Vec<(ThreadId, Box<Memory>)>>,
}

impl PreTokens {
    /// Adds the IDs of `text`; false, and nothing added, where it is not made of words that the tokenizer answers for.
    pub(crate) fn encode(&self, tokenizer: &impl Words, text: &str, out: &mut Vec<u32>) -> bool {
        let thread = std::thread::current().id();
        let mut memory = self.of(thread);
        let before = out.len();
        let fits = memory.encode(tokenizer, text, out);
        if !fits {
            out.truncate(before);
        }
        self.idle().push((thread, memory));
        fits
    }

    // The one that a thread had before, which is in its processor's cache; or any other.
    fn of(&self, thread: ThreadId) -> Box<Memory> {
        let mut idle = self.idle();
        let own = idle.iter().position(|(owner, _)| *owner == thread);
        let found = own.or(idle.len().checked_sub(1)).map(|at| idle.swap_remove(at).1);
        found.unwrap_or_default()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(ThreadId, Box<Memory>)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Words that are looked up together: while the memory answers for one, the others are asked for.
const BATCH: usize = 64;
/// Words that are cut before they are looked up.
const CUT: usize = 16 * BATCH;
/// Bytes and IDs of what most words fit in: half a line of the processor's cache.
const SHORT: (usize, usize) = (15, SHORT_IDS);
const SHORT_IDS: usize = 3;
/// Longer words are not remembered, nor those of more IDs.
const LONG: (usize, usize) = (31, LONG_IDS);
const LONG_IDS: usize = 7;

/// The words that one thread has seen.
#[derive(Default)]
struct Memory {
    words: Known,
    room: Room,
}

/// What is known of a text's words while they are looked up.
struct Room {
    /// Where those end that are cut already.
    ends: [usize; CUT],
    /// Those that are looked up, and those that the memory is asked for meanwhile.
    batches: [Batch; 2],
}

impl Default for Room {
    fn default() -> Self {
        Room { ends: [0; CUT], batches: [[Word::default(); BATCH]; 2] }
    }
}

#[derive(Default)]
struct Known {
    short: Table<2, { SHORT.1 }>,
    long: Table<4, { LONG.1 }>,
}

/// Words of a text that are looked up together.
type Batch = [Word; BATCH];

/// One of them, and what is known of it.
#[derive(Clone, Copy, Default)]
struct Word {
    len: usize,
    /// Of a short one.
    key: Key<2>,
    /// Among the short ones, or else among the long ones.
    hash: u64,
    /// Without an ID where it is not among the short ones.
    found: Ids<{ SHORT.1 }>,
}

impl Memory {
    // False where the text is not made of words that the tokenizer answers for; what was added then is of no use.
    fn encode(&mut self, tokenizer: &impl Words, text: &str, out: &mut Vec<u32>) -> bool {
        let Memory { words, room: Room { ends, batches } } = self;
        let base = text.as_ptr().addr();
        // Where the next word is cut, and where the next one begins that is looked up.
        let (mut at, mut start) = (0, 0);
        let (mut n, mut fits) = (0, true);
        tokenizer.cut(text, |word| {
            fits &= word.as_ptr().addr() == base + at;
            at += word.len();
            ends[n] = at;
            // An empty one has no IDs.
            n += usize::from(!word.is_empty());
            if n == CUT {
                fits = fits
                    && at <= text.len()
                    && words.look_up(tokenizer, text, start, &ends[..n], batches, out);
                (start, n) = (at, 0);
            }
        });
        fits && at == text.len() && words.look_up(tokenizer, text, start, &ends[..n], batches, out)
    }
}

impl Known {
    // Adds the IDs of the words from `start` on. The memory is asked for the next ones before these are needed.
    fn look_up(
        &mut self,
        tokenizer: &impl Words,
        text: &str,
        mut start: usize,
        ends: &[usize],
        batches: &mut [Batch; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        let [mut asked, mut next] = batches.each_mut();
        let mut to_ask = ends.chunks(BATCH);
        let mut ask = |words: &Known, batch: &mut Batch| {
            let ends = to_ask.next().unwrap_or_default();
            words.ask(text.as_bytes(), start, ends, batch);
            start = ends.last().copied().unwrap_or(start);
        };
        ask(self, asked);
        ends.chunks(BATCH).all(|ends| {
            ask(self, next);
            self.find(&mut asked[..ends.len()]);
            let answered = self.answer(tokenizer, text, ends, asked, out);
            std::mem::swap(&mut asked, &mut next);
            answered
        })
    }

    // Asks the memory for what is known of the words.
    #[inline(always)]
    fn ask(&self, text: &[u8], mut start: usize, ends: &[usize], batch: &mut Batch) {
        for (word, &end) in batch.iter_mut().zip(ends) {
            word.len = end - start;
            if word.len <= SHORT.0 {
                word.key = short_key(text, start, word.len);
                word.hash = hash(&word.key);
                self.short.prefetch(word.hash);
            } else if word.len <= LONG.0 {
                word.hash = hash(&key::<4>(&text[start..end]));
                self.long.prefetch(word.hash);
            }
            start = end;
        }
    }

    // Takes it of those that are short.
    #[inline(always)]
    fn find(&self, batch: &mut [Word]) {
        for word in batch {
            word.found.n = 0;
            if word.len > SHORT.0 {
                continue;
            }
            match self.short.find(word.hash, &word.key) {
                Some(ids) => word.found = *ids,
                None => {
                    word.hash = hash(&lengthened(&word.key));
                    self.long.prefetch(word.hash);
                }
            }
        }
    }

    #[inline(always)]
    fn answer(
        &mut self,
        tokenizer: &impl Words,
        text: &str,
        ends: &[usize],
        batch: &Batch,
        out: &mut Vec<u32>,
    ) -> bool {
        let (mut ids, mut n) = ([0; BATCH * SHORT.1], 0);
        for (word, &end) in batch.iter().zip(ends) {
            if word.found.n > 0 {
                // All of them, and the next ones over those that are none.
                ids[n..n + SHORT.1].copy_from_slice(&word.found.ids);
                n += word.found.n as usize;
                continue;
            }
            out.extend_from_slice(&ids[..n]);
            n = 0;
            if !self.further(tokenizer, &text[end - word.len..end], word, out) {
                return false;
            }
        }
        out.extend_from_slice(&ids[..n]);
        true
    }

    // A long word, one of many IDs, or a new one.
    fn further(&mut self, tokenizer: &impl Words, text: &str, word: &Word, out: &mut Vec<u32>) -> bool {
        let short = (word.len <= SHORT.0).then_some(word.key);
        let long = (word.len <= LONG.0).then(|| key(text.as_bytes()));
        if let Some(found) = long.and_then(|key| self.long.find(word.hash, &key)) {
            out.extend_from_slice(found.ids());
            return true;
        }
        // It may have been new among the words before it.
        if let Some(found) = short.and_then(|key| self.short.find(hash(&key), &key)) {
            out.extend_from_slice(found.ids());
            return true;
        }
        let before = out.len();
        if !tokenizer.encode(text, out) {
            return false;
        }
        let ids = &out[before..];
        match (short, long, ids.len()) {
            (Some(key), _, 1..=SHORT_IDS) => self.short.put(key, ids),
            (_, Some(key), 1..=LONG_IDS) => self.long.put(key, ids),
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use splintr::{Backend, Tokenizer as Bpe};

    use super::*;

    fn named(name: &str) -> Bpe {
        match splintr::from_pretrained(name).unwrap().into_backend() {
            Backend::Bpe(bpe) => bpe,
            _ => unreachable!(),
        }
    }

    // `change` makes another definition of the one that is there.
    fn tiny4k(change: impl FnOnce(&mut serde_json::Value)) -> Bpe {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenizer/tiny4k/tokenizer.json");
        let mut definition = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        change(&mut definition);
        match splintr::from_json_bytes(definition.to_string().as_bytes()).unwrap().into_backend() {
            Backend::Bpe(bpe) => bpe,
            _ => unreachable!(),
        }
    }

    fn all() -> Vec<(Bpe, PreTokens)> {
        let named = ["cl100k_base", "o200k_base", "deepseek_v3"].map(named);
        let spaced = tiny4k(|root| root["pre_tokenizer"]["add_prefix_space"] = true.into());
        let pieces = serde_json::json!({"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": true},
            {"type": "Split", "pattern": {"Regex": "b(?=a)|ab"}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        ]});
        // A `b` before an `a` is cut off; alone it is not, nor is it where the `a` belongs to it.
        let looking_ahead = tiny4k(|root| root["pre_tokenizer"] = pieces);
        let others = [tiny4k(|_| {}), spaced, looking_ahead];
        named.into_iter().chain(others).map(|bpe| (bpe, PreTokens::default())).collect()
    }

    fn ids(pre_tokens: &PreTokens, bpe: &Bpe, text: &str) -> Vec<u32> {
        let mut out = vec![7];
        if !pre_tokens.encode(bpe, text, &mut out) {
            out.extend(bpe.encode_ordinary(text));
        }
        assert_eq!(out.remove(0), 7);
        out
    }

    #[test]
    fn the_corpus_gives_the_engines_ids_when_it_is_new_and_when_it_is_known() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/text/corpus.jsonl");
        let corpus = std::fs::read_to_string(path).unwrap();
        // Unescaped or not is the same here; words of all lengths, and texts of more than are cut at once.
        let lines: Vec<&str> = corpus.lines().step_by(7).collect();
        for (bpe, pre_tokens) in all() {
            for line in lines.iter().chain(&lines) {
                assert!(ids(&pre_tokens, &bpe, line) == bpe.encode_ordinary(line), "{line}");
            }
            let memory = &pre_tokens.idle()[0].1;
            let (short, long) = (memory.words.short.filled, memory.words.long.filled);
            if Words::encode(&bpe, "the", &mut Vec::new()) {
                assert!(short + long > 256 && long > 0, "{short} {long}")
            } else {
                assert_eq!((short, long), (0, 0))
            }
        }
    }

    #[test]
    fn a_word_that_is_cut_otherwise_when_it_stands_alone_is_never_taken_for_itself() {
        let spaced = tiny4k(|root| root["pre_tokenizer"]["add_prefix_space"] = true.into());
        let mut memory = Memory::default();
        let mut out = Vec::new();
        assert!(Words::encode(&spaced, " end", &mut out) && !Words::encode(&spaced, "end", &mut out));
        // The text begins with a space, so that nothing is put before it; `.` alone would get one.
        assert!(!memory.encode(&spaced, " the.", &mut out));
        assert!(!memory.encode(&spaced, "the", &mut out));
        assert!(memory.encode(&spaced, " the end", &mut out));
        let known = PreTokens::default();
        for text in [" the.", "the.", ".", " .", "", " "] {
            assert_eq!(ids(&known, &spaced, text), spaced.encode_ordinary(text), "{text:?}");
        }
    }

    #[test]
    fn a_word_that_is_new_twice_takes_one_place() {
        let bpe = named("cl100k_base");
        for (word, places) in
            [(" qzx", [1, 0]), (" qzxjkvwpmbg", [0, 1]), (" qzxjkvwpmbgqzxjkvwpmbgqzxjkvwpmb", [0, 0])]
        {
            let mut memory = Memory::default();
            let mut out = Vec::new();
            let text = word.repeat(50);
            assert!(memory.encode(&bpe, &text, &mut out) && out == bpe.encode_ordinary(&text));
            assert_eq!([memory.words.short.filled, memory.words.long.filled], places, "{word}");
        }
    }

    const PARTS: [&str; 24] = [
        "a",
        "b",
        "ab",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "the",
        " end",
        ".",
        "'s",
        "'LL",
        "123",
        "4567",
        "é",
        "你好",
        "🤖",
        "\u{301}",
        "\0",
        "<|endoftext|>",
        "a_long_name_of_a_thing_in_a_source",
        "!!!",
        "x",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn any_text_gives_the_engines_ids(texts in vec(vec(select(&PARTS[..]), 0..60), 1..20), any in ".*") {
            // What is remembered stays from case to case.
            static ALL: LazyLock<Vec<(Bpe, PreTokens)>> = LazyLock::new(all);
            for (bpe, pre_tokens) in &*ALL {
                for text in texts.iter().map(|parts| parts.concat()).chain([any.clone()]) {
                    prop_assert_eq!(ids(pre_tokens, bpe, &text), bpe.encode_ordinary(&text), "{:?}", text);
                }
            }
        }
    }
}
