//! Strings of JSON as Python's, and why a text could not be read.

use std::ffi::c_int;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Larger memory is not kept for the next text.
pub(crate) const MOST_KEPT: usize = 1 << 20;

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

/// Makes Python's strings.
#[derive(Default)]
pub(crate) struct Strings {
    units: Vec<u16>,
}

impl Strings {
    /// UTF-8 bytes as a Python string.
    pub(crate) fn make<'py>(&mut self, py: Python<'py>, bytes: &[u8]) -> Result<Bound<'py, PyString>, Stop> {
        let too_large = |_| Stop::Text(0, "a string too large for Python");
        // Python reads ASCII at the speed of memory, but other text far faster from UTF-16 than from UTF-8.
        if bytes.is_ascii() {
            let size = ffi::Py_ssize_t::try_from(bytes.len()).map_err(too_large)?;
            // SAFETY: the pointer leads to `size` bytes; Python checks that they are UTF-8.
            return unsafe {
                let made = ffi::PyUnicode_FromStringAndSize(bytes.as_ptr().cast(), size);
                Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
            };
        }
        // One unit more than there are bytes is what the conversion asks for.
        if self.units.len() <= bytes.len() {
            self.units.resize(bytes.len() + 1, 0);
        }
        let Some(n) = encoding_rs::mem::convert_utf8_to_utf16_without_replacement(bytes, &mut self.units)
        else {
            return Err(Stop::Text(0, "a string that is not UTF-8"));
        };
        let size = ffi::Py_ssize_t::try_from(2 * n).map_err(too_large)?;
        // Said outright, so that a byte order mark at the beginning is text.
        let mut order: c_int = if cfg!(target_endian = "little") { -1 } else { 1 };
        // SAFETY: the pointer leads to `size` bytes, all written; Python reads the order and may write it.
        let made = unsafe {
            let made = ffi::PyUnicode_DecodeUTF16(self.units.as_ptr().cast(), size, ptr::null(), &mut order);
            Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked()
        };
        if self.units.len() > MOST_KEPT {
            self.units = Vec::new();
        }
        Ok(made)
    }
}
