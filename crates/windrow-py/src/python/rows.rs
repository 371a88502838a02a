//! Options as rows of a table, read as Python gives them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use serde_json::{Map, Value, json};
use windrow::format::Takes;
use windrow::{Error, LOADER, OptionRow, VIEWS, open_options, prep};

use crate::dataset::scaler::{name_of, read_fit};
use crate::python::dtype::AnyDType;
use crate::python::error::{OrRaise, raise};
use crate::python::given::of_argument;
use crate::python::options::{Count, Id, Names};
use crate::python::said::{said, text_of};
use crate::python::store_options::StoreOptions;

/// What is given of these rows, by their names. A name that no row has is passed on with nothing: whoever reads the options
/// refuses it.
///
/// # Errors
/// `TypeError` for a value of another type, `ConfigError` for one that is not meant.
pub(crate) fn all<'a>(
    rows: impl Iterator<Item = &'a OptionRow> + Clone,
    given: &Bound<'_, PyDict>,
) -> PyResult<Map<String, Value>> {
    let mut options = Map::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        let read = match rows.clone().find(|row| row.name == name) {
            Some(row) => read(row, &value).map_err(|e| of_argument(given.py(), &name, e))?,
            None => Value::Null,
        };
        options.insert(name, read);
    }
    Ok(options)
}

// As the row has it; the view looks at its scaler itself, as that may be a function.
fn read(row: &OptionRow, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let found = plain(row, value)?;
    if row.name == "scaler" { Ok(found) } else { row.read(found).or_raise(value.py()) }
}

fn plain(row: &OptionRow, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let (name, takes) = (row.name, row.takes);
    if value.is_none() {
        // None of them is not the same as those that are found.
        return Ok(if let Takes::NamesOrAuto(_) = takes { json!([]) } else { Value::Null });
    }
    Ok(match takes {
        Takes::NamesOrAuto(_) => match value.cast::<PyString>().map(text_of) {
            Ok(word) if word == "auto" => Value::Null,
            Ok(name) => json!([name]),
            Err(_) => value.extract::<Vec<String>>()?.into(),
        },
        Takes::On | Takes::Off => value.extract::<bool>()?.into(),
        Takes::Number(_) => value.extract::<Count>()?.0.into(),
        Takes::Id(_) => value.extract::<Id>()?.named(value.py(), name)?.into(),
        Takes::Fraction => value.extract::<f64>()?.into(),
        Takes::Numbers(_) => {
            value.extract::<Vec<Count>>()?.into_iter().map(|number| Value::from(number.0)).collect()
        }
        Takes::Names(_) | Takes::Each(_) => value.extract::<Names>()?.0.into(),
        Takes::Part => json!(read_fit(value)?),
        Takes::WordsOr(..) => match value.cast::<PyString>() {
            Ok(word) => text_of(word).into(),
            Err(_) => value.extract::<Count>()?.0.into(),
        },
        Takes::WordsOrNumbers(..) => match value.cast::<PyString>() {
            Ok(word) => text_of(word).into(),
            Err(_) => {
                value.extract::<Vec<Count>>()?.into_iter().map(|number| Value::from(number.0)).collect()
            }
        },
        Takes::Words(_) if name == "scaler" => match value.cast::<PyString>() {
            Ok(word) => text_of(word).into(),
            Err(_) if value.is_instance_of::<PyDict>() => text(value)?,
            Err(_) => json!({ "custom": name_of(value)? }),
        },
        Takes::Words(_) => value.extract::<String>()?.into(),
        Takes::Text(_) => text(value)?,
        Takes::DType => value.extract::<AnyDType>()?.0.name().into(),
        Takes::Seconds => value.extract::<f64>()?.into(),
        Takes::Pairs => json!(value.extract::<StoreOptions>()?.0),
        Takes::Bytes => match value.cast::<PyString>() {
            Ok(text) => text_of(text).into(),
            Err(_) => value.extract::<Count>()?.0.into(),
        },
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

/// The tables of options: of ``open``, of loaders, of ``tokenize``, and of each view. Of each option its name, its words where it
/// is one of some, its default, what the command line calls it and what it does.
#[pyfunction]
pub(crate) fn _options(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let shown = |option: &OptionRow| {
        let words = match option.takes {
            Takes::Words(words) | Takes::WordsOr(words, _) | Takes::WordsOrNumbers(words, _) => Some(words),
            _ => None,
        };
        json!({
            "name": option.name,
            "flag": match option.takes {
                Takes::Off => format!("no_{}", option.flag.unwrap_or(option.name)),
                _ => option.flag.unwrap_or(option.name).to_string(),
            },
            "words": words,
            "default": (option.default)(),
            "help": option.help.trim(),
        })
    };
    let views = VIEWS.iter().map(|view| (view.name, view.options().map(shown).collect::<Vec<_>>()));
    let tables = json!({
        "open": open_options().map(shown).collect::<Vec<_>>(),
        "loader": LOADER.iter().map(shown).collect::<Vec<_>>(),
        "tokenize": prep::TOKENIZING.iter().map(shown).collect::<Vec<_>>(),
        "views": views.collect::<std::collections::BTreeMap<_, _>>(),
    });
    crate::python::json::plain(py, &tables)
}
