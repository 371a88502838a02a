//! Data sets of numpy's arrays: read where they are, and pickled with them.

use std::sync::Arc;

use numpy::npyffi::PyArrayObject;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use windrow::dev::source::{HeldBytes, InMemory};
use windrow::format::Options;
use windrow::{Element, Error, Owner};

use crate::python::dtype::{AnyDType, numpy_ready};
use crate::python::error::{OrRaise, raise};
use crate::python::row;

/// The bytes of an array, which keeps them.
struct Held {
    _array: Py<PyUntypedArray>,
    start: *const u8,
    size: usize,
}

// SAFETY: the pointer leads into the array beside it, which is only read, from any thread; numpy keeps its memory where it is.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        match self.size {
            0 => &[],
            // SAFETY: the array has these bytes one after the other and lives as long as this does.
            size => unsafe { std::slice::from_raw_parts(self.start, size) },
        }
    }
}

/// What a data set in memory is made of, for pickles: arrays and a dict beside each.
struct Arrays {
    arrays: Py<PyList>,
    beside: Py<PyList>,
}

/// What a pickle holds of a data set in memory; `None` of one that files hold.
pub(crate) fn pickled(py: Python<'_>, data: &windrow::Dataset) -> Option<(Py<PyList>, Py<PyList>)> {
    let held = data.owner()?.get::<Arrays>()?;
    Some((held.arrays.clone_ref(py), held.beside.clone_ref(py)))
}

/// The data set of arrays `[T]`, or all `[T, C]`, of one dtype and each one run of memory; `beside` has a dict for each.
pub(crate) fn opened(
    py: Python<'_>,
    arrays: &Bound<'_, PyList>,
    beside: &Bound<'_, PyList>,
    options: &Options,
) -> PyResult<windrow::Dataset> {
    numpy_ready(py)?;
    let mut kind = None;
    let mut records: Vec<(HeldBytes, _)> = Vec::with_capacity(arrays.len());
    for (array, beside) in arrays.iter().zip(beside.iter()) {
        let array = array.cast_into::<PyUntypedArray>()?;
        let AnyDType(dtype) = array.dtype().as_any().extract()?;
        let channels = match array.shape() {
            [_] => None,
            [_, channels] => Some(*channels),
            shape => return Err(raise(py, &Error::config(format!("an array of shape {shape:?}")))),
        };
        if *kind.get_or_insert((dtype, channels)) != (dtype, channels) || !array.is_c_contiguous() {
            return Err(raise(py, &Error::config("arrays of several dtypes or shapes, or with gaps")));
        }
        let size = array.len() * dtype.size();
        // SAFETY: it is an array of numpy's.
        let start = unsafe { (*array.as_ptr().cast::<PyArrayObject>()).fields.data };
        let held = Held { _array: array.unbind(), start: start.cast_const().cast(), size };
        records.push((Arc::new(held), row::of(beside.cast::<PyDict>()?)?));
    }
    let Some((dtype, channels)) = kind else {
        return Err(raise(py, &Error::config("no series")));
    };
    let owner = Owner::new(Arrays { arrays: arrays.clone().unbind(), beside: beside.clone().unbind() });
    py.detach(|| {
        let source = InMemory::new("frame", Element::little(dtype), channels, records)?;
        windrow::Dataset::in_memory(Arc::new(source), owner, options)
    })
    .or_raise(py)
}
