//! Which rank a loader reads for: the first that is present of arguments, a group, an initialised runtime, the launcher's
//! environment. Asked when the first batch is, since a trainer may start its group after the loader is made.

use std::sync::OnceLock;

use pyo3::prelude::*;
use windrow_core::Error;
use windrow_core::sampler::Shard;

use crate::error::{OrRaise, raise};
use crate::options::Count;

/// The answer once it is known, and whom to ask.
pub(crate) struct Ranks {
    group: Option<Py<PyAny>>,
    known: OnceLock<Shard>,
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
            (Some(rank), Some(world_size), None) => Shard::new(rank.0, world_size.0).or_raise(py)?.into(),
            _ => return Err(raise(py, &Error::config("rank and world_size: only one of them is given"))),
        };
        if let Some(group) = &group {
            // A group that is none is an error where it is written.
            py.import("windrow.ranks")?.call_method1("check", (group,))?;
        }
        Ok(Ranks { group, known })
    }

    /// What is known without asking anybody; a single process until then.
    pub(crate) fn known(&self) -> Shard {
        self.known.get().copied().unwrap_or(Shard::ALONE)
    }

    /// Asks, for a question that fixes nothing.
    pub(crate) fn find(&self, py: Python<'_>) -> PyResult<Shard> {
        match self.known.get() {
            Some(shard) => Ok(*shard),
            None => Ok(self.ask(py)?.0),
        }
    }

    /// Whether the answer stays as it is.
    pub(crate) fn is_settled(&self) -> bool {
        self.known.get().is_some()
    }

    /// Keeps this answer from now on.
    pub(crate) fn settle(&self, py: Python<'_>, shard: Shard, by: &str) -> PyResult<()> {
        if self.known.set(shard).is_ok() {
            let told = (shard.rank(), shard.world_size(), by);
            py.import("windrow.ranks")?.call_method1("note", told)?;
        }
        Ok(())
    }

    /// The first that is present, and its name.
    pub(crate) fn ask(&self, py: Python<'_>) -> PyResult<(Shard, String)> {
        let found = py.import("windrow.ranks")?.call_method1("initialised", (&self.group,))?;
        match found.extract::<Option<(u64, u64, String)>>()? {
            Some((rank, world_size, by)) => Ok((Shard::new(rank, world_size).or_raise(py)?, by)),
            None => Ok((windrow::ranks::from_environment().or_raise(py)?, "the environment".to_string())),
        }
    }
}

/// The rank that two arguments name; all ranks, where none is given.
pub(crate) fn shard(rank: Option<Count>, world_size: Option<Count>) -> windrow_core::Result<Shard> {
    match (rank, world_size) {
        (Some(rank), Some(world_size)) => Shard::new(rank.0, world_size.0),
        (None, None) => Ok(Shard::ALONE),
        _ => Err(Error::config("rank and world_size: only one of them is given")),
    }
}
