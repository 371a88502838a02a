//! Credentials of stores that a function of Python gives.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use windrow::{Error, Result};

use crate::python::functions;
use crate::python::said::text_of;
use crate::python::store_options::StoreOptions;

/// Has stores ask Python for their credentials.
pub(crate) fn give_credentials() {
    windrow::credentials_by(|name| {
        Python::attach(|py| {
            called(py, name).map_err(|e| {
                let message = format!("the function {name} gave no credentials: {}", text_of_error(py, &e));
                Error::config(message).field("store_options")
            })
        })?
    });
}

fn text_of_error(py: Python<'_>, error: &PyErr) -> String {
    error.value(py).str().map_or_else(|_| "?".to_string(), |text| text_of(&text))
}

fn called(py: Python<'_>, name: &str) -> PyResult<Result<BTreeMap<String, String>>> {
    let elsewhere = || {
        Err(Error::config("the function that gives the credentials is one of another process")
            .field("store_options")
            .hint("define it in a module that both import, not in the script or within a function"))
    };
    let Some(function) = functions::named(py, name)? else { return Ok(elsewhere()) };
    Ok(Ok(function.call0()?.extract::<StoreOptions>()?.0))
}
