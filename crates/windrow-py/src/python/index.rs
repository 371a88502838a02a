//! What is between square brackets: numbers from either end, numpy integers, slices, lists and arrays of numbers.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PySlice, PyString};
use windrow::{Error, Kind};

use crate::python::error::raise;
use crate::python::interrupt::ends_program;
use crate::python::said::{class_of, said};

/// The length of what has no end: its numbers count from the start only.
pub(crate) const NO_END: u64 = i64::MAX as u64;

/// What was asked for, each number within the length.
pub(crate) enum Index {
    /// One.
    One(u64),
    /// Several, in this order.
    Many(Vec<u64>),
}

impl Index {
    /// Reads a key; `what` is what is numbered, for the error.
    ///
    /// # Errors
    /// `OutOfRangeError`; `TypeError` for anything that is not a number, slice, or list or 1-D array of whole numbers.
    pub(crate) fn read(key: &Bound<'_, PyAny>, what: &str, len: u64) -> PyResult<Index> {
        if key.is_instance_of::<PyInt>() {
            return Ok(Index::One(one(key, what, len)?));
        }
        if let Ok(slice) = key.cast::<PySlice>() {
            if len == NO_END && !has_bounds(slice)? {
                return Err(PyTypeError::new_err(format!(
                    "{key}: of {what}s without an end, a slice needs a start and a stop that count from the first, and a step above 0"
                )));
            }
            let indices = slice.indices(isize::try_from(len)?)?;
            let numbers =
                (0..indices.slicelength).map(|i| (indices.start + i as isize * indices.step) as u64);
            return Ok(Index::Many(numbers.collect()));
        }
        let is_sequence = key.hasattr("__len__")? || key.hasattr("tolist")?;
        if !is_sequence || (key.hasattr("ndim")? && key.getattr("ndim")?.extract::<usize>()? == 0) {
            return Ok(Index::One(one(key, what, len)?));
        }
        if key.hasattr("keys")? || key.is_instance_of::<PyString>() {
            return Err(no_index(key));
        }
        Ok(Index::Many(many(key, what, len)?))
    }
}

/// The numbers of a list or 1-D array of whole numbers.
///
/// # Errors
/// As [`Index::read`].
pub(crate) fn many(keys: &Bound<'_, PyAny>, what: &str, len: u64) -> PyResult<Vec<u64>> {
    // Arrays of numpy, torch and jax: plain numbers at once are quicker than a scalar object each.
    let list = if keys.hasattr("tolist")? { keys.call_method0("tolist")? } else { keys.clone() };
    list.try_iter()
        .map_err(|_| no_index(keys))?
        .map(|key| {
            let key = key?;
            if key.is_instance_of::<PyBool>() {
                Err(PyTypeError::new_err("a mask is not an index; use np.flatnonzero(mask)"))
            } else {
                one(&key, what, len)
            }
        })
        .collect()
}

fn one(key: &Bound<'_, PyAny>, what: &str, len: u64) -> PyResult<u64> {
    let py = key.py();
    let out_of_range = || -> PyResult<PyErr> {
        let key = said(key)?;
        let error = match len {
            NO_END => Error::new(
                Kind::OutOfRange,
                format!("{what} {key} is out of range: they count from 0, without an end"),
            ),
            _ => Error::out_of_range(what, key, len),
        };
        Ok(raise(py, &error))
    };
    let number: i64 = match key.extract() {
        Ok(number) => number,
        Err(e) if e.is_instance_of::<PyOverflowError>(py) => return Err(out_of_range()?),
        Err(e) if ends_program(py, &e) => return Err(e),
        Err(_) => return Err(no_index(key)),
    };
    let found = match u64::try_from(number) {
        Ok(number) => Some(number),
        Err(_) if len == NO_END => None,
        Err(_) => len.checked_sub(number.unsigned_abs()),
    };
    match found.filter(|n| *n < len) {
        Some(number) => Ok(number),
        None => Err(out_of_range()?),
    }
}

// `[a:b]` with neither of them counted from an end.
fn has_bounds(slice: &Bound<'_, PySlice>) -> PyResult<bool> {
    let counts_on = |name, or| -> PyResult<bool> {
        let bound = slice.getattr(name)?;
        if bound.is_none() { Ok(or) } else { bound.ge(0) }
    };
    Ok(counts_on("start", true)? && counts_on("stop", false)? && counts_on("step", true)?)
}

fn no_index(key: &Bound<'_, PyAny>) -> PyErr {
    let class = class_of(key).unwrap_or_else(|_| "object".to_string());
    PyTypeError::new_err(format!(
        "index with a whole number, a slice, or a list of whole numbers, not {class}"
    ))
}

/// Goes through something by number.
#[pyclass(module = "windrow._native")]
pub(crate) struct Each {
    of: Py<PyAny>,
    at: u64,
    len: u64,
}

impl Each {
    /// From the first to the last of `len`.
    pub(crate) fn of(of: &Bound<'_, PyAny>, len: u64) -> Each {
        Each { of: of.clone().unbind(), at: 0, len }
    }
}

#[pymethods]
impl Each {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.at >= self.len {
            return Ok(None);
        }
        let item = self.of.bind(py).get_item(self.at)?;
        self.at += 1;
        Ok(Some(item))
    }

    fn __length_hint__(&self) -> u64 {
        self.len - self.at
    }
}
