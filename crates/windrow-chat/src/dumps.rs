//! JSON as Python's `json.dumps` writes it, which is what `tojson` gives in chat templates.

use std::fmt::Write;

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// The filter: `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub(crate) fn tojson(value: &Value, rest: Rest<Value>, options: Kwargs) -> Result<String, Error> {
    let mut rest = rest.0.into_iter();
    let mut option = |name: &str| -> Result<Option<Value>, Error> {
        match rest.next() {
            Some(value) => Ok(Some(value)),
            None => options.get::<Option<Value>>(name),
        }
    };
    let ascii = option("ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = option("indent")?.filter(|value| !value.is_none());
    let separators = option("separators")?.filter(|value| !value.is_none());
    let sorted = option("sort_keys")?.is_some_and(|value| value.is_true());
    options.assert_all_used()?;
    let indent = match indent {
        None => None,
        Some(value) => Some(match (value.as_str(), value.as_usize()) {
            (Some(text), _) => text.to_string(),
            (None, Some(n)) if n <= MOST_INDENT => " ".repeat(n),
            _ => return Err(wrong(format!("tojson: indent is {value}, expected 0 to {MOST_INDENT}"))),
        }),
    };
    let mut dumps = Dumps { ascii, sorted, item: ", ".to_string(), key: ": ".to_string(), indent };
    if dumps.indent.is_some() {
        dumps.item = ",".to_string();
    }
    if let Some(pair) = separators {
        let pair: Vec<Value> = pair.try_iter()?.collect();
        let [item, key] = pair.as_slice() else {
            return Err(wrong("tojson: separators are two strings".to_string()));
        };
        (dumps.item, dumps.key) = (item.to_string(), key.to_string());
    }
    let mut out = String::new();
    dumps.write(value, 0, &mut out)?;
    Ok(out)
}

const MOST_INDENT: usize = 64;
/// What a value may be nested in: more is no data of a conversation.
const MOST_DEPTH: usize = 256;

struct Dumps {
    ascii: bool,
    sorted: bool,
    item: String,
    key: String,
    indent: Option<String>,
}

impl Dumps {
    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        if depth > MOST_DEPTH {
            return Err(wrong(format!("tojson: nested more than {MOST_DEPTH} deep")));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
            ValueKind::Number => out.push_str(&f64::try_from(value.clone()).map(float)?),
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), out),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.all('[', ']', &items, depth, out, |item, out| self.write(item, depth + 1, out))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sorted {
                    keys.sort();
                }
                self.all('{', '}', &keys, depth, out, |key, out| {
                    match key.kind() {
                        ValueKind::String => self.string(key.as_str().unwrap_or_default(), out),
                        ValueKind::Number | ValueKind::Bool | ValueKind::None => {
                            out.push('"');
                            self.write(key, depth + 1, out)?;
                            out.push('"');
                        }
                        other => return Err(wrong(format!("tojson: a key is a string, found {other}"))),
                    }
                    out.push_str(&self.key);
                    self.write(&value.get_item(key)?, depth + 1, out)
                })?;
            }
            other => return Err(wrong(format!("tojson: {other} cannot be written as JSON"))),
        }
        Ok(())
    }

    fn all(
        &self,
        open: char,
        close: char,
        items: &[Value],
        depth: usize,
        out: &mut String,
        mut each: impl FnMut(&Value, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let line = |depth: usize, out: &mut String| {
            if let Some(indent) = &self.indent {
                out.push('\n');
                (0..depth).for_each(|_| out.push_str(indent));
            }
        };
        out.push(open);
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push_str(&self.item);
            }
            line(depth + 1, out);
            each(item, out)?;
        }
        if !items.is_empty() {
            line(depth, out);
        }
        out.push(close);
        Ok(())
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ascii && !c.is_ascii()) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        _ = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// A float as Python writes it: the shortest digits, with an exponent below 1e-4 and from 1e16 on.
pub(crate) fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = value.to_string();
    if plain.contains('.') { plain } else { format!("{plain}.0") }
}

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}
