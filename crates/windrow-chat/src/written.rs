//! Values as Python writes them: `str`, and `repr` of what is in lists and dicts.

use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error};

use crate::expression::TEXT;
use crate::{dumps, engine};

/// The filters of texts, of which other values are the text, and what `~` joins.
pub(crate) fn add(environment: &mut Environment<'_>) {
    environment.add_function(TEXT, |value: &Value| text(value));
    environment.add_filter("string", string);
    engine::before(environment, &["capitalize", "lower", "replace", "upper"], string);
}

/// What `str` gives.
pub(crate) fn text(value: &Value) -> String {
    match value.kind() {
        ValueKind::String => value.to_string(),
        ValueKind::Undefined => String::new(),
        _ => repr(value),
    }
}

// A string stays as safe as it is.
fn string(value: Value) -> Result<Value, Error> {
    Ok(if value.kind() == ValueKind::String { value } else { Value::from(text(&value)) })
}

fn repr(value: &Value) -> String {
    let all = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(", ");
    match (value.kind(), value.try_iter()) {
        (ValueKind::Number, _) if !value.is_integer() => {
            f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float)
        }
        (ValueKind::Undefined, _) => "Undefined".to_string(),
        (ValueKind::String, _) => quoted(value.as_str().unwrap_or_default()),
        (ValueKind::Seq | ValueKind::Iterable, Ok(items)) => {
            let count = value.len();
            let items = all(&mut items.map(|item| repr(&item)));
            match (value.is_tuple(), count) {
                (true, Some(1)) => format!("({items},)"),
                (true, _) => format!("({items})"),
                (false, _) => format!("[{items}]"),
            }
        }
        (ValueKind::Map, Ok(keys)) => {
            let pair =
                |key: Value| format!("{}: {}", repr(&key), repr(&value.get_item(&key).unwrap_or_default()));
            format!("{{{}}}", all(&mut keys.map(pair)))
        }
        _ => value.to_string(),
    }
}

// As `json.dumps`, but for what is no number.
fn float(value: f64) -> String {
    if value.is_finite() {
        dumps::float(value)
    } else {
        dumps::float(value).replace("Infinity", "inf").replace("NaN", "nan")
    }
}

fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        let written = match (c, u32::from(c)) {
            ('\n', _) => out.write_str("\\n"),
            ('\r', _) => out.write_str("\\r"),
            ('\t', _) => out.write_str("\\t"),
            ('\\', _) => out.write_str("\\\\"),
            (c, _) if c == quote => write!(out, "\\{c}"),
            (c, _) if is_printable(c) => out.write_char(c),
            (_, code @ ..=0xff) => write!(out, "\\x{code:02x}"),
            (_, code @ ..=0xffff) => write!(out, "\\u{code:04x}"),
            (_, code) => write!(out, "\\U{code:08x}"),
        };
        // Writing to a string does not fail.
        debug_assert!(written.is_ok());
    }
    out.push(quote);
    out
}

// The standard library escapes in strings what Python calls not printable, and at their beginning marks too.
fn is_printable(c: char) -> bool {
    let mut bytes = [b'a', 0, 0, 0, 0];
    let size = 1 + c.encode_utf8(&mut bytes[1..]).len();
    let text = std::str::from_utf8(&bytes[..size]).unwrap_or_default();
    matches!(c, '\'' | '"') || text.escape_debug().eq(text.chars())
}
