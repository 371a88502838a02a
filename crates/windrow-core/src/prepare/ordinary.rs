//! The string in a field of an ordinary JSON line, in one look at each byte.
//!
//! A parser looks for the end of a string first and then for what is escaped in it. Of lines that hold a text and little
//! else, which is what tokenizers are fed with, that is a noticeable part of all work. What is out of the ordinary in any
//! way is left to the parser, errors above all.

use std::borrow::Cow;

use serde_json::Deserializer;
use serde_json::value::RawValue;

/// The string in `field` of the JSON object that `line` is; of a field that stands there twice, the last one. `None` where
/// the parser has to look.
pub(super) fn string_in<'a>(line: &'a str, field: &str) -> Option<Cow<'a, str>> {
    let mut rest = after(line, b'{')?;
    let mut found = None;
    loop {
        let (key, behind) = string(rest)?;
        let value = unpadded(after(behind, b':')?);
        rest = match key == field {
            true => {
                let (text, behind) = string(value)?;
                found = Some(text);
                behind
            }
            false => skipped(value)?,
        };
        match after(rest, b',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    match unpadded(after(rest, b'}')?).is_empty() {
        true => found,
        false => None,
    }
}

// What follows a byte, which white space may precede.
fn after(text: &str, byte: u8) -> Option<&str> {
    unpadded(text).strip_prefix(char::from(byte))
}

// Without the white space of JSON before it: a form feed is none.
fn unpadded(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

// What follows a value, of which nothing is copied.
fn skipped(text: &str) -> Option<&str> {
    let mut values = Deserializer::from_str(text).into_iter::<&RawValue>();
    values.next()?.ok()?;
    text.get(values.byte_offset()..)
}

// The string that a JSON string stands for, and what follows it.
fn string(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let inside = after(text, b'"')?;
    let bytes = inside.as_bytes();
    let mut at = ordinary(bytes);
    if *bytes.get(at)? == b'"' {
        return Some((Cow::Borrowed(&inside[..at]), &inside[at + 1..]));
    }
    // No escape is shorter than what it stands for.
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..at]);
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (b'"', _) => break,
            (b'\\', Some(b'u')) => {
                let digits =
                    inside.get(at + 2..at + 6).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
                // Half of a pair is left to the parser.
                let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6;
            }
            (b'\\', Some(escaped)) => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'"' | b'\\' | b'/' => *escaped,
                    _ => return None,
                });
                at += 2;
            }
            _ => return None,
        }
        let size = ordinary(&bytes[at..]);
        out.extend_from_slice(&bytes[at..at + size]);
        at += size;
    }
    Some((Cow::Owned(String::from_utf8(out).ok()?), &inside[at + 1..]))
}

// How many bytes stand before a quote, a backslash or a control character.
fn ordinary(bytes: &[u8]) -> usize {
    let (words, last) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return 8 * i + special.trailing_zeros() as usize / 8;
        }
    }
    let rest = last.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20));
    8 * words.len() + rest.unwrap_or(last.len())
}

// The highest bit of the lowest byte that is a quote, a backslash or below 0x20, and of some above it; the carry of the
// subtraction only runs upwards. From Hacker's Delight, 6-1: a byte is 0 where x - 1 borrows and x has no high bit.
fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zeros = |x: u64| x.wrapping_sub(ONES) & !x;
    let control = word.wrapping_sub(0x20 * ONES) & !word;
    (zeros(word ^ (0x22 * ONES)) | zeros(word ^ (0x5c * ONES)) | control) & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::Value;

    use super::*;

    #[test]
    fn ordinary_lines_are_read_and_others_left() {
        let text = |line| string_in(line, "text");
        assert!(matches!(text(r#"{"a":[{"b":1}],"text":"x"}"#), Some(Cow::Borrowed("x"))));
        assert!(matches!(text(" { \"text\" :\t\"\" } \r"), Some(Cow::Borrowed(""))));
        assert_eq!(text(r#"{"text":"a\n\u00e9\"","text":"\\ü\/"}"#).unwrap(), "\\ü/");
        for line in [
            "",
            "{}",
            "3",
            "{\"text\":\"x\"",
            "{\"text\":\"x\"} 1",
            "{\"text\":\"x\"}\u{c}",
            "{\u{c}\"text\":\"x\"}",
            "{\"text\":1}",
            "{\"text\":\"x",
            "{\"text\":\"x\\",
            "{\"text\":\"\\u12\"}",
            "{\"text\":\"\\ud800\"}",
            "{\"text\":\"\\x\"}",
            "{\"text\":\"a\u{1f}\"}",
            "{,}",
            "{\"text\":\"x\",}",
            "{\"a\":,\"text\":\"x\"}",
            "{\"a\" \"text\":\"x\"}",
            "{\"a\":nul,\"text\":\"x\"}",
            "{\"a\":1 2,\"text\":\"x\"}",
            "{\u{c}\"text\":\"x\"}",
            "[\"text\"]",
        ] {
            assert_eq!(text(line), None, "{line}");
        }
    }

    const PARTS: [&str; 30] = [
        "{",
        "}",
        "\"text\":",
        "\"a\":",
        ",",
        "\"",
        "x",
        "é",
        " ",
        "\t",
        r"\n",
        r"\\",
        r#"\""#,
        r"\/",
        r"\b",
        r"\u0041",
        r"\u4f60",
        r"\ud83d\ude00",
        r"\ud800",
        "\u{1}",
        "1",
        "[1,2]",
        "null",
        "\"text\":\"",
        "\"}",
        "\",",
        "{\"text\":\"",
        "long enough for words, ",
        "\"a\":\"b\",",
        "-",
    ];

    proptest! {
        // What it gives is what the parser gives.
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn as_the_parser(parts in vec(select(&PARTS[..]), 0..10), ordinary in any::<bool>()) {
            let inside = parts.concat();
            let line = if ordinary { format!("{{\"text\":\"{inside}\"}}") } else { inside };
            if let Some(found) = string_in(&line, "text") {
                let value: Value = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(value["text"].as_str(), Some(&*found));
            }
        }

        #[test]
        fn any_text_is_found(text in ".*", other in ".*") {
            let line = serde_json::json!({ "other": other, "text": text, "n": [1.5, null] }).to_string();
            let found = string_in(&line, "text");
            prop_assert_eq!(found.as_deref(), Some(&*text));
        }
    }
}
