//! Strings that `safe` and `escape` give: Jinja escapes what is added to them, which is refused here.

use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind};

use crate::expression::ADDED;
use crate::written;

/// The filters that give such strings, and what `+` adds.
pub(crate) fn add(environment: &mut Environment<'_>) {
    environment.add_filter("safe", |value: &Value| Value::from_safe_string(written::text(value)));
    environment.add_filter("escape", escape);
    environment.add_filter("e", escape);
    environment.add_function(ADDED, added);
}

/// What is made of a value, which is as safe as the value was.
pub(crate) fn as_safe_as(value: &Value, made: String) -> Value {
    if value.is_safe() { Value::from_safe_string(made) } else { Value::from(made) }
}

/// Refuses what Jinja would do with escapes.
pub(crate) fn refused(what: &str) -> Error {
    let what = format!(
        "{what} of a string that `safe` or `escape` gave: Jinja escapes what is added; join with ~ instead"
    );
    Error::new(ErrorKind::InvalidOperation, what)
}

fn escape(value: &Value) -> Value {
    if value.is_safe() {
        return value.clone();
    }
    let mut out = String::new();
    for c in written::text(value).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    Value::from_safe_string(out)
}

fn added(value: Value) -> Result<Value, Error> {
    if value.is_safe() { Err(refused("+")) } else { Ok(value) }
}
