//! Bytes of characters of which some are missing, as the tokens of a tokenizer.json write them: as letters, or as `<0xE0>`.

use std::sync::LazyLock;

use crate::fast::letters;

const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// The bytes of `tokens`, whose text the library says is `text`; `None` where the tokens do not say them.
pub(crate) fn bytes(tokens: &[String], text: &str) -> Option<Vec<u8>> {
    let bytes = of_letters(tokens);
    if String::from_utf8_lossy(&bytes) == text { Some(bytes) } else { of_names(tokens, text) }
}

// Each letter is a byte, in a token that has no others.
fn of_letters(tokens: &[String]) -> Vec<u8> {
    static LETTERS: LazyLock<[char; 256]> = LazyLock::new(letters);
    let byte = |letter: char| LETTERS.iter().position(|known| *known == letter).map(|byte| byte as u8);
    let of = |token: &String| {
        let bytes: Option<Vec<u8>> = token.chars().map(byte).collect();
        bytes.unwrap_or_else(|| token.as_bytes().to_vec())
    };
    tokens.iter().flat_map(of).collect()
}

// Tokens `<0xE0>` that stand together are a text, or else each of them is U+FFFD.
fn of_names(tokens: &[String], text: &str) -> Option<Vec<u8>> {
    let runs = tokens.chunk_by(|a, b| named(a).is_some() == named(b).is_some());
    let runs = runs.map(|run| run.iter().filter_map(|token| named(token)).collect::<Vec<u8>>());
    let missing: Vec<u8> = runs.filter(|run| std::str::from_utf8(run).is_err()).flatten().collect();
    let mut parts = text.split(UNKNOWN);
    let mut bytes = parts.next()?.as_bytes().to_vec();
    let mut n = 0;
    for (part, byte) in parts.zip(&missing) {
        bytes.push(*byte);
        bytes.extend_from_slice(part.as_bytes());
        n += 1;
    }
    (n == missing.len() && n == text.matches(UNKNOWN).count()).then_some(bytes)
}

fn named(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tokenizer;

    fn check(tokens: &[&str], text: &str, expected: Option<&[u8]>) {
        let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_string()).collect();
        assert_eq!(bytes(&tokens, text).as_deref(), expected, "{tokens:?}");
    }

    #[test]
    fn bytes_are_found_in_letters_and_in_names() {
        check(&["à", "´"], "\u{fffd}", Some(b"\xe0\xb4"));
        check(&["Ġa", "à"], " a\u{fffd}", Some(b" a\xe0"));
        check(&["▁a", "<0xE0>", "<0xB4>", "b"], "a\u{fffd}\u{fffd}b", Some(b"a\xe0\xb4b"));
        let rest = "éx\u{fffd}\u{fffd}";
        check(&["<0xC3>", "<0xA9>", "x", "<0x0A>", "<0xC3>"], rest, Some(b"\xc3\xa9x\n\xc3"));
        // A token that is U+FFFD itself says no bytes.
        check(&["▁\u{fffd}"], "\u{fffd}", None);
    }

    #[test]
    fn every_beginning_of_a_text_has_its_bytes() {
        let text = "മലയാളം 😀 é";
        for name in ["gpt2", "cl100k_base", "bytes"] {
            let tokenizer = Tokenizer::load(name).unwrap();
            let mut ids = Vec::new();
            tokenizer.encode(text, &mut ids).unwrap();
            for end in 0..=ids.len() {
                let bytes = tokenizer.decode_bytes(&ids[..end]).unwrap();
                assert!(text.as_bytes().starts_with(&bytes), "{name} {end}: {bytes:x?}");
                assert_eq!(String::from_utf8_lossy(&bytes), tokenizer.decode(&ids[..end]).unwrap());
            }
            assert_eq!(tokenizer.decode_bytes(&ids).unwrap(), text.as_bytes(), "{name}");
        }
    }
}
