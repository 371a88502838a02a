//! Options as Python gives them: counts that are never negative, and words of a short list.

use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use windrow::Error;

use crate::error::raise;

/// A whole number from 0 to 2^64 - 1; anything else is a `ConfigError`, and no number at all a `TypeError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = given.extract::<i128>()?;
        u64::try_from(number).map(Count).map_err(|_| {
            raise(given.py(), &Error::config(format!("{number} where a number from 0 to 2^64 - 1 is needed")))
        })
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
