//! The one place where windrow's errors become Python's: the classes are in `windrow.errors`.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};
use windrow::{Error, Kind, Result};

use crate::python::interrupt::{ends_program, kept};

/// Turns a windrow result into a Python one.
pub(crate) trait OrRaise<T> {
    /// The value, or the Python exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        match self {
            Ok(value) => kept().map_or(Ok(value), Err),
            Err(error) => Err(kept().unwrap_or_else(|| raise(py, &error))),
        }
    }
}

/// The Python exception for an error; an exception that Python code raised further down comes out as it was.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let cause = error.cause().and_then(|cause| cause.downcast_ref::<PyErr>());
    if let Some(cause) = cause {
        return cause.clone_ref(py);
    }
    if error.kind() == Kind::Interrupted {
        return kept().unwrap_or_else(|| PyKeyboardInterrupt::new_err(format!("{error:#}")));
    }
    instance(py, error).map_or_else(|e| e, PyErr::from_value)
}

/// Whether it is Ctrl-C, or what Python code raised to end the program.
pub(crate) fn is_end(py: Python<'_>, error: &Error) -> bool {
    let cause = error.cause().and_then(|cause| cause.downcast_ref::<PyErr>());
    error.kind() == Kind::Interrupted || cause.is_some_and(|cause| ends_program(py, cause))
}

fn instance<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let classes = CLASSES.get_or_try_init(py, || py.import("windrow.errors").map(Bound::unbind))?;
    let place = error.place();
    let details = PyDict::new(py);
    details.set_item("kind", error.kind().name())?;
    details.set_item("path", place.file.as_deref())?;
    details.set_item("record", place.record)?;
    details.set_item("byte", place.byte)?;
    details.set_item("field", place.field.as_deref())?;
    details.set_item("hint", error.hint_text())?;
    classes.bind(py).getattr(class(error.kind()))?.call((format!("{error:#}"),), Some(&details))
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::NotFound => "NotFoundError",
        Kind::OutOfRange => "OutOfRangeError",
        Kind::Unrecognised => "UnrecognisedError",
        Kind::Corrupt => "CorruptError",
        Kind::Stale => "StaleError",
        Kind::Mismatch => "MismatchError",
        Kind::Config => "ConfigError",
        Kind::Unsupported => "UnsupportedError",
        Kind::Exists => "ExistsError",
        Kind::Io => "IoError",
        Kind::Memory => "OutOfMemoryError",
        _ => "WindrowError",
    }
}
