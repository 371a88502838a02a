//! Which rank a loader reads for: the first that is present of arguments, a group, an initialised runtime, the launcher's
//! environment. Asked when the first batch is, since a trainer may start its group after the loader is made.

use std::sync::OnceLock;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use windrow_core::Error;
use windrow_core::sampler::Shard;

use crate::python::error::{OrRaise, raise};
use crate::python::options::Count;

/// A rank, and what says so.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) shard: Shard,
    pub(crate) by: String,
}

/// The answer once it is known, and whom to ask.
pub(crate) struct Ranks {
    group: Option<Py<PyAny>>,
    known: OnceLock<Found>,
}

impl Ranks {
    pub(crate) fn new(
        py: Python<'_>,
        rank: Option<Count>,
        world_size: Option<Count>,
        group: Option<Py<PyAny>>,
    ) -> PyResult<Ranks> {
        let known = match (rank, world_size, &group) {
            (None, None, _) => OnceLock::new(),
            (Some(_), Some(_), Some(_)) => {
                let error = Error::config("rank, world_size and group are all given")
                    .hint("a group says both: leave rank and world_size out");
                return Err(raise(py, &error));
            }
            (Some(rank), Some(world_size), None) => {
                let shard = Shard::new(rank.0, world_size.0).or_raise(py)?;
                Found { shard, by: "rank, world_size".to_string() }.into()
            }
            _ => return Err(raise(py, &Error::config("rank and world_size: only one of them is given"))),
        };
        if let Some(group) = &group {
            // A wrong group is an error where it is written.
            py.import("windrow.ranks")?.call_method1("check", (group,))?;
        }
        Ok(Ranks { group, known })
    }

    /// What is known without asking anybody; a single process until then.
    pub(crate) fn known(&self) -> Shard {
        self.known.get().map_or(Shard::ALONE, |found| found.shard)
    }

    /// Asks, for a question that fixes nothing.
    pub(crate) fn find(&self, py: Python<'_>) -> PyResult<Found> {
        match self.known.get() {
            Some(found) => Ok(found.clone()),
            None => self.ask(py),
        }
    }

    /// Whether the answer stays as it is.
    pub(crate) fn is_settled(&self) -> bool {
        self.known.get().is_some()
    }

    /// Asks, for an answer that is to stay.
    pub(crate) fn decide(&self, py: Python<'_>) -> PyResult<Found> {
        let found = self.ask(py)?;
        if self.group.is_none() {
            let world_size = found.shard.world_size();
            py.import("windrow.ranks")?.call_method1("check_undivided", (world_size,))?;
        }
        Ok(found)
    }

    /// Keeps this answer from now on.
    pub(crate) fn settle(&self, py: Python<'_>, found: Found) -> PyResult<()> {
        let told = (found.shard.rank(), found.shard.world_size(), found.by.clone());
        if self.known.set(found).is_ok() {
            py.import("windrow.ranks")?.call_method1("note", told)?;
        }
        Ok(())
    }

    // The first that is present.
    fn ask(&self, py: Python<'_>) -> PyResult<Found> {
        let found = py.import("windrow.ranks")?.call_method1("initialised", (&self.group,))?;
        let Some((rank, world_size, by)) = found.extract::<Option<(u64, u64, String)>>()? else {
            let found = windrow::ranks::from_environment().or_raise(py)?;
            return Ok(Found { shard: found.shard, by: found.by.to_string() });
        };
        let shard = Shard::new(rank, world_size).or_raise(py)?;
        if self.group.is_none() {
            windrow::ranks::check(shard, &by).or_raise(py)?;
        }
        Ok(Found { shard, by })
    }
}

/// The rank of a context group and its size: two numbers, or what a group says.
pub(crate) fn context(given: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
    if given.is_instance_of::<PyTuple>() || given.is_instance_of::<PyList>() {
        let numbers: Vec<Count> = given.extract()?;
        return match numbers[..] {
            [rank, size] => Ok((rank.0, size.0)),
            _ => {
                let found = numbers.len();
                Err(PyTypeError::new_err(format!("context is two numbers, (rank, size), not {found}")))
            }
        };
    }
    let found = given.py().import("windrow.ranks")?.call_method1("context", (given,))?;
    found.extract()
}

/// The rank that two arguments name; all ranks, where none is given.
pub(crate) fn shard(rank: Option<Count>, world_size: Option<Count>) -> windrow_core::Result<Shard> {
    match (rank, world_size) {
        (Some(rank), Some(world_size)) => Shard::new(rank.0, world_size.0),
        (None, None) => Ok(Shard::ALONE),
        _ => Err(Error::config("rank and world_size: only one of them is given")),
    }
}
