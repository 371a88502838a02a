//! Where a row is of: its step, sample, record and file, for the notes of exceptions and for errors.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use windrow::Error;
use windrow::dev::loader::Origin;

/// Where a row of a batch is of, as far as that can be told.
pub(super) struct RowPlace {
    step: Option<u64>,
    row: usize,
    sample: Option<u64>,
    record: Option<u64>,
    file: Option<String>,
}

impl RowPlace {
    /// That of a row of this rank's batch.
    pub(super) fn of(origin: &Origin, row: usize) -> RowPlace {
        let Origin { plan, steps, step, own, turns } = origin;
        let position = own.positions().nth(row).map(|at| step.position(plan.sampler(), at - step.all.start));
        let traced = position.and_then(|position| plan.trace(step.epoch, position).ok());
        let record = traced
            .as_ref()
            .and_then(|traced| Some(plan.feeds().get(traced.feed)?.number_of(traced.spans.first()?.record)));
        RowPlace {
            step: steps.number(plan.sampler(), step.epoch, step.all.start),
            row,
            sample: turns.get(row).map(|turn| turn.sample),
            record,
            file: traced.and_then(|traced| traced.locations.into_iter().next()).map(|at| at.file),
        }
    }

    /// The record, for a message.
    pub(super) fn record(&self) -> u64 {
        self.record.unwrap_or(0)
    }

    /// The error, at this place.
    pub(super) fn at(&self, error: Error) -> Error {
        let error = match self.record {
            Some(record) => error.record(record),
            None => error,
        };
        match &self.file {
            Some(file) => error.at(file),
            None => error,
        }
    }

    /// Says it in a note of an exception, and in its `windrow`, a dict.
    ///
    /// # Errors
    /// Of an exception that takes no attributes.
    pub(super) fn note(&self, raised: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = raised.py();
        let place = PyDict::new(py);
        place.set_item("step", self.step)?;
        place.set_item("row", self.row)?;
        place.set_item("sample", self.sample)?;
        place.set_item("record", self.record)?;
        place.set_item("file", self.file.as_deref())?;
        let known = place.iter().filter(|(_, value)| !value.is_none());
        let known = known.map(|(name, value)| -> PyResult<String> {
            Ok(format!("{} {}", name.extract::<String>()?, value.str()?.to_string_lossy()))
        });
        let note = format!("in map, at {}", known.collect::<PyResult<Vec<_>>>()?.join(", "));
        if raised.hasattr("add_note")? {
            raised.call_method1("add_note", (note,))?;
        } else if raised.hasattr("__notes__")? {
            // Python 3.10 shows none, and keeps what it is given.
            raised.getattr("__notes__")?.call_method1("append", (note,))?;
        } else {
            raised.setattr("__notes__", PyList::new(py, [note])?)?;
        }
        raised.setattr("windrow", place)
    }
}
