//! Strings in the code of templates: the escapes of Python, which are more than the engine's.

use std::borrow::Cow;

/// A string with its quotes, written with escapes that the engine reads as Python reads those that are there.
///
/// # Errors
/// What escape is wrong, or not a character.
pub(crate) fn rewritten(literal: &str) -> Result<Cow<'_, str>, String> {
    if !literal.contains('\\') {
        return Ok(Cow::Borrowed(literal));
    }
    let (mut out, mut n_lines, mut rest) = (String::with_capacity(literal.len()), 0, literal);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else { break };
        let (size, code) = match c {
            '\n' => {
                n_lines += 1;
                (1, None)
            }
            '\\' | '\'' | '"' => (1, Some(u32::from(c))),
            'a' => (1, Some(7)),
            'b' => (1, Some(8)),
            'f' => (1, Some(0xc)),
            'n' => (1, Some(0xa)),
            'r' => (1, Some(0xd)),
            't' => (1, Some(9)),
            'v' => (1, Some(0xb)),
            '0'..='7' => {
                number(rest, 8, 0, rest.bytes().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count())?
            }
            'x' => number(rest, 16, 1, 2)?,
            'u' => number(rest, 16, 1, 4)?,
            'U' => number(rest, 16, 1, 8)?,
            'N' => return Err("names a character in a string with \\N, which is not supported".to_string()),
            // An escape that Python does not know is a backslash, but not always before other letters than those of ASCII.
            c if c.is_ascii() => (0, Some(u32::from('\\'))),
            c => return Err(format!("has a backslash before {c:?} in a string, which is not supported")),
        };
        if let Some(code) = code {
            let c = char::from_u32(code)
                .ok_or_else(|| format!("has half of a surrogate pair in a string: {code:x}"))?;
            push(c, &mut out);
        }
        rest = &rest[size..];
    }
    out.push_str(rest);
    // The number of lines stays the same, for the places of errors.
    out.extend(std::iter::repeat_n('\n', n_lines));
    Ok(Cow::Owned(out))
}

// The number of `count` digits at `start`, and how many bytes it has from the beginning.
fn number(text: &str, radix: u32, start: usize, count: usize) -> Result<(usize, Option<u32>), String> {
    let digits = text.get(start..start + count).filter(|digits| digits.chars().all(|c| c.is_digit(radix)));
    let code = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok());
    let wrong = || {
        format!("has a wrong escape in a string: {:?}", text.chars().take(start + count).collect::<String>())
    };
    code.map(|code| (start + count, Some(code))).ok_or_else(wrong)
}

fn push(c: char, out: &mut String) {
    match c {
        '\\' | '\'' | '"' => out.extend(['\\', c]),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_python() {
        for (literal, want) in [
            (r"'\U0001f600\u00e9\x41\101\1z'", "'😀éAA\u{1}z'"),
            (r"'\a\v\b\n\r'", "'\u{7}\u{b}\u{8}\\n\\r'"),
            (r#"'\'\"\\'"#, r#"'\'\"\\'"#),
            (r"'\/ \d'", r"'\\/ \\d'"),
            ("'a\\\nb\\\nc'", "'abc'\n\n"),
            (r"'\777'", "'ǿ'"),
            ("'é'", "'é'"),
        ] {
            assert_eq!(rewritten(literal).unwrap(), want, "{literal}");
        }
        for literal in [r"'\ud83d\ude00'", r"'\x4'", r"'\u12'", r"'\UFFFFFFFF'", r"'\N{DASH}'", r"'\é'"] {
            assert!(rewritten(literal).is_err(), "{literal}");
        }
    }
}
