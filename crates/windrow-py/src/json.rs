//! JSON text straight into Python objects, and windrow's own structs into plain dicts.
//!
//! As Python's `json.loads` reads it: whole numbers of any size, the last of repeated keys. Not a number, infinity and
//! half surrogate pairs are refused; nesting ends at 128.

use memchr::memchr2;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone, PyString};

const MOST_DEEP: usize = 128;
const N_KEYS: usize = 512;
const MOST_KEY_BYTES: usize = 40;

/// Why a text could not be read.
pub(crate) enum Stop {
    /// It is not JSON: at which byte, and what was found or expected.
    Text(usize, &'static str),
    /// Python could not make the object.
    Python(PyErr),
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Self {
        Stop::Python(error)
    }
}

/// Keys seen before: records repeat them, and a string made once has its hash.
pub(crate) struct Keys(Vec<Option<(Box<[u8]>, Py<PyString>)>>);

impl Default for Keys {
    fn default() -> Self {
        Keys((0..N_KEYS).map(|_| None).collect())
    }
}

impl Keys {
    fn get<'py>(&mut self, py: Python<'py>, key: &[u8]) -> Result<Bound<'py, PyString>, Stop> {
        if key.len() > MOST_KEY_BYTES {
            return string(py, key);
        }
        // FNV-1a: keys are a few bytes long.
        let hash = key.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
        let place = (hash >> 32) as usize % N_KEYS;
        if let Some((bytes, made)) = &self.0[place]
            && **bytes == *key
        {
            return Ok(made.bind(py).clone());
        }
        let made = string(py, key)?;
        // The one that is replaced dies after the cache is whole again: its end may run other code.
        let old = self.0[place].replace((key.into(), made.clone().unbind()));
        drop(old);
        Ok(made)
    }
}

/// Reads one JSON text.
pub(crate) fn parse<'py>(py: Python<'py>, text: &[u8], keys: &mut Keys) -> Result<Bound<'py, PyAny>, Stop> {
    let mut reader = Reader { py, text, at: 0, depth: 0, keys, buffer: Vec::new() };
    let value = reader.value()?;
    reader.space();
    match reader.at == text.len() {
        true => Ok(value),
        false => Err(Stop::Text(reader.at, "more text after the value")),
    }
}

/// A struct of windrow as plain dicts, lists, strings and numbers.
pub(crate) fn plain<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_vec(value).map_err(|e| PyValueError::new_err(e.to_string()))?;
    parse(py, &text, &mut Keys::default()).map_err(|stop| match stop {
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
    // For strings with escapes.
    buffer: Vec<u8>,
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

    fn stop<T>(&self, what: &'static str) -> Result<T, Stop> {
        Err(Stop::Text(self.at, what))
    }

    fn value(&mut self) -> Result<Bound<'py, PyAny>, Stop> {
        self.space();
        match self.peek() {
            b'"' => {
                let (start, end, escaped) = self.string_span()?;
                let made = match escaped {
                    false => string(self.py, &self.text[start..end])?,
                    true => string(self.py, &self.buffer)?,
                };
                Ok(made.into_any())
            }
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true", PyBool::new(self.py, true).to_owned().into_any()),
            b'f' => self.word(b"false", PyBool::new(self.py, false).to_owned().into_any()),
            b'n' => self.word(b"null", PyNone::get(self.py).to_owned().into_any()),
            b'N' | b'I' => self.stop("NaN and Infinity are no JSON; expected a number or null"),
            0 if self.at >= self.text.len() => self.stop("the text ends before the value"),
            _ => self.stop("expected a value"),
        }
    }

    fn word(&mut self, word: &[u8], value: Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Stop> {
        match self.text[self.at..].starts_with(word) {
            true => {
                self.at += word.len();
                Ok(value)
            }
            false => self.stop("expected true, false or null"),
        }
    }

    fn nested(
        &mut self,
        inner: fn(&mut Self) -> Result<Bound<'py, PyAny>, Stop>,
    ) -> Result<Bound<'py, PyAny>, Stop> {
        if self.depth == MOST_DEEP {
            return self.stop("nested deeper than 128");
        }
        self.depth += 1;
        self.at += 1;
        let value = inner(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Bound<'py, PyAny>, Stop> {
        let dict = PyDict::new(self.py);
        self.space();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(dict.into_any());
        }
        loop {
            self.space();
            if self.peek() != b'"' {
                return self.stop("expected a key in quotes");
            }
            let (start, end, escaped) = self.string_span()?;
            let key = match escaped {
                false => self.keys.get(self.py, &self.text[start..end])?,
                true => string(self.py, &self.buffer)?,
            };
            self.space();
            if self.peek() != b':' {
                return self.stop("expected ':' after the key");
            }
            self.at += 1;
            let value = self.value()?;
            dict.set_item(key, value)?;
            if !self.goes_on(b'}')? {
                return Ok(dict.into_any());
            }
        }
    }

    fn array(&mut self) -> Result<Bound<'py, PyAny>, Stop> {
        let list = PyList::empty(self.py);
        self.space();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(list.into_any());
        }
        loop {
            let value = self.value()?;
            list.append(value)?;
            if !self.goes_on(b']')? {
                return Ok(list.into_any());
            }
        }
    }

    fn goes_on(&mut self, end: u8) -> Result<bool, Stop> {
        self.space();
        match self.peek() {
            b',' => {
                self.at += 1;
                Ok(true)
            }
            found if found == end => {
                self.at += 1;
                Ok(false)
            }
            _ if end == b'}' => self.stop("expected ',' or '}'"),
            _ => self.stop("expected ',' or ']'"),
        }
    }

    // The string that starts here: its span without quotes; with escapes its bytes stand in the buffer instead.
    fn string_span(&mut self) -> Result<(usize, usize, bool), Stop> {
        let start = self.at + 1;
        let mut from = start;
        let mut escaped = false;
        self.buffer.clear();
        loop {
            let Some(found) = memchr2(b'"', b'\\', &self.text[from..]) else {
                return self.stop("a string without its closing quote");
            };
            let end = from + found;
            if let Some(control) = self.text[from..end].iter().position(|b| *b < 0x20) {
                self.at = from + control;
                return self.stop("a control character in a string");
            }
            if self.text[end] == b'"' {
                if escaped {
                    self.buffer.extend_from_slice(&self.text[from..end]);
                }
                self.at = end + 1;
                return Ok((start, end, escaped));
            }
            self.buffer.extend_from_slice(&self.text[from..end]);
            escaped = true;
            self.at = end + 1;
            self.escape()?;
            from = self.at;
        }
    }

    fn escape(&mut self) -> Result<(), Stop> {
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
                return Ok(());
            }
            _ => return self.stop("no such escape"),
        };
        self.at += 1;
        self.buffer.push(plain);
        Ok(())
    }

    fn code_point(&mut self) -> Result<char, Stop> {
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
            Some(c) => Ok(c),
            None => self.stop("half of a surrogate pair"),
        }
    }

    fn four_digits(&mut self) -> Result<u32, Stop> {
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
        Ok(code)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Bound<'py, PyAny>, Stop> {
        let start = self.at;
        self.at += usize::from(self.peek() == b'-');
        let leading_zero = self.peek() == b'0';
        match self.digits() {
            0 if self.peek() == b'I' => return self.stop("NaN and Infinity are no JSON; expected a number or null"),
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
        if !whole {
            // Of the right form, so that Rust reads it; too large is infinite.
            return match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(PyFloat::new(self.py, number).into_any()),
                _ => Err(Stop::Text(start, "a number too large for a float")),
            };
        }
        match text.parse::<i64>() {
            Ok(number) => Ok(number.into_pyobject(self.py).map_err(PyErr::from)?.into_any()),
            Err(_) => Ok(self.py.get_type::<PyInt>().call1((text,))?),
        }
    }
}

fn string<'py>(py: Python<'py>, bytes: &[u8]) -> Result<Bound<'py, PyString>, Stop> {
    let Ok(size) = ffi::Py_ssize_t::try_from(bytes.len()) else {
        return Err(Stop::Text(0, "a string too large for Python"));
    };
    // SAFETY: the pointer leads to `size` bytes; Python checks that they are UTF-8.
    unsafe {
        let made = ffi::PyUnicode_FromStringAndSize(bytes.as_ptr().cast(), size);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}
