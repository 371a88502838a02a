//! The borders of a split by time, as Python gives them: times of any library, numbers of values.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::python::options::Count;
use crate::python::said::{class_of, said};

/// The times that `at` names, as text: one of them, or several in their order.
///
/// # Errors
/// `TypeError` for what is not a time.
pub(crate) fn times(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if given.is_instance_of::<PyString>() || is_time(given)? {
        return Ok(vec![time(given)?]);
    }
    match given.try_iter() {
        Ok(several) => several.map(|one| time(&one?)).collect(),
        Err(_) => Err(not_a_time(given)?),
    }
}

/// The numbers of values that `last` names: one of them, or several in their order.
///
/// # Errors
/// `TypeError` for what is not a number of values.
pub(crate) fn numbers(given: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if given.is_instance_of::<PyString>() {
        Err(PyTypeError::new_err(format!(
            "last: expected a number of values, or a list of them, found {}",
            said(given)?
        )))
    } else {
        match given.try_iter() {
            Ok(several) => several.map(|one| Ok(one?.extract::<Count>()?.0)).collect(),
            Err(_) => Ok(vec![given.extract::<Count>()?.0]),
        }
    }
}

/// How a split by time is asked for: by fractions, by times or by last values.
///
/// # Errors
/// `TypeError` for more than one of them.
pub(crate) fn only_one(fractions: &Bound<'_, PyTuple>, named: [(&str, bool); 2]) -> PyResult<()> {
    let given = named.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name);
    let given: Vec<&str> = (!fractions.is_empty()).then_some("fractions").into_iter().chain(given).collect();
    match given.len() {
        0 | 1 => Ok(()),
        _ => Err(PyTypeError::new_err(format!(
            "split_by_time takes fractions, at or last: one of them, found {}",
            given.join(" and ")
        ))),
    }
}

// Dates and times of Python and of pandas say themselves in ISO's order, numpy's too.
fn is_time(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_period = || Ok::<_, PyErr>(class_of(given)?.ends_with("Period"));
    let is_of_numpy = || Ok::<_, PyErr>(class_of(given)?.ends_with("datetime64"));
    Ok(given.hasattr("isoformat")? || is_of_numpy()? || is_period()?)
}

fn time(given: &Bound<'_, PyAny>) -> PyResult<String> {
    if given.is_instance_of::<PyString>() || is_time(given)? {
        Ok(given.str()?.to_string())
    } else {
        Err(not_a_time(given)?)
    }
}

fn not_a_time(given: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!(
        "at: expected a time such as \"2024-01-01\", a date, or a list of them, found {}",
        said(given)?
    )))
}
