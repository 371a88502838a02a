//! What distinguishes tokenizers: a hash of the definition, and strings in which they are known to differ, with their IDs.

use windrow_core::manifest::Golden;
use xxhash_rust::xxh3::xxh3_64;

use crate::engine::Engine;

// One for each thing in which tokenizers are known to differ.
const STRINGS: [&str; 10] = [
    "Hello world",
    "  two spaces,\ta tab\r\nand a line",
    "In 1969, 12345 people paid $3.50",
    "I'm sure you'll say it’s fine",
    "naïve café e\u{301} ﬁ",
    "中文 日本語 한국어 العربية",
    "👩‍👩‍👧 👍🏽",
    "fn main() { println!(\"{}\", x[0] != 1); }",
    "<|endoftext|></s>[CLS]",
    "UPPER lower CamelCase snake_case",
];

/// XXH3-64 of a tokenizer.json, 16 hexadecimal digits.
pub(crate) fn hash_of(content: &[u8]) -> String {
    format!("{:016x}", xxh3_64(content))
}

/// XXH3-64 of a built-in tokenizer, which has no file: over its name, its size and the IDs of the golden strings.
pub(crate) fn hash_of_builtin(name: &str, vocab_size: u64, golden: &[Golden]) -> String {
    let mut content = format!("{name}\n{vocab_size}\n").into_bytes();
    for one in golden {
        content.extend(one.ids.iter().flat_map(|id| id.to_le_bytes()));
        content.push(b'\n');
    }
    hash_of(&content)
}

/// The strings and their IDs. One that cannot be encoded, in a vocabulary without a token for it, is left out.
pub(crate) fn golden(engine: &dyn Engine) -> Vec<Golden> {
    let ids = |text: &str| {
        let mut ids = Vec::new();
        engine.encode(text, &mut ids).ok().map(|()| ids)
    };
    STRINGS.iter().filter_map(|text| Some(Golden { text: text.to_string(), ids: ids(text)? })).collect()
}
