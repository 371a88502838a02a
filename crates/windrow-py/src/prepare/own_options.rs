//! Options of one format that is written, as Python gives them: the format itself says which it takes.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyString};
use serde_json::{Map, Value, json};
use windrow::format::WriteFormat;

use crate::python::error::raise;
use crate::python::given::argument;
use crate::python::interrupt::Attempt;
use crate::python::near::meant;
use crate::python::options::Count;
use crate::python::said::class_of;

/// The options that a function was given by name beside its own arguments.
///
/// # Errors
/// `TypeError` for a value that none can have.
pub(crate) fn given(given: &Bound<'_, PyDict>) -> PyResult<Map<String, Value>> {
    let mut own = Map::new();
    let options: Bound<'_, PyDict> = argument(given, "options")?;
    for (name, value) in options {
        let name: String = name.extract()?;
        let value = plain(&name, &value)?;
        own.insert(name, value);
    }
    Ok(own)
}

/// How `to` is written, with `own` options of the function `called`, whose arguments are `given`.
///
/// # Errors
/// `TypeError` for a name that is close to one of the function's or of the format's; else what the format says.
pub(crate) fn writer(
    given: &Bound<'_, PyDict>,
    called: &str,
    to: &str,
    own: &Map<String, Value>,
) -> PyResult<Arc<dyn WriteFormat>> {
    let py = given.py();
    let error = match windrow::writer(to, own) {
        Ok(writer) => return Ok(writer),
        Err(error) => error,
    };
    let known = windrow::write_options(to);
    if let Some(name) =
        error.place().field.as_ref().filter(|name| own.contains_key(*name) && !is_of_a_format(name))
    {
        let mut names: Vec<String> = given.keys().extract()?;
        names.retain(|name| name != "options");
        names.extend(known.into_iter().map(str::to_string));
        if let Some(hint) = meant(py, name, names)? {
            return Err(PyTypeError::new_err(format!(
                "{called}() got an unexpected keyword argument '{name}'; {hint}"
            )));
        }
    }
    Err(raise(py, &error))
}

// What is an option of another format is no mistake of typing.
fn is_of_a_format(name: &str) -> bool {
    windrow::written().iter().any(|format| format.info.own_options().any(|option| option.name == name))
}

// numpy's numbers and bools, too.
fn plain(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(json!(text.extract::<String>()?));
    }
    let class = class_of(value)?;
    // numpy's is named `bool` or `bool_`, by its version.
    if class.starts_with("bool") {
        return Ok(json!(value.is_truthy()?));
    }
    let py = value.py();
    if let Some(number) = value.extract::<i64>().attempt(py)? {
        return Ok(json!(number));
    }
    if let Some(number) = value.extract::<Count>().attempt(py)? {
        return Ok(json!(number.0));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(json!(number.extract::<f64>()?));
    }
    Err(PyTypeError::new_err(format!("{name} is a number, a text, True or False, not {class}")))
}
