//! What a tokenizer of the user's own gives for a text: token IDs, and perhaps a loss mask beside them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyTuple};
use windrow::{Error, Kind, Result};

use crate::python::error::OrRaise;
use crate::python::interrupt::{Attempt, ends_program};
use crate::python::mapping::is_mapping;
use crate::python::said::{class_of, said};

/// The IDs of a text.
pub(crate) struct Given {
    pub(crate) ids: Vec<i64>,
    /// Whether each of them is learned, where the function says it.
    pub(crate) learned: Option<Vec<bool>>,
}

impl Given {
    /// What the function gives for a text: IDs, or a tuple of IDs and mask.
    ///
    /// # Errors
    /// `Config` for a mask that does not fit the IDs, and for what Python raises.
    pub(crate) fn of(function: &Bound<'_, PyAny>, text: &str) -> Result<Given> {
        let answer = function.call1((text,)).map_err(from_python)?;
        match with_mask(&answer).map_err(from_python)? {
            None => Ok(Given { ids: whole_numbers(&answer).map_err(from_python)?, learned: None }),
            Some((ids, mask)) => {
                let ids = whole_numbers(&ids).map_err(from_python)?;
                let learned = mask_of(&mask)?;
                if learned.len() != ids.len() {
                    return Err(Error::config(format!(
                        "the tokenizer gave {} token IDs and a mask of {} values; expected one of each for every token",
                        ids.len(),
                        learned.len()
                    ))
                    .hint("the mask has 1 for each token that is learned, 0 for the others"));
                }
                Ok(Given { ids, learned: Some(learned) })
            }
        }
    }
}

// IDs and mask, where it is a tuple of both: two IDs are numbers.
fn with_mask<'py>(answer: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let Ok(pair) = answer.cast::<PyTuple>() else { return Ok(None) };
    if pair.len() != 2 {
        return Ok(None);
    }
    let first = pair.get_item(0)?;
    // One of numpy's numbers is an ID too.
    let is_id = first.hasattr("__index__")? && !first.hasattr("__len__")?;
    Ok(if is_id { None } else { Some((first, pair.get_item(1)?)) })
}

// A list of ints, an array of them, or what is as good as a list.
fn whole_numbers(ids: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let of_list = |ids: &Bound<'_, PyAny>| {
        if ids.is_instance_of::<PyList>() {
            ids.extract()
        } else if ids.hasattr("__getitem__")? && !is_mapping(ids)? {
            // What is only like a list is asked for its length by `extract` and `collect`, which lose what ends the program there.
            let mut found = Vec::new();
            for id in ids.try_iter()? {
                found.push(id?.extract()?);
            }
            Ok(found)
        } else {
            Err(PyTypeError::new_err(format!("found {}", class_of(ids)?)))
        }
    };
    of_list(&plain(ids)?).map_err(|e| {
        if ends_program(ids.py(), &e) {
            return e;
        }
        let error = PyTypeError::new_err(
            "the tokenizer must give a list of whole numbers for a text, or a tuple of such a list and a mask",
        );
        error.set_cause(ids.py(), Some(e));
        error
    })
}

fn mask_of(mask: &Bound<'_, PyAny>) -> Result<Vec<bool>> {
    let wrong = |what: String| {
        Error::config(format!("the tokenizer gave a mask of which {what}; expected 0, 1, True or False"))
    };
    let list = plain(mask).map_err(from_python)?;
    let Some(values) = list.try_iter().attempt(list.py()).map_err(from_python)? else {
        let class = class_of(mask).unwrap_or_else(|_| "an object".to_string());
        return Err(Error::config(format!(
            "the tokenizer gave {class} as mask; expected a list of 0 and 1, one for each token"
        )));
    };
    let learned = |(at, value): (usize, PyResult<Bound<'_, PyAny>>)| {
        let value = value.map_err(from_python)?;
        if let Ok(value) = value.cast::<PyBool>() {
            return Ok(value.is_true());
        }
        match value.cast::<PyInt>().ok().and_then(|value| value.extract::<i64>().ok()) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(wrong(format!("value {at} is {}", said(&value).map_err(from_python)?))),
        }
    };
    values.enumerate().map(learned).collect()
}

// Of an array its list.
fn plain<'py>(values: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if values.hasattr("tolist")? { values.call_method0("tolist") } else { Ok(values.clone()) }
}

/// What a tokenizer of the user's own gives for a short text: two of one name and code, over other vocabularies, differ here.
///
/// # Errors
/// What is raised to end the program.
pub(crate) fn answers(function: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(match given(function, TEXT)? {
        Some(given) => given.ids.iter().take(32).map(i64::to_string).collect::<Vec<_>>().join("."),
        None => "none".to_string(),
    })
}

/// Whether a tokenizer of the user's own gives a mask, as far as this text tells; by default a short one.
///
/// # Errors
/// As [`answers`].
pub(crate) fn gives_mask(function: &Bound<'_, PyAny>, text: Option<&str>) -> PyResult<bool> {
    Ok(given(function, text.unwrap_or(TEXT))?.is_some_and(|given| given.learned.is_some()))
}

// `None` where it fails: the work itself will say why, and where.
fn given(function: &Bound<'_, PyAny>, text: &str) -> PyResult<Option<Given>> {
    Given::of(function, text).or_raise(function.py()).attempt(function.py())
}

const TEXT: &str = "The naïve fox, 2 dogs; 你好\n";

/// An exception of Python's as the cause of an error: it leaves windrow as it came.
pub(crate) fn from_python(error: PyErr) -> Error {
    Error::new(Kind::Config, "a Python function failed").caused_by(error)
}
