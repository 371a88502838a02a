//! Batches of a run as Python gets them: in its framework, through its `collate`; counted when they are handed over.

use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use windrow::Batch;

use crate::loader::mapped::Made;
use crate::loader::running::{Running, Taken};
use crate::python::error::OrRaise;
use crate::python::framework::{Framework, watch_worker};

/// A run, and what is made of its batches.
pub(crate) struct Delivery {
    pub(crate) running: Running,
    pub(crate) framework: Framework,
    pub(crate) collate: Option<Py<PyAny>>,
}

impl Delivery {
    /// The next batch; `None` at the end of the run, or where the next batch is not one of `epoch`.
    pub(crate) fn next<'py>(
        &self,
        py: Python<'py>,
        epoch: Option<u64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        watch_worker(py)?;
        let before = self.running.cursor();
        let Some(taken) = self.running.next(py, epoch)? else { return Ok(None) };
        let handed = || -> PyResult<Bound<'py, PyAny>> {
            let mut batch = self.mapped(py, taken)?;
            let batch = match batch.take_made().map(|made| made.downcast::<Made>()) {
                Some(Ok(made)) => made.handed(py, &self.framework)?,
                _ => self.framework.batch(py, batch)?,
            };
            match &self.collate {
                None => Ok(batch),
                Some(collate) => collate.bind(py).call1((batch,)).map_err(|e| not_the_end(py, e)),
            }
        };
        match handed() {
            Ok(batch) => Ok(Some(batch)),
            Err(error) => {
                // Nobody got it: the next call gives the same batch, and a state does not count it.
                self.running.back_to(py, before)?;
                Err(error)
            }
        }
    }

    // The batch after `map=`, which without threads is called here: the loader's lock is not held any more.
    fn mapped(&self, py: Python<'_>, Taken { batch, origin }: Taken) -> PyResult<Batch> {
        match (self.running.mapped(), origin) {
            (Some(mapped), Some(origin)) => {
                mapped.made(py, batch, &origin, &|| true, Duration::ZERO).or_raise(py)
            }
            _ => Ok(batch),
        }
    }
}

// A loop would take it for the end of the run.
fn not_the_end(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyStopIteration>(py) {
        return error;
    }
    let raised = PyRuntimeError::new_err("collate raised StopIteration");
    raised.set_cause(py, Some(error));
    raised
}
