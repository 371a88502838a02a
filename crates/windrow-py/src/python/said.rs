//! Objects as text. Formatting one with `{}` looks for Ctrl-C and leaves out what was raised; this does not.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// What `str` gives.
pub(crate) fn said(of: &Bound<'_, PyAny>) -> PyResult<String> {
    of.str().map(|text| text_of(&text))
}

/// What `repr` gives.
pub(crate) fn shown(of: &Bound<'_, PyAny>) -> PyResult<String> {
    of.repr().map(|text| text_of(&text))
}

/// The name of an object's class.
pub(crate) fn class_of(of: &Bound<'_, PyAny>) -> PyResult<String> {
    of.get_type().name().map(|name| text_of(&name))
}

/// The text itself; a lone surrogate in it is replaced.
pub(crate) fn text_of(text: &Bound<'_, PyString>) -> String {
    text.to_string_lossy().into_owned()
}
