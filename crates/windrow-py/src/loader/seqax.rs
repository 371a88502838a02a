//! What `windrow.compat.seqax` would wait for in Python.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::python::dtype::numpy_ready;

/// The order that seqax makes of drawn numbers: 0 to n - 1, each place swapped with one at or before it, from the last down.
#[pyfunction]
pub(crate) fn _swapped<'py>(
    py: Python<'py>,
    draws: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let draws = draws.as_slice()?;
    let order = py.detach(|| {
        let mut order: Vec<i64> = (0..draws.len() as i64).collect();
        for (place, draw) in draws.iter().enumerate().rev() {
            // The remainder is at most the place itself.
            order.swap(place, (draw % (place as u64 + 1)) as usize);
        }
        order
    });
    numpy_ready(py)?;
    Ok(order.into_pyarray(py))
}
