//! Brace ranges in names: `shard_{000..127}.tar`, `{a,b}-{1..3}.tar`, as shells and Megatron-Energon expand them.

use crate::error::{Error, Result};

/// Longer patterns are refused.
const MOST_LENGTH: usize = 4096;
/// So are patterns with more groups.
const MOST_GROUPS: usize = 32;

/// Hands every name that a pattern stands for to `each`, in order; its error ends the work, however many more there are.
///
/// # Errors
/// `Corrupt` for a pattern that is too long; what `each` says.
pub fn expand(pattern: &str, each: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    check(pattern)?;
    step(String::new(), pattern, each)
}

/// That a pattern is of a length and depth that is expanded.
///
/// # Errors
/// `Corrupt`.
pub fn check(pattern: &str) -> Result<()> {
    if pattern.len() <= MOST_LENGTH && pattern.matches('{').count() <= MOST_GROUPS {
        return Ok(());
    }
    let shown: String = pattern.chars().take(40).collect();
    Err(Error::corrupt(format!(
        "the name {shown:?}…: expected at most {MOST_LENGTH} bytes and {MOST_GROUPS} braces"
    )))
}

/// How many names a pattern that was checked stands for, at most 2^64 - 1, without making them.
pub fn count(pattern: &str) -> u64 {
    let Some((_, inner, after)) = group(pattern) else { return 1 };
    let parts = parts(inner);
    let of_inner = match Range::of(inner) {
        _ if parts.len() > 1 => parts.iter().map(|part| count(part)).fold(0, u64::saturating_add),
        Some(range) => range.len(),
        None => count(inner),
    };
    of_inner.saturating_mul(count(after))
}

/// What is between braces like a range, `{0..x}`, and is not one.
pub fn not_a_range(pattern: &str) -> Option<&str> {
    let (_, inner, after) = group(pattern)?;
    let parts = parts(inner);
    let is_meant = parts.len() == 1 && inner.contains("..") && !inner.contains(['{', '}']);
    if is_meant && Range::of(inner).is_none() {
        Some(inner)
    } else {
        parts.into_iter().find_map(not_a_range).or_else(|| not_a_range(after))
    }
}

fn step(done: String, rest: &str, each: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let Some((before, inner, after)) = group(rest) else { return each(&(done + rest)) };
    let done = done + before;
    let parts = parts(inner);
    if parts.len() > 1 {
        return parts.iter().try_for_each(|part| step(done.clone(), &format!("{part}{after}"), each));
    }
    match Range::of(inner) {
        Some(range) => range.names().try_for_each(|name| step(format!("{done}{name}"), after, each)),
        // Braces that are only characters.
        None => step(format!("{done}{{"), &format!("{inner}}}{after}"), each),
    }
}

// What is before, in and behind the first pair of braces.
fn group(text: &str) -> Option<(&str, &str, &str)> {
    for (start, _) in text.match_indices('{') {
        let mut depth = 0usize;
        for (at, byte) in text.bytes().enumerate().skip(start) {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 1 => return Some((&text[..start], &text[start + 1..at], &text[at + 1..])),
                b'}' => depth -= 1,
                _ => {}
            }
        }
    }
    None
}

// The parts between commas that are in no inner braces.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found
}

/// `first..last` or `first..last..step`.
struct Range {
    first: i64,
    last: i64,
    step: u64,
    /// Digits of a number, filled up with zeros; of letters nothing.
    width: Option<usize>,
}

impl Range {
    fn of(text: &str) -> Option<Range> {
        let parts: Vec<&str> = text.split("..").collect();
        let (first, last, step) = match parts.as_slice() {
            [first, last] => (*first, *last, 1),
            [first, last, step] => (*first, *last, step.parse::<i64>().ok()?.unsigned_abs().max(1)),
            _ => return None,
        };
        let letter = |text: &str| match text.as_bytes() {
            [letter] if letter.is_ascii_alphabetic() => Some(i64::from(*letter)),
            _ => None,
        };
        if let (Some(first), Some(last)) = (letter(first), letter(last)) {
            return Some(Range { first, last, step, width: None });
        }
        let is_padded = |text: &str| {
            let digits = text.trim_start_matches('-');
            digits.len() > 1 && digits.starts_with('0')
        };
        let width = if is_padded(first) || is_padded(last) { first.len().max(last.len()) } else { 0 };
        Some(Range { first: first.parse().ok()?, last: last.parse().ok()?, step, width: Some(width) })
    }

    fn len(&self) -> u64 {
        (self.first.abs_diff(self.last) / self.step).saturating_add(1)
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        let last = self.first.abs_diff(self.last) / self.step;
        (0..=last).map(|number| {
            // Between the first and the last.
            let by = number.wrapping_mul(self.step) as i64;
            let value = if self.first <= self.last {
                self.first.wrapping_add(by)
            } else {
                self.first.wrapping_sub(by)
            };
            match self.width {
                Some(width) => format!("{value:0width$}"),
                None => u8::try_from(value)
                    .map_or_else(|_| String::new(), |letter| char::from(letter).to_string()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: &[&str]) {
        let mut found = Vec::new();
        expand(pattern, &mut |name| {
            found.push(name.to_string());
            Ok(())
        })
        .unwrap();
        assert_eq!(found, expected, "{pattern}");
        assert_eq!(count(pattern), expected.len() as u64, "{pattern}");
    }

    #[test]
    fn ranges_and_lists_expand_in_order() {
        check("a.tar", &["a.tar"]);
        check("s_{008..010}.tar", &["s_008.tar", "s_009.tar", "s_010.tar"]);
        check("{0..4..2}", &["0", "2", "4"]);
        check("{2..0}", &["2", "1", "0"]);
        check("{a..c}x", &["ax", "bx", "cx"]);
        check("{a,b}-{1..2}", &["a-1", "a-2", "b-1", "b-2"]);
        check("{a,b{1,2}}", &["a", "b1", "b2"]);
        check("{a}{1,2}{", &["{a}1{", "{a}2{"]);
        check("x}{}", &["x}{}"]);
    }

    #[test]
    fn an_error_ends_a_range_of_any_length() {
        let mut count = 0;
        let expanded = expand("{0..9223372036854775807}{0..9223372036854775807}", &mut |_| {
            count += 1;
            if count < 9 { Ok(()) } else { Err(Error::corrupt("no more")) }
        });
        assert!(expanded.is_err() && count == 9);
        assert!(expand(&"{a,b}".repeat(33), &mut |_| Ok(())).is_err());
    }

    #[test]
    fn names_are_counted_without_being_made() {
        assert_eq!(count("{0..9223372036854775807}{0..9223372036854775807}"), u64::MAX);
        assert_eq!(count("{000..127}-{a,b{1..3}}.tar"), 128 * 4);
    }

    #[test]
    fn a_range_that_is_none_is_found() {
        for (pattern, found) in [
            ("x-{0..x}.tar", Some("0..x")),
            ("{a,b}-{1..}", Some("1..")),
            ("{a,{0..1.5}}", Some("0..1.5")),
            ("{0..3}-{a..c}", None),
            ("{a}", None),
            ("a..b", None),
        ] {
            assert_eq!(not_a_range(pattern), found, "{pattern}");
        }
    }
}
