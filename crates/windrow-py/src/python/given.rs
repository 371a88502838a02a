//! What functions of the package pass on: their arguments by name, in one dict.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::format::Options;

use crate::python::store_options::{StoreOptions, seconds};

/// A struct of arguments, each read as PyO3 reads one of a function.
macro_rules! given {
    (struct $Given:ident { $($name:ident: $Type:ty,)* }) => {
        struct $Given {
            $($name: $Type,)*
        }

        impl $Given {
            fn of(given: &pyo3::Bound<'_, pyo3::types::PyDict>) -> pyo3::PyResult<$Given> {
                Ok($Given { $($name: crate::python::given::argument(given, stringify!($name))?,)* })
            }
        }
    };
    (struct $Given:ident<$py:lifetime> { $($name:ident: $Type:ty,)* }) => {
        struct $Given<$py> {
            $($name: $Type,)*
        }

        impl<$py> $Given<$py> {
            fn of(given: &pyo3::Bound<$py, pyo3::types::PyDict>) -> pyo3::PyResult<$Given<$py>> {
                Ok($Given { $($name: crate::python::given::argument(given, stringify!($name))?,)* })
            }
        }
    };
}
pub(crate) use given;

/// The argument of this name; None where there is none.
///
/// # Errors
/// As Python says it of its own functions; what the type says of the value.
pub(crate) fn argument<'py, T: FromPyObjectOwned<'py>>(
    given: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<T> {
    let py = given.py();
    let value = given.get_item(name)?.unwrap_or_else(|| py.None().into_bound(py));
    value.extract::<T>().map_err(|e| of_argument(py, name, e.into()))
}

/// An error of an argument, which is named where it is of another type.
pub(crate) fn of_argument(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let named = PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
    named.set_cause(py, error.cause(py));
    named
}

/// How stores are asked, by the two options of functions that write.
///
/// # Errors
/// `ConfigError` for a time that is not a number of seconds.
pub(crate) fn stores(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let store_options: Option<StoreOptions> = argument(given, "store_options")?;
    let timeout: Option<f64> = argument(given, "timeout")?;
    Ok(Options {
        store_options: store_options.map(|given| given.0).unwrap_or_default(),
        timeout: timeout.map(|time| seconds(given.py(), "timeout", time)).transpose()?,
        ..Options::default()
    })
}
