//! For which epoch the samples of a view are drawn: what `set_epoch` set, else another one each time through.

use std::collections::HashMap;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use windrow::Error;

use crate::python::error::raise;
use crate::python::framework::worker_seed;
use crate::python::options::Count;

/// The epochs of samples that are asked for by number.
pub(crate) struct Epochs {
    /// A `windrow._epoch.Epoch`: what `set_epoch` set, here and in worker processes.
    said: Py<PyAny>,
    /// Samples are drawn, so that an epoch makes a difference to them.
    is_random: bool,
    seen: Mutex<Seen>,
}

impl Epochs {
    /// Those of samples that are drawn or not; `said` is what a pickle held.
    pub(crate) fn new(py: Python<'_>, is_random: bool, said: Option<Py<PyAny>>) -> PyResult<Epochs> {
        let said = match said {
            Some(said) => said,
            None => py.import("windrow._epoch")?.getattr("Epoch")?.call0()?.unbind(),
        };
        Ok(Epochs { said, is_random, seen: Mutex::default() })
    }

    /// What a pickle takes along.
    pub(crate) fn pickled(&self, py: Python<'_>) -> Py<PyAny> {
        self.said.clone_ref(py)
    }

    /// Says which epoch the next samples are drawn for.
    ///
    /// # Errors
    /// `ConfigError` beyond 2^63.
    pub(crate) fn set(&self, py: Python<'_>, epoch: Count) -> PyResult<()> {
        let epoch = i64::try_from(epoch.0).map_err(|_| {
            raise(
                py,
                &Error::config(format!("epoch={}: expected a number below 2^63", epoch.0)).field("epoch"),
            )
        })?;
        self.said.bind(py).call_method1("set", (epoch,)).map(drop)
    }

    /// What `set_epoch` set.
    pub(crate) fn said(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.said.bind(py).call_method0("get")?.extract()
    }

    /// The seed and the epoch of the order of documents: one for all samples until another is said, for else some would come twice and
    /// others not at all.
    ///
    /// Where no epoch was said, a worker process of `DataLoader` takes the number that it draws for all its workers each epoch as the seed.
    pub(crate) fn order(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let seed = worker_seed(py)?;
        Ok(match self.said(py)? {
            Some(epoch) => (0, epoch),
            None => (seed.unwrap_or(0), 0),
        })
    }

    /// The epoch of each of these samples, by number.
    ///
    /// Where none was set, those of a worker process of `DataLoader` begin at the number that it draws again for all its
    /// workers each epoch, those of another process at 0; and a sample that comes again begins the next.
    pub(crate) fn of(&self, py: Python<'_>, samples: &[u64]) -> PyResult<Vec<u64>> {
        let seed = worker_seed(py)?;
        if !self.is_random {
            return Ok(vec![0; samples.len()]);
        }
        if let Some(epoch) = self.said(py)? {
            return Ok(vec![epoch; samples.len()]);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let first = seed.unwrap_or(0);
        if seen.first != first {
            *seen = Seen { first, ..Seen::default() };
        }
        Ok(samples.iter().map(|&sample| seen.epoch(sample)).collect())
    }
}

/// Closes a file at its end, without any code of Python's.
#[pyclass(frozen, module = "windrow._native")]
pub(crate) struct _Closes {
    _file: OwnedFd,
}

#[pymethods]
impl _Closes {
    #[new]
    fn new(file: RawFd) -> PyResult<_Closes> {
        if file < 0 {
            return Err(PyValueError::new_err(format!("not a file descriptor: {file}")));
        }
        // SAFETY: whoever gives it has just opened it, and leaves it to this.
        Ok(_Closes { _file: unsafe { OwnedFd::from_raw_fd(file) } })
    }
}

/// Which samples came since the latest epoch began.
#[derive(Default)]
struct Seen {
    first: u64,
    n_begun: u64,
    /// Bits of 64 samples each.
    samples: HashMap<u64, u64>,
}

impl Seen {
    fn epoch(&mut self, sample: u64) -> u64 {
        let (word, bit) = (sample / 64, 1 << (sample % 64));
        if self.samples.get(&word).is_some_and(|bits| bits & bit != 0) {
            self.n_begun += 1;
            self.samples.clear();
        }
        *self.samples.entry(word).or_default() |= bit;
        self.first.wrapping_add(self.n_begun)
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn a_sample_that_comes_again_begins_the_next_epoch() {
        let mut seen = Seen { first: 10, ..Seen::default() };
        let epochs: Vec<u64> = [3, 64, 0, 64, 3, 64, 64].into_iter().map(|n| seen.epoch(n)).collect();
        assert_eq!(epochs, [10, 10, 10, 11, 11, 12, 13]);
    }
}
