//! Dicts, and what is as good as one.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::said::class_of;

/// A dict, or another mapping.
pub(crate) struct Mapping<'py>(Bound<'py, PyAny>);

/// Whether it is one. Asked here, since a `cast` takes what ends the program for a no.
pub(crate) fn is_mapping(of: &Bound<'_, PyAny>) -> PyResult<bool> {
    if of.is_instance_of::<PyDict>() {
        return Ok(true);
    }
    of.is_instance(&of.py().import("collections.abc")?.getattr("Mapping")?)
}

impl<'py> FromPyObject<'_, 'py> for Mapping<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if is_mapping(&given)? {
            Ok(Mapping(given.to_owned()))
        } else {
            Err(PyTypeError::new_err(format!("expected a dict, found {}", class_of(&given)?)))
        }
    }
}

impl<'py> Mapping<'py> {
    /// Its keys and values, in its order.
    pub(crate) fn items<T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(&self) -> PyResult<Vec<T>> {
        self.0.call_method0("items")?.try_iter()?.map(|item| item?.extract()).collect()
    }
}
