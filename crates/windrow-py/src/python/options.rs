//! Options as Python gives them: counts that are never negative, lists of names, and words of a short list.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde::de::DeserializeOwned;
use windrow::Error;
use windrow::dev::store::parse_size;

use crate::python::error::raise;
use crate::python::said::{class_of, said, text_of};

/// A whole number from 0 to 2^64 - 1; anything else is a `ConfigError`, and no number at all a `TypeError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = whole(given)?;
        match number.and_then(|n| u64::try_from(n).ok()) {
            Some(number) => Ok(Count(number)),
            None => {
                let found = said(&given)?;
                let error = Error::config(format!("{found} where a number from 0 to 2^64 - 1 is needed"));
                Err(raise(given.py(), &error))
            }
        }
    }
}

/// A number of bytes, or a text with a unit, that the argument `name` gives.
///
/// # Errors
/// `ConfigError` for a text that is not a size.
pub(crate) fn size_of(given: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let Ok(text) = given.cast::<PyString>() else { return given.extract::<Count>().map(|bytes| bytes.0) };
    let text = text_of(text);
    parse_size(&text).ok_or_else(|| {
        let error = Error::config(format!("{name}={text:?} is not a size")).field(name);
        raise(given.py(), &error.hint("a number of bytes, or a text as \"8MiB\" or \"1MB\""))
    })
}

/// An ID, or another value to put between stored ones. Read before its argument's name is known, refused with it.
#[derive(Clone, Debug)]
pub(crate) struct Id(Result<i64, String>);

impl Id {
    /// An ID that fits, for defaults.
    pub(crate) const fn of(id: i64) -> Id {
        Id(Ok(id))
    }

    /// The ID that the argument `name` gives.
    ///
    /// # Errors
    /// `ConfigError` for a number beyond 64 bits.
    pub(crate) fn named(self, py: Python<'_>, name: &str) -> PyResult<i64> {
        self.0.map_err(|found| {
            let error = Error::config(format!("{name}={found}: expected a number from -2^63 to 2^63 - 1"));
            raise(py, &error.field(name))
        })
    }

    /// The ID of a token, that is at `place` of a list.
    ///
    /// # Errors
    /// `ConfigError` for a number that no token can have.
    pub(crate) fn token(self, py: Python<'_>, place: usize) -> PyResult<u32> {
        let found = match self.0 {
            Ok(id) => match u32::try_from(id) {
                Ok(id) => return Ok(id),
                Err(_) => id.to_string(),
            },
            Err(found) => found,
        };
        Err(raise(
            py,
            &Error::config(format!("ids[{place}] is {found}: expected a number from 0 to 2^32 - 1")),
        ))
    }
}

impl<'py> FromPyObject<'_, 'py> for Id {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // numpy's is named `bool` or `bool_`, by its version.
        if class_of(&given)?.starts_with("bool") {
            return Err(PyTypeError::new_err(format!(
                "expected a token ID, a whole number, found the bool {}",
                &*given
            )));
        }
        let number = whole(given)?.and_then(|n| i64::try_from(n).ok());
        Ok(Id(match number {
            Some(number) => Ok(number),
            None => Err(said(&given)?),
        }))
    }
}

/// Names in a list or another sequence, which one text is not.
#[derive(Clone, Debug)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Names {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.cast::<PyString>() {
            Ok(name) => {
                let name = text_of(&name);
                Err(PyTypeError::new_err(format!(
                    "expected a list of names, found the str {name:?}: write [{name:?}]"
                )))
            }
            Err(_) => given.extract::<Vec<String>>().map(Names),
        }
    }
}

// `None`: a whole number that 128 bits cannot hold.
fn whole(given: Borrowed<'_, '_, PyAny>) -> PyResult<Option<i128>> {
    match given.extract::<i128>() {
        Ok(number) => Ok(Some(number)),
        Err(e) if e.is_instance_of::<PyOverflowError>(given.py()) => Ok(None),
        Err(e) => Err(e),
    }
}

impl Count {
    /// The number as this machine counts memory.
    pub(crate) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// The option called `name`, whose text is one of `words`.
///
/// # Errors
/// `ConfigError` that lists the words.
pub(crate) fn choice<T: DeserializeOwned>(
    py: Python<'_>,
    name: &str,
    text: &str,
    words: &[&str],
) -> PyResult<T> {
    let found = words.contains(&text).then(|| serde_json::from_value(text.into()).ok()).flatten();
    found.ok_or_else(|| {
        raise(py, &Error::config(format!("{name}={text:?}")).hint(format!("one of {}", words.join(", "))))
    })
}
