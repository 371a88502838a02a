//! What a ``for`` over a loader goes through: the batches of one epoch, or of all that are left.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::loader::delivery::Delivery;

/// Batches of a loader, up to an epoch's end or over all epochs. It holds no place of its own: the loader does.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Batches {
    delivery: Arc<Delivery>,
    epoch: Option<u64>,
}

impl Batches {
    /// Those of one epoch.
    pub(crate) fn of_epoch(delivery: Arc<Delivery>, epoch: u64) -> Batches {
        Batches { delivery, epoch: Some(epoch) }
    }

    /// All that are left.
    pub(crate) fn all(delivery: Arc<Delivery>) -> Batches {
        Batches { delivery, epoch: None }
    }
}

#[pymethods]
impl Batches {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.delivery.next(py, self.epoch)
    }
}
