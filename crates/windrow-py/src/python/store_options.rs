//! What a store is opened with, out of a dict as Python's clients take it; a function in it gives keys when they are needed.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use windrow::Error;

use crate::python::error::raise;
use crate::python::functions;
use crate::python::said::{class_of, said};

/// Options by name; those of a dict within, as `headers`, are called `headers.NAME`.
pub(crate) struct StoreOptions(pub(crate) BTreeMap<String, String>);

impl<'py> FromPyObject<'_, 'py> for StoreOptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let mut found = BTreeMap::new();
        let Ok(dict) = given.cast::<PyDict>() else {
            let class = class_of(&given)?;
            return Err(PyTypeError::new_err(format!("store_options: expected a dict, found {class}")));
        };
        for (name, value) in dict.iter() {
            let name: String = name.extract()?;
            match value.cast::<PyDict>() {
                Ok(within) => {
                    for (inner, value) in within {
                        found.insert(format!("{name}.{}", inner.extract::<String>()?), text(&value)?);
                    }
                }
                Err(_) => {
                    let text = if value.is_callable() { functions::name(&value)? } else { text(&value)? };
                    found.insert(name, text);
                }
            }
        }
        Ok(StoreOptions(found))
    }
}

fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyString>() {
        Ok(said(value)?.to_ascii_lowercase())
    } else {
        value.extract()
    }
}

/// A time in seconds.
pub(crate) fn seconds(py: Python<'_>, name: &str, given: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(given).ok().filter(|time| !time.is_zero()).ok_or_else(|| {
        raise(py, &Error::config(format!("{given} seconds, expected a time above 0")).field(name))
    })
}
