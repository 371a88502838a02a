//! JSON as values of templates: whole numbers with all their digits, as Python reads them.

use std::collections::HashMap;

use minijinja::value::Value as Jinja;
use serde_json::Value;
use serde_json::value::RawValue;
use windrow_core::{Error, Result};

/// Digits of the longest number that is below 2^63 whatever they are.
const SAFE_DIGITS: usize = 18;

/// The value that a JSON text writes.
///
/// # Errors
/// `Corrupt` for what is not JSON, and for a whole number beyond 128 bits, which templates cannot hold.
pub(crate) fn value(text: &str) -> Result<Jinja> {
    let parsed = serde_json::from_str(text).map_err(|e| not_json(text, e))?;
    if loses_digits(text) { exactly(parsed, text) } else { Ok(plain(parsed)) }
}

fn not_json(text: &str, cause: serde_json::Error) -> Error {
    let error = Error::corrupt("the value is not JSON").caused_by(cause);
    if text.contains("NaN") || text.contains("Infinity") {
        error.hint("JSON has no NaN or Infinity: write null instead")
    } else {
        error
    }
}

// Whether the parser may have made a float of a whole number: of one beyond 64 bits, and of -0.
fn loses_digits(text: &str) -> bool {
    let (mut run, mut before) = (0, 0);
    text.bytes().any(|byte| {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        let is_minus_0 = byte == b'0' && before == b'-';
        before = byte;
        run > SAFE_DIGITS || is_minus_0
    })
}

fn plain(value: Value) -> Jinja {
    match value {
        Value::Null => Jinja::from(()),
        Value::Bool(is) => Jinja::from(is),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Jinja::from(number),
            (None, Some(number)) => Jinja::from(number),
            (None, None) => Jinja::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Jinja::from(text),
        Value::Array(values) => values.into_iter().map(plain).collect(),
        Value::Object(fields) => {
            Jinja::from_pairs(fields.into_iter().map(|(key, value)| (key, plain(value))))
        }
    }
}

// The value says the order of keys, of which the last of equal ones counts, and the text has the digits.
fn exactly(value: Value, text: &str) -> Result<Jinja> {
    match value {
        Value::Array(values) => {
            let texts: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| not_json(text, e))?;
            let items = values.into_iter().zip(texts).map(|(value, text)| exactly(value, text.get()));
            items.collect::<Result<Vec<_>>>().map(Jinja::from)
        }
        Value::Object(fields) => {
            let texts: HashMap<String, &RawValue> =
                serde_json::from_str(text).map_err(|e| not_json(text, e))?;
            let pair = |(key, value): (String, Value)| {
                let text = texts.get(&key).map_or("null", |raw| raw.get());
                exactly(value, text).map(|value| (key, value))
            };
            fields.into_iter().map(pair).collect::<Result<Vec<_>>>().map(Jinja::from_pairs)
        }
        Value::Number(_) if !text.contains(['.', 'e', 'E']) => whole(text.trim_ascii()),
        other => Ok(plain(other)),
    }
}

fn whole(digits: &str) -> Result<Jinja> {
    if let Ok(number) = digits.parse::<i64>() {
        return Ok(Jinja::from(number));
    }
    match (digits.parse::<i128>(), digits.parse::<u128>()) {
        (Ok(number), _) => Ok(Jinja::from(number)),
        (_, Ok(number)) => Ok(Jinja::from(number)),
        _ => {
            let first = &digits[..digits.len().min(12)];
            Err(Error::corrupt(format!(
                "the whole number {first}… of {} digits is beyond 128 bits",
                digits.len()
            ))
            .hint("write it as a string"))
        }
    }
}
