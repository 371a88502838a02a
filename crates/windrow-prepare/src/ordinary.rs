//! The string in a field of an ordinary JSON line, in one look at each byte.
//!
//! A parser looks for the end of a string first and then for what is escaped in it. Of lines that hold a text and little
//! else, which is what tokenizers are fed with, that is a noticeable part of all work. What is out of the ordinary in any
//! way is left to the parser, errors above all.

use std::ops::Range;

use serde_json::Deserializer;
use serde_json::value::RawValue;
use wide::u8x16;

/// The string in `field` of the JSON object that `line` is: where nothing is escaped in it a part of the line, else copied
/// into `room`. `None` where the parser has to look.
pub(super) fn string_in<'a>(line: &'a str, field: &str, room: &'a mut Vec<u8>) -> Option<&'a str> {
    let mut rest = after(line, b'{')?;
    let (mut found, mut room) = (None, Some(room));
    loop {
        let (key, behind) = key(rest)?;
        let value = unpadded(after(behind, b':')?);
        rest = if key == field {
            // There is room for one: of a field that is there twice, the parser takes the last.
            let (text, behind) = string(value, room.take()?)?;
            found = Some(text);
            behind
        } else {
            skipped(value)?
        };
        match after(rest, b',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    if unpadded(after(rest, b'}')?).is_empty() { found } else { None }
}

// What follows a byte, which white space may precede.
fn after(text: &str, byte: u8) -> Option<&str> {
    unpadded(text).strip_prefix(char::from(byte))
}

// Without the white space of JSON before it: a form feed is not white space.
fn unpadded(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

// What follows a value, of which nothing is copied.
fn skipped(text: &str) -> Option<&str> {
    let mut values = Deserializer::from_str(text).into_iter::<&RawValue>();
    values.next()?.ok()?;
    text.get(values.byte_offset()..)
}

// A key in which nothing is escaped, and what follows it.
fn key(text: &str) -> Option<(&str, &str)> {
    let inside = after(text, b'"')?;
    let end = inside.bytes().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20))?;
    let behind = inside[end..].strip_prefix('"')?;
    Some((&inside[..end], behind))
}

// The string that a JSON string encodes, and what follows it.
fn string<'a>(text: &'a str, room: &'a mut Vec<u8>) -> Option<(&'a str, &'a str)> {
    let inside = after(text, b'"')?;
    let bytes = inside.as_bytes();
    // How much of `inside` is copied already, and where that ends in the room, which is made for the first escape.
    let (mut at, mut done) = (0, 0);
    let mut out: &mut [u8] = &mut [];
    let mut room = Some(room);
    for start in (0..bytes.len()).step_by(BLOCK) {
        let mut special = special(&bytes[start..]);
        while special != 0 {
            let place = start + special.trailing_zeros() as usize;
            special &= special - 1;
            if place < at {
                // The second byte of an escape, in the block behind.
                continue;
            }
            let is_end = match bytes[place] {
                b'"' => true,
                b'\\' => false,
                _ => return None,
            };
            if let Some(room) = room.take() {
                if is_end {
                    return Some((&inside[..place], &inside[place + 1..]));
                }
                // No escape is shorter than what it encodes.
                room.resize(room.len().max(bytes.len() + RUN), 0);
                out = room;
            }
            copy(bytes, at..place, &mut out[done..]);
            done += place - at;
            if is_end {
                let text = simdutf8::basic::from_utf8(&out[..done]).ok()?;
                return Some((text, &inside[place + 1..]));
            }
            // The second byte of an escape needs no look of its own.
            special &= !(2 << (place - start));
            let size = escaped(&inside[place..], &mut out[done..])?;
            (at, done) = (place + size.0, done + size.1);
        }
    }
    None
}

// Writes what the escape at the beginning of `text` means; gives how long it is, and what it means. Half of a pair is
// left to the parser.
fn escaped(text: &str, out: &mut [u8]) -> Option<(usize, usize)> {
    let byte = *text.as_bytes().get(1)?;
    if byte != b'u' {
        let stands_for = STANDS_FOR[usize::from(byte)];
        out[0] = stands_for;
        return (stands_for != 0).then_some((2, 1));
    }
    let digits = text.get(2..6).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let character = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    Some((6, character.encode_utf8(out).len()))
}

// What a byte after a backslash encodes, where it is one byte.
const STANDS_FOR: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = *b"n\nt\tr\rb\x08f\x0c\"\"\\\\//";
    let mut i = 0;
    while i < pairs.len() {
        table[pairs[i] as usize] = pairs[i + 1];
        i += 2;
    }
    table
};

// Bytes that are copied at once where there are fewer: most runs between escapes are shorter.
const RUN: usize = 64;

// Copies bytes to the beginning of `out`, and perhaps some after them.
fn copy(bytes: &[u8], run: Range<usize>, out: &mut [u8]) {
    match (bytes[run.start..].first_chunk::<RUN>(), out.first_chunk_mut::<RUN>()) {
        (Some(from), Some(to)) if run.len() <= RUN => *to = *from,
        _ => out[..run.len()].copy_from_slice(&bytes[run]),
    }
}

// Bytes that are looked at together.
const BLOCK: usize = 64;

// A bit for each quote, backslash and control character in the first 64 bytes.
fn special(bytes: &[u8]) -> u64 {
    let mut padded = [b' '; BLOCK];
    let block = bytes.first_chunk().unwrap_or_else(|| {
        padded[..bytes.len()].copy_from_slice(bytes);
        &padded
    });
    let all = |byte| u8x16::splat(byte);
    let mut found = 0;
    for (i, part) in block.as_chunks::<16>().0.iter().enumerate() {
        let part = u8x16::new(*part);
        let control = part.max(all(0x1f)).simd_eq(all(0x1f));
        let special = part.simd_eq(all(b'"')) | part.simd_eq(all(b'\\')) | control;
        found |= u64::from(special.to_bitmask()) << (16 * i);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::text::field_in;

    #[test]
    fn ordinary_lines_are_read_and_others_left() {
        // What an earlier line left in the room does not belong to this one.
        let mut room = b"left behind".repeat(20);
        let mut text = |line| string_in(line, "text", &mut room).map(str::to_string);
        assert_eq!(text(r#"{"a":[{"b":1}],"text":"x"}"#).unwrap(), "x");
        assert_eq!(text(" { \"text\" :\t\"\" } \r").unwrap(), "");
        assert_eq!(text(r#"{"text":"a\n\u00e9\"\\ü\/"}"#).unwrap(), "a\né\"\\ü/");
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
            r#"{"text":"a","text":"b"}"#,
            r#"{"te\u0078t":"a"}"#,
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

    #[test]
    fn what_other_fields_hold_does_not_matter() {
        let mut room = Vec::new();
        assert_eq!(string_in(r#"{"text":"x","a":"\ud800"}"#, "text", &mut room), Some("x"));
    }

    proptest! {
        // What it gives is what the parser gives.
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn as_the_parser(parts in vec(select(&PARTS[..]), 0..24), ordinary in any::<bool>()) {
            let inside = parts.concat();
            let line = if ordinary { format!("{{\"text\":\"{inside}\"}}") } else { inside };
            if let Some(found) = string_in(&line, "text", &mut Vec::new()) {
                // Which reads no escapes of other fields either.
                let value = field_in(&line, "text").unwrap().unwrap();
                prop_assert_eq!(serde_json::from_str::<String>(value.get()).unwrap(), found);
            }
        }

        #[test]
        fn any_text_is_found(text in ".*", other in ".*") {
            let line = serde_json::json!({ "other": other, "text": text, "n": [1.5, null] }).to_string();
            let mut room = Vec::new();
            let found = string_in(&line, "text", &mut room);
            prop_assert_eq!(found, Some(&*text));
        }
    }
}
