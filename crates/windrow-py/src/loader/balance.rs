//! `balance=`: what a row costs its rank, by a word, a number, or a function of Python's.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use windrow::{Balance, Cost, Error, Kind, Result};

use crate::python::error::OrRaise;
use crate::python::options::Count;
use crate::python::said::{class_of, shown, text_of};

/// What `balance=` gives.
///
/// # Errors
/// `ConfigError` for a word that it does not know, `TypeError` for what is no number and cannot be called.
pub(crate) fn balance(given: &Bound<'_, PyAny>) -> PyResult<Balance> {
    if let Ok(word) = given.cast::<PyString>() {
        return text_of(word).parse().or_raise(given.py());
    }
    if given.is_callable() {
        return Ok(Balance::By(Arc::new(Function::of(given)?)));
    }
    match given.cast::<PyInt>().is_ok() || given.hasattr("__index__")? {
        true => Ok(Balance::Attention(given.extract::<Count>()?.0)),
        false => {
            let text = format!(
                "balance is \"tokens\", \"attention\", a whole number or a function, not {}",
                class_of(given)?
            );
            Err(PyTypeError::new_err(text))
        }
    }
}

/// A function of the lengths of a row's documents.
struct Function {
    function: Py<PyAny>,
    name: String,
}

impl Function {
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Function> {
        let part = |name: &str| given.getattr(name).and_then(|part| part.extract::<String>());
        let name = match (part("__module__"), part("__qualname__")) {
            (Ok(module), Ok(name)) => format!("{module}.{name}"),
            _ => class_of(given)?,
        };
        Ok(Function { function: given.clone().unbind(), name })
    }

    fn called(&self, py: Python<'_>, lengths: &[u64]) -> Result<u128> {
        let lengths = lengths.iter().map(|len| i64::try_from(*len).unwrap_or(i64::MAX)).collect();
        let lengths = PyArray1::<i64>::from_vec(py, lengths);
        let cost = self.function.bind(py).call1((lengths,)).map_err(raised)?;
        let whole = cost.call_method0("__index__").and_then(|cost| cost.extract::<u128>());
        whole.or_else(|_| {
            let found = shown(&cost).map_err(raised)?;
            Err(Error::config(format!("balance gave {found} for a row, expected a whole number from 0 on"))
                .field("balance")
                .hint("ranks have to agree to the last bit: multiply a fraction and round it to an int"))
        })
    }
}

impl Cost for Function {
    fn cost(&self, lengths: &[u64]) -> Result<u128> {
        attached(|py| self.called(py, lengths))
    }

    // One attachment for a step, not one for each row.
    fn costs(&self, rows: &[Vec<u64>]) -> Result<Vec<u128>> {
        attached(|py| rows.iter().map(|lengths| self.called(py, lengths)).collect())
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

fn attached<T>(call: impl FnOnce(Python<'_>) -> Result<T>) -> Result<T> {
    Python::try_attach(call).unwrap_or_else(|| Err(Error::new(Kind::Interrupted, "Python is ending")))
}

// What Python raised comes out as it was.
fn raised(error: PyErr) -> Error {
    Error::config("balance raised an exception").caused_by(error)
}
