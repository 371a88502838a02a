//! Numbers, sizes and texts as people read them: grouped, escaped, truncated to a width.

use unicode_width::UnicodeWidthChar;
use windrow_core::Error;

/// `1234567` → `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and its noun, in the plural unless it is one: `1 record`, `2,000 records`.
pub fn counted(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Bytes, in the largest unit that keeps a digit before the point.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        _ => scaled(bytes as f64, "B"),
    }
}

/// A rate per second: `1.2 GB/s`, `3.4 M tokens/s`.
pub fn rate(per_second: f64, unit: &str) -> String {
    format!("{}/s", scaled(per_second, unit))
}

fn scaled(value: f64, unit: &str) -> String {
    let mut value = value;
    let mut prefix = "";
    for next in ["k", "M", "G", "T"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        prefix = next;
    }
    let gap = if unit == "B" || prefix.is_empty() { "" } else { " " };
    let digits = if prefix.is_empty() && value >= 99.5 { 0 } else { usize::from(value < 99.5) };
    format!("{value:.digits$} {prefix}{gap}{unit}")
}

/// A number in six digits: `0.1`, `1234.57`, `1.5e300`.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    if !(1e-4..1e9).contains(&size) {
        let text = format!("{x:.5e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let digits = (5 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Control characters, and those that turn the direction of text, as escapes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            _ if turns || c.is_control() => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out
}

/// Text as it is; bytes that are no character as `\xe0\xb4`.
pub fn of_bytes(bytes: &[u8]) -> String {
    joined(bytes, str::to_string)
}

/// Text between quotes: control characters, quotes, backslashes and bytes that are no character are escapes.
pub fn quoted(bytes: &[u8]) -> String {
    let inner = joined(bytes, |text| escaped(&text.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("\"{inner}\"")
}

fn joined(bytes: &[u8], shown: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    for part in bytes.utf8_chunks() {
        out.push_str(&shown(part.valid()));
        part.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

/// The beginning of a text that fits `width` columns, with `…` where something is left out.
pub fn truncated(text: &str, width: usize) -> String {
    let mut used = 0;
    let mut keep = 0;
    for (at, c) in text.char_indices() {
        let columns = c.width().unwrap_or(0);
        if used + columns > width {
            return format!("{}…", &text[..keep]);
        }
        used += columns;
        if used < width {
            keep = at + c.len_utf8();
        }
    }
    text.to_string()
}

/// What an error says happened, with its cause, without place and hint.
pub fn message(error: &Error) -> String {
    match error.cause() {
        Some(cause) => format!("{}: {cause}", error.message()),
        None => error.message().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_scaled() {
        assert_eq!([0, 999, 1000, 1234567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 999, 1_410_759, 24_000_000_000].map(size), ["0 B", "999 B", "1.4 MB", "24.0 GB"]);
        assert_eq!(rate(12.34, "batches"), "12.3 batches/s");
        assert_eq!(rate(4_400_000.0, "tokens"), "4.4 M tokens/s");
        assert_eq!(
            [0.0, 0.1f32.into(), -1234.5678, 15.0, 120_000.0, 1.5e300, 2e-9, f64::NAN].map(number),
            ["0", "0.1", "-1234.57", "15", "120000", "1.5e300", "2e-9", "NaN"]
        );
        assert_eq!(counted(1, "record"), "1 record");
    }

    #[test]
    fn texts_are_escaped_and_truncated() {
        assert_eq!(escaped("a\n\u{1b}[31m\u{202e}b"), "a\\n\\u{1b}[31m\\u{202e}b");
        assert_eq!(of_bytes("é\\".as_bytes()), "é\\");
        assert_eq!(of_bytes(b"a\xe0\xb4b\xff"), "a\\xe0\\xb4b\\xff");
        assert_eq!(quoted(b"\"\\\n\xe0\xb4"), r#""\"\\\n\xe0\xb4""#);
        assert_eq!(quoted("\u{d4d}".as_bytes()), "\"\u{d4d}\"");
        assert_eq!(truncated("abcdef", 6), "abcdef");
        assert_eq!(truncated("abcdef", 5), "abcd…");
        assert_eq!(truncated("日本語", 4), "日…");
    }
}
