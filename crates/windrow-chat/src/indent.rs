//! The filter `indent`, by Jinja's rules: lines are those of Python, and a line feed at the end stays.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

use crate::{markup, methods};

/// What lines are indented by at most.
const MOST_WIDTH: usize = 4096;

/// The filter: `indent(width=4, first=False, blank=False)`; the width may be a text.
pub(crate) fn indent(
    value: &Value,
    width: Option<Value>,
    first: Option<Value>,
    blank: Option<Value>,
    options: Kwargs,
) -> Result<Value, Error> {
    let option = |given: Option<Value>, name: &str| match given {
        Some(given) => Ok(Some(given)),
        None => options.get::<Option<Value>>(name),
    };
    let (width, first, blank) = (option(width, "width")?, option(first, "first")?, option(blank, "blank")?);
    options.assert_all_used()?;
    let wrong = |what: String| Error::new(ErrorKind::InvalidOperation, what);
    let Some(text) = value.as_str().filter(|_| value.kind() == ValueKind::String) else {
        return Err(wrong(format!("indent: expected a string, found {}", value.kind())));
    };
    let by = match width.as_ref().map(|width| (width.as_str(), i64::try_from(width.clone()))) {
        None => " ".repeat(4),
        Some((Some(text), _)) => text.to_string(),
        Some((None, Ok(width))) if width <= MOST_WIDTH as i64 => {
            " ".repeat(usize::try_from(width).unwrap_or(0))
        }
        _ => return Err(wrong(format!("indent: the width is at most {MOST_WIDTH}"))),
    };
    let [first, blank] = [first, blank].map(|is| is.is_some_and(|is| is.is_true()));
    let text = format!("{text}\n");
    let mut out = String::new();
    for (at, line) in methods::lines(&text, false).into_iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        if if at == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&by);
        }
        out.push_str(line);
    }
    Ok(markup::as_safe_as(value, out))
}
