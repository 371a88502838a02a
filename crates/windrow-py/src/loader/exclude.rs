//! Records that a loader leaves out, as Python gives them: numbers, or of a mix a dict of them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use windrow::{Mixture, Samples};

use crate::python::error::OrRaise;
use crate::python::options::Count;
use crate::python::said::class_of;

/// The view without them.
pub(crate) fn of_view(py: Python<'_>, samples: &Samples, given: &Bound<'_, PyAny>) -> PyResult<Samples> {
    if given.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err(
            "exclude of a view is a list of record numbers; a dict names the parts of a mix",
        ));
    }
    let records = numbers(given)?;
    py.detach(|| samples.without(&records)).or_raise(py)
}

/// The mix without them.
pub(crate) fn of_mix(py: Python<'_>, mixture: &Mixture, given: &Bound<'_, PyAny>) -> PyResult<Mixture> {
    let Ok(parts) = given.cast::<PyDict>() else {
        return Err(PyTypeError::new_err(format!(
            "exclude of a mix is a dict, part name → record numbers, not {}",
            class_of(given)?
        )));
    };
    let mut records = Vec::new();
    for (name, given) in parts {
        records.push((name.extract::<String>()?, numbers(&given)?));
    }
    py.detach(|| mixture.without(&records)).or_raise(py)
}

fn numbers(given: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if given.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("exclude is a list of record numbers, not a str"));
    }
    given.try_iter()?.map(|number| Ok(number?.extract::<Count>()?.0)).collect()
}
