//! JSON text straight into Python objects, and windrow's own structs into plain dicts.
//!
//! As Python's `json.loads` reads it: whole numbers of any size, the last of repeated keys. Not a number, infinity and
//! half surrogate pairs are refused; nesting ends at 128.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone};

use crate::python::json_strings::{MOST_KEPT, Stop, Strings};
use crate::python::keys::Keys;

const MOST_DEEP: usize = 128;

/// What reading one text after the other uses again.
#[derive(Default)]
pub(crate) struct Workspace {
    keys: Keys,
    strings: Strings,
    // For strings with escapes.
    buffer: Vec<u8>,
}

/// Reads one JSON text.
pub(crate) fn parse<'py>(
    py: Python<'py>,
    text: &[u8],
    workspace: &mut Workspace,
) -> Result<Bound<'py, PyAny>, Stop> {
    let Workspace { keys, strings, buffer } = workspace;
    let mut reader = Reader { py, text, at: 0, depth: 0, keys, strings, buffer, stopped: None };
    let value = reader.value();
    reader.space();
    if reader.buffer.capacity() > MOST_KEPT {
        *reader.buffer = Vec::new();
    }
    match (value, reader.stopped) {
        (Some(value), _) if reader.at == text.len() => Ok(value),
        (None, Some(stop)) => Err(stop),
        _ => Err(Stop::Text(reader.at, "more text after the value")),
    }
}

/// A struct of windrow as plain dicts, lists, strings and numbers.
pub(crate) fn plain<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_vec(value).map_err(|e| PyValueError::new_err(e.to_string()))?;
    parse(py, &text, &mut Workspace::default()).map_err(|stop| match stop {
        Stop::Text(at, what) => PyValueError::new_err(format!("byte {at}: {what}")),
        Stop::Python(error) => error,
    })
}

struct Reader<'t, 'k, 'py> {
    py: Python<'py>,
    text: &'t [u8],
    at: usize,
    depth: usize,
    keys: &'k mut Keys,
    strings: &'k mut Strings,
    buffer: &'k mut Vec<u8>,
    // Why it stopped. Kept aside so that a value is one register wide on its way up.
    stopped: Option<Stop>,
}

impl<'t, 'py> Reader<'t, '_, 'py> {
    fn peek(&self) -> u8 {
        // No JSON token contains NUL, so it can stand for the end.
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    #[cold]
    fn stop<T>(&mut self, what: &'static str) -> Option<T> {
        self.stopped = Some(Stop::Text(self.at, what));
        None
    }

    // The value, or the end of reading.
    fn made<T>(&mut self, made: Result<T, Stop>) -> Option<T> {
        match made {
            Ok(made) => Some(made),
            Err(stop) => {
                self.stopped = Some(stop);
                None
            }
        }
    }

    fn value(&mut self) -> Option<Bound<'py, PyAny>> {
        self.space();
        match self.peek() {
            b'"' => {
                let (start, end, escaped) = self.string_span()?;
                let made = if escaped {
                    self.strings.make(self.py, self.buffer)
                } else {
                    self.strings.make(self.py, &self.text[start..end])
                };
                self.made(made).map(Bound::into_any)
            }
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true", PyBool::new(self.py, true).to_owned().into_any()),
            b'f' => self.word(b"false", PyBool::new(self.py, false).to_owned().into_any()),
            b'n' => self.word(b"null", PyNone::get(self.py).to_owned().into_any()),
            b'N' | b'I' => self.stop("NaN and Infinity are not JSON; expected a number or null"),
            0 if self.at >= self.text.len() => self.stop("the text ends before the value"),
            _ => self.stop("expected a value"),
        }
    }

    fn word(&mut self, word: &[u8], value: Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Some(value)
        } else {
            self.stop("expected true, false or null")
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Option<Bound<'py, PyAny>>) -> Option<Bound<'py, PyAny>> {
        if self.depth == MOST_DEEP {
            return self.stop("nested deeper than 128");
        }
        self.depth += 1;
        self.at += 1;
        let value = inner(self)?;
        self.depth -= 1;
        Some(value)
    }

    fn object(&mut self) -> Option<Bound<'py, PyAny>> {
        let dict = PyDict::new(self.py);
        self.space();
        if self.peek() == b'}' {
            self.at += 1;
            return Some(dict.into_any());
        }
        loop {
            self.space();
            if self.peek() != b'"' {
                return self.stop("expected a key in quotes");
            }
            let (start, end, escaped) = self.string_span()?;
            let key = if escaped {
                self.strings.make(self.py, self.buffer)
            } else {
                self.keys.get(self.py, &self.text[start..end], self.strings)
            };
            let key = self.made(key)?;
            self.space();
            if self.peek() != b':' {
                return self.stop("expected ':' after the key");
            }
            self.at += 1;
            let value = self.value()?;
            let set = dict.set_item(key, value);
            self.made(set.map_err(Stop::from))?;
            if !self.has_next(b'}')? {
                return Some(dict.into_any());
            }
        }
    }

    fn array(&mut self) -> Option<Bound<'py, PyAny>> {
        let list = PyList::empty(self.py);
        self.space();
        if self.peek() == b']' {
            self.at += 1;
            return Some(list.into_any());
        }
        loop {
            let value = self.value()?;
            let added = list.append(value);
            self.made(added.map_err(Stop::from))?;
            if !self.has_next(b']')? {
                return Some(list.into_any());
            }
        }
    }

    fn has_next(&mut self, end: u8) -> Option<bool> {
        self.space();
        match self.peek() {
            b',' => {
                self.at += 1;
                Some(true)
            }
            found if found == end => {
                self.at += 1;
                Some(false)
            }
            _ if end == b'}' => self.stop("expected ',' or '}'"),
            _ => self.stop("expected ',' or ']'"),
        }
    }

    // The string that starts here: its span without quotes; with escapes its bytes are in the buffer instead.
    fn string_span(&mut self) -> Option<(usize, usize, bool)> {
        let start = self.at + 1;
        let mut from = start;
        let mut escaped = false;
        loop {
            let end = from + plain_len(&self.text[from..]);
            match self.text.get(end) {
                Some(b'"') => {
                    if escaped {
                        self.buffer.extend_from_slice(&self.text[from..end]);
                    }
                    self.at = end + 1;
                    return Some((start, end, escaped));
                }
                Some(b'\\') => {
                    if !escaped {
                        self.buffer.clear();
                    }
                    escaped = true;
                    self.buffer.extend_from_slice(&self.text[from..end]);
                    self.at = end + 1;
                    self.escape()?;
                    from = self.at;
                }
                Some(_) => {
                    self.at = end;
                    return self.stop("a control character in a string");
                }
                None => return self.stop("a string without its closing quote"),
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let plain = match self.peek() {
            b'"' => b'"',
            b'\\' => b'\\',
            b'/' => b'/',
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.at += 1;
                let c = self.code_point()?;
                self.buffer.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Some(());
            }
            _ => return self.stop("no such escape"),
        };
        self.at += 1;
        self.buffer.push(plain);
        Some(())
    }

    fn code_point(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        let code = match first {
            0xD800..=0xDBFF if self.text[self.at..].starts_with(b"\\u") => {
                self.at += 2;
                match self.four_digits()? {
                    second @ 0xDC00..=0xDFFF => 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                    _ => return self.stop("half of a surrogate pair"),
                }
            }
            other => other,
        };
        match char::from_u32(code) {
            Some(c) => Some(c),
            None => self.stop("half of a surrogate pair"),
        }
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        let mut code = 0;
        for digit in digits {
            match char::from(*digit).to_digit(16) {
                Some(value) => code = code * 16 + value,
                None => return self.stop("expected four hexadecimal digits"),
            }
        }
        if digits.len() < 4 {
            return self.stop("expected four hexadecimal digits");
        }
        self.at += 4;
        Some(code)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Option<Bound<'py, PyAny>> {
        let start = self.at;
        self.at += usize::from(self.peek() == b'-');
        let leading_zero = self.peek() == b'0';
        match self.digits() {
            0 if self.peek() == b'I' => {
                return self.stop("NaN and Infinity are not JSON; expected a number or null");
            }
            0 => return self.stop("expected digits"),
            2.. if leading_zero => return self.stop("a number with a leading zero"),
            _ => {}
        }
        let mut whole = true;
        if self.peek() == b'.' {
            self.at += 1;
            whole = false;
            if self.digits() == 0 {
                return self.stop("expected digits after the point");
            }
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            whole = false;
            self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
            if self.digits() == 0 {
                return self.stop("expected digits in the exponent");
            }
        }
        // Only ASCII was let through.
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if whole && let Ok(number) = text.parse::<i64>() {
            let made = number.into_pyobject(self.py).map(|n| n.into_any()).map_err(PyErr::from);
            return self.made(made.map_err(Stop::from));
        }
        // Of the right form, so that Rust reads it; too large is infinite, of a whole number as well.
        let made = match text.parse::<f64>() {
            Ok(number) if number.is_finite() && whole => self.py.get_type::<PyInt>().call1((text,)),
            Ok(number) if number.is_finite() => return Some(PyFloat::new(self.py, number).into_any()),
            _ => {
                self.at = start;
                return self.stop("a number too large for a float");
            }
        };
        self.made(made.map_err(Stop::from))
    }
}

// How many bytes of a string come before a quote, a backslash, a control character or the end.
fn plain_len(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // The lowest set top bit is that of the first byte below `n`; higher ones may be wrong.
    let below = |x: u64, n: u64| x.wrapping_sub(ONES * n) & !x & TOPS;
    let is_end = |b: u8| b < 0x20 || b == b'"' || b == b'\\';
    let mut at = 0;
    // Long runs in strides that the compiler turns into vectors.
    while let Some(block) = text.get(at..at + 64) {
        if block.iter().fold(false, |found, &b| found | is_end(b)) {
            break;
        }
        at += 64;
    }
    for word in text[at..].chunks_exact(8) {
        // A chunk has eight bytes.
        let x = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let ends =
            below(x, 0x20) | below(x ^ (ONES * u64::from(b'"')), 1) | below(x ^ (ONES * u64::from(b'\\')), 1);
        if ends != 0 {
            return at + ends.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + text[at..].iter().take_while(|b| !is_end(**b)).count()
}
