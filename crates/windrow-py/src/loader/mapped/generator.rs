//! The random numbers of a sample: NumPy's generator of counters, whose state is set for each call.

use std::cell::Cell;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use windrow::dev::sampler::Turn;

/// "map1": the second word of the key, so that no other draw has the numbers of this one.
const MAP: u64 = 0x6d61_7031_0000_0000;

thread_local! {
    // To make one costs ten times as much as to set its state. A call within a call makes another.
    static KEPT: Cell<Option<Generator>> = const { Cell::new(None) };
}

/// `np.random.Generator(np.random.Philox(key=[seed, MAP], counter=[0, sample, pass, epoch]))`, for one sample after the other.
pub(super) struct Generator {
    generator: Py<PyAny>,
    bits: Py<PyAny>,
    // What `bits.state` is set to: of lists, which NumPy reads faster than arrays.
    state: Py<PyDict>,
    counter: Py<PyList>,
    seed: u64,
}

impl Generator {
    /// This thread's, for samples of a seed.
    pub(super) fn take(py: Python<'_>, seed: u64) -> PyResult<Generator> {
        match KEPT.take().filter(|kept| kept.seed == seed) {
            Some(kept) => Ok(kept),
            None => Generator::new(py, seed),
        }
    }

    /// Leaves it to the next batch.
    pub(super) fn keep(self) {
        KEPT.set(Some(self));
    }

    fn new(py: Python<'_>, seed: u64) -> PyResult<Generator> {
        static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let new = || py.import("windrow.drawing")?.getattr("sample_rng").map(Bound::unbind);
        let generator = NEW.get_or_try_init(py, new)?.bind(py).call1((seed, 0, 0))?;
        let bits = generator.getattr("bit_generator")?;
        let counter = PyList::new(py, [0u64; 4])?;
        let numbers = PyDict::new(py);
        numbers.set_item("counter", &counter)?;
        numbers.set_item("key", [seed, MAP].to_vec())?;
        let state = PyDict::new(py);
        state.set_item("bit_generator", "Philox")?;
        state.set_item("state", numbers)?;
        state.set_item("buffer", vec![0u64; 4])?;
        state.set_item("buffer_pos", 4)?;
        state.set_item("has_uint32", 0)?;
        state.set_item("uinteger", 0)?;
        Ok(Generator {
            generator: generator.unbind(),
            bits: bits.unbind(),
            state: state.unbind(),
            counter: counter.unbind(),
            seed,
        })
    }

    /// At the first number of a sample.
    pub(super) fn of_sample<'py>(
        &mut self,
        py: Python<'py>,
        epoch: u64,
        turn: Turn,
    ) -> PyResult<Bound<'py, PyAny>> {
        let counter = self.counter.bind(py);
        for (place, number) in [(1, turn.sample), (2, turn.pass), (3, epoch)] {
            counter.set_item(place, number)?;
        }
        self.bits.bind(py).setattr(pyo3::intern!(py, "state"), &self.state)?;
        Ok(self.generator.bind(py).clone())
    }
}
