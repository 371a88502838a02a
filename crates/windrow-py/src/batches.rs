//! What a ``for`` over a loader goes through: the batches of one epoch, or of all that are left.

use pyo3::prelude::*;

use crate::loader::Loader;

/// Batches of a loader, up to an epoch's end or over all epochs. It holds no place of its own: the loader does.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Batches {
    loader: Py<Loader>,
    epoch: Option<u64>,
}

impl Batches {
    /// Those of one epoch.
    pub(crate) fn of_epoch(loader: Py<Loader>, epoch: u64) -> Batches {
        Batches { loader, epoch: Some(epoch) }
    }

    /// All that are left.
    pub(crate) fn all(loader: Py<Loader>) -> Batches {
        Batches { loader, epoch: None }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.loader.get().next(py, self.epoch)
    }
}
