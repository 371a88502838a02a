//! Titles: the method `str.title`, and Jinja's filter, whose words are others.

use minijinja::value::{StringInput, Value};
use minijinja::{Error, State, filters};

use crate::space::is_space;
use crate::written;

/// The filter `title`: the first letter of each word is upper, the rest lower; white space, `-` and some brackets end a word.
pub(crate) fn title_words(value: &Value) -> String {
    let is_between = |c: char| is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    let text = written::text(value);
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.as_str());
    while let Some(first) = rest.chars().next() {
        let end =
            if is_between(first) { first.len_utf8() } else { rest.find(is_between).unwrap_or(rest.len()) };
        out.extend(first.to_uppercase());
        out.push_str(&rest[first.len_utf8()..end].to_lowercase());
        rest = &rest[end..];
    }
    out
}

/// The method `title`: letters behind a digit or an apostrophe are upper too.
pub(crate) fn title(state: &State, text: &str) -> Result<String, Error> {
    let lower = text.to_lowercase();
    let (mut out, mut is_inside, mut at) = (String::with_capacity(text.len()), false, 0);
    for c in text.chars() {
        // The lower text as a whole knows which sigma is a word's last.
        let size: usize = c.to_lowercase().map(char::len_utf8).sum();
        if is_inside {
            out.push_str(&lower[at..at + size])
        } else {
            out.push_str(&upper(state, c)?)
        }
        at += size;
        is_inside = is_cased(c);
    }
    Ok(out)
}

// The upper letter for the beginning of a word: Dž rather than DŽ.
fn upper(state: &State, c: char) -> Result<String, Error> {
    let text = Value::from(c.to_string());
    Ok(filters::capitalize(StringInput::new(state, &text)?).to_string())
}

fn is_cased(c: char) -> bool {
    // Those that are upper in their first half only are neither.
    const TITLE: [char; 7] = ['ǅ', 'ǈ', 'ǋ', 'ǲ', 'ᾼ', 'ῌ', 'ῼ'];
    let is_greek_title =
        matches!(c, '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}' | '\u{1fa8}'..='\u{1faf}');
    c.is_lowercase() || c.is_uppercase() || is_greek_title || TITLE.contains(&c)
}
