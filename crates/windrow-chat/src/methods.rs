//! Strings as Python has them, where the engine's own differ, and methods that it lacks.

use minijinja::value::{Tuple, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::space::is_space;
use crate::{case, markup, written};

/// Methods of values that are not the engine's.
pub(crate) fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let Some(text) = value.as_str().filter(|_| value.kind() == ValueKind::String) else {
        return unknown_method_callback(state, value, name, args);
    };
    if value.is_safe() && !is_question(name) {
        return Err(markup::refused(&format!("the method {name}")));
    }
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            let (start, end) = (name != "rstrip", name != "lstrip");
            Ok(Value::from(stripped(text, chars, start, end)))
        }
        "split" | "rsplit" => {
            let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
            let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
            let parts = match (separator, name) {
                (Some(""), _) => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
                (Some(separator), "split") => {
                    text.splitn(most.saturating_add(1), separator).map(Value::from).collect::<Vec<_>>()
                }
                (Some(separator), _) => {
                    let mut parts: Vec<_> =
                        text.rsplitn(most.saturating_add(1), separator).map(Value::from).collect();
                    parts.reverse();
                    parts
                }
                (None, "split") => words(text, most),
                (None, _) if most == usize::MAX => words(text, most),
                (None, _) => return Err(Error::new(ErrorKind::InvalidOperation, "rsplit needs a separator")),
            };
            Ok(Value::from(parts))
        }
        "splitlines" => {
            let (keep,): (Option<bool>,) = from_args(args)?;
            Ok(lines(text, keep.unwrap_or(false)).into_iter().map(Value::from).collect())
        }
        "isspace" => {
            let () = from_args(args)?;
            Ok(Value::from(!text.is_empty() && text.chars().all(is_space)))
        }
        "removeprefix" | "removesuffix" => {
            let (part,): (&str,) = from_args(args)?;
            let rest = if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            Ok(Value::from(rest.unwrap_or(text)))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let parts = match name {
                "partition" => text
                    .split_once(separator)
                    .map_or([text, "", ""], |(before, after)| [before, separator, after]),
                _ => text
                    .rsplit_once(separator)
                    .map_or(["", "", text], |(before, after)| [before, separator, after]),
            };
            Ok(Value::from(Tuple::from(parts.map(Value::from))))
        }
        "title" => {
            let () = from_args(args)?;
            case::title(state, text).map(Value::from)
        }
        "join" => {
            let (items,): (&Value,) = from_args(args)?;
            joined(text, items).map(Value::from)
        }
        _ => unknown_method_callback(state, value, name, args),
    }
}

// Whether a method says something of a text, and does not give another text.
fn is_question(name: &str) -> bool {
    name.starts_with("is") || matches!(name, "startswith" | "endswith" | "find" | "rfind" | "count")
}

fn joined(between: &str, items: &Value) -> Result<String, Error> {
    let wrong = |what: String| Error::new(ErrorKind::InvalidOperation, format!("join: {what}"));
    if items.is_none() {
        return Err(wrong("none is not iterable".to_string()));
    }
    let text = |item: Value| match item.as_str() {
        Some(text) => Ok(text.to_string()),
        None => Err(wrong(format!("expected strings, found {}", item.kind()))),
    };
    Ok(items.try_iter()?.map(text).collect::<Result<Vec<_>, _>>()?.join(between))
}

/// The filter `trim`: of what is not a string, of its text.
pub(crate) fn trim(value: &Value, chars: Option<&str>) -> Value {
    markup::as_safe_as(value, stripped(&written::text(value), chars, true, true).to_string())
}

/// The test `number`: true and false are numbers in Python.
pub(crate) fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}

fn stripped<'t>(text: &'t str, chars: Option<&str>, start: bool, end: bool) -> &'t str {
    let is_off = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if start { text.trim_start_matches(is_off) } else { text };
    if end { text.trim_end_matches(is_off) } else { text }
}

fn words(text: &str, most: usize) -> Vec<Value> {
    let (mut parts, mut rest) = (Vec::new(), text.trim_start_matches(is_space));
    while !rest.is_empty() {
        let end = if parts.len() < most { rest.find(is_space) } else { None };
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        parts.push(Value::from(word));
        rest = behind.trim_start_matches(is_space);
    }
    parts
}

/// Lines as `splitlines` gives them.
pub(crate) fn lines(text: &str, keep: bool) -> Vec<&str> {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let at = rest.find(is_break).unwrap_or(rest.len());
        let size = match rest[at..].chars().next() {
            Some('\r') if rest[at + 1..].starts_with('\n') => 2,
            other => other.map_or(0, char::len_utf8),
        };
        parts.push(&rest[..if keep { at + size } else { at }]);
        rest = &rest[at + size..];
    }
    parts
}
