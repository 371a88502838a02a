//! Options of a view as Python gives them, read as its table says.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use serde_json::{Map, Value, json};
use windrow::format::Takes;
use windrow::{Error, VIEWS, ViewRecipe};

use crate::dataset::scaler::{name_of, read_fit};
use crate::python::error::{OrRaise, raise};
use crate::python::options::{Count, Id, Names};
use crate::python::said::{said, text_of};

/// The recipe of the view of this name.
///
/// # Errors
/// `TypeError` for a value of another type, `ConfigError` for one that is not meant.
pub(crate) fn recipe(py: Python<'_>, view: &str, given: &Bound<'_, PyDict>) -> PyResult<ViewRecipe> {
    let info = VIEWS.iter().find(|info| info.name == view);
    let mut options = Map::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        let takes = info.and_then(|info| info.options().find(|option| option.name == name));
        // One that is not there is refused with the others.
        let read = match takes {
            Some(option) => read(&name, option.takes, &value).map_err(|e| of_argument(py, &name, e))?,
            None => Value::Null,
        };
        if name == "fields" && view != "windows" && read == json!([]) {
            let error = Error::config("fields=[]: a sample of no fields").field("fields");
            let hint = "name those that are wanted, or leave fields out for all of them";
            return Err(raise(py, &error.hint(hint)));
        }
        options.insert(name, read);
    }
    ViewRecipe::of(view, options).or_raise(py)
}

// As Python says it of its own functions.
fn of_argument(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let named = PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
    named.set_cause(py, error.cause(py));
    named
}

fn read(name: &str, takes: Takes, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    Ok(match takes {
        Takes::On | Takes::Off => value.extract::<bool>()?.into(),
        Takes::Number(_) => value.extract::<Count>()?.0.into(),
        Takes::Id(_) => value.extract::<Id>()?.named(value.py(), name)?.into(),
        Takes::Fraction => value.extract::<f64>()?.into(),
        Takes::Numbers(_) => {
            value.extract::<Vec<Count>>()?.into_iter().map(|number| Value::from(number.0)).collect()
        }
        Takes::Names(_) => value.extract::<Names>()?.0.into(),
        Takes::Part => json!(read_fit(value)?),
        Takes::WordsOr(..) => match value.cast::<PyString>() {
            Ok(word) => text_of(word).into(),
            Err(_) => value.extract::<Count>()?.0.into(),
        },
        Takes::Words(_) if name == "scaler" => match value.cast::<PyString>() {
            Ok(word) => text_of(word).into(),
            Err(_) => json!({ "custom": name_of(value)? }),
        },
        Takes::Words(_) => value.extract::<String>()?.into(),
        Takes::Text(_) => text(value)?,
    })
}

// A text or a path; a dict is what a file of JSON would hold.
fn text(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = value.py();
    if value.is_instance_of::<PyDict>() {
        let text: String = py.import("json")?.call_method1("dumps", (value,))?.extract()?;
        return serde_json::from_str(&text).map_err(|e| raise(py, &Error::config(e.to_string())));
    }
    if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!("expected a text, found {}", said(value)?)));
    }
    match value.cast::<PyString>() {
        Ok(text) => Ok(text_of(text).into()),
        Err(_) => Ok(value.extract::<std::path::PathBuf>()?.to_string_lossy().into()),
    }
}

/// The tables of views: of each option its name, its words where it is one of some, its default and what it does.
#[pyfunction]
pub(crate) fn _views(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let option = |option: &windrow::ViewOption| {
        let words = match option.takes {
            Takes::Words(words) | Takes::WordsOr(words, _) => Some(words),
            _ => None,
        };
        json!({ "name": option.name, "flag": option.flag.unwrap_or(option.name), "words": words, "default": (option.default)(), "help": option.help.trim() })
    };
    let views = VIEWS.iter().map(|view| (view.name, view.options().map(option).collect::<Vec<_>>()));
    crate::python::json::plain(py, &views.collect::<std::collections::BTreeMap<_, _>>())
}
