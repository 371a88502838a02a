//! How long records are, as Python gives it to a loader: the name of a column, or an array.

use numpy::{PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use windrow::{Error, LengthsOf};

use crate::python::dtype::numpy_ready;
use crate::python::error::raise;
use crate::python::said::{class_of, text_of};

/// The argument `lengths`.
///
/// # Errors
/// `ConfigError` for a number below 0; `TypeError` for what is neither a text nor a list or 1-D array of whole numbers.
pub(crate) fn given(lengths: &Bound<'_, PyAny>) -> PyResult<LengthsOf> {
    let py = lengths.py();
    if let Ok(column) = lengths.cast::<PyString>() {
        return Ok(LengthsOf::from(text_of(column).as_str()));
    }
    numpy_ready(py)?;
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (lengths,))?;
    let array = array.cast::<PyUntypedArray>()?;
    if array.ndim() != 1 || !matches!(array.dtype().kind(), b'i' | b'u') {
        return Err(PyTypeError::new_err(format!(
            "lengths is the name of a column, or a list or array of whole numbers, one for each sample, not {}",
            class_of(lengths)?
        )));
    }
    let numbers = numpy.call_method1("ascontiguousarray", (array, "int64"))?;
    let numbers: PyReadonlyArray1<'_, i64> = numbers.extract()?;
    let numbers = numbers.as_slice()?;
    if let Some(place) = numbers.iter().position(|number| *number < 0) {
        let error = Error::config(format!("lengths has {} at place {place}", numbers[place]));
        return Err(raise(py, &error.field("lengths").hint("a length is 0 or more")));
    }
    Ok(LengthsOf::from(numbers.iter().map(|number| number.unsigned_abs()).collect::<Vec<u64>>()))
}
