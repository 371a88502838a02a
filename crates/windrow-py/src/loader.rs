//! `windrow.Loader`: a view or mixture as batches, in any order, for any number of ranks, resumable at any step.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use windrow::{Error, LoaderBuilder, State, mix};
use windrow_core::Result;

use crate::array::Memory;
use crate::dtype::AnyDType;
use crate::error::{OrRaise, raise};
use crate::framework::Framework;
use crate::json;
use crate::options::Count;
use crate::running::Running;
use crate::view::{Mix, View};

/// Batches of a view or mixture: dicts of name → array ``[B, …]``, contiguous, writable, over the memory that they were
/// laid into.
///
/// The batch at step k depends on data, view, seed and batch size alone: not on threads, prefetch, or the number of ranks.
///
/// Args:
///     view: a ``View`` or ``Mix``.
///     batch_size: rows for each rank. Or else
///     global_batch_size: rows for all ranks together.
///     shuffle: random order, another one each epoch; else the order of the records.
///     seed: keys the order and the random crops.
///     drop_last: leave out the last batch of an epoch when it is not full.
///     rank, world_size: this rank among all; None takes torchrun's or Slurm's, else 0 of 1.
///     epochs: end after so many; None never ends.
///     num_threads: threads that lay batches ahead, at most 1024; 0 lays each when asked; None takes the cores, at most 8.
///     prefetch: batches kept ready.
///     framework: ``"numpy"``, ``"torch"`` or ``"jax"``.
///     dtype: dtype of the numbers; None gives int64 for whole numbers, float32 for floats. (jax takes 64-bit numbers without
///         a copy only in its 64-bit mode.)
///     collate: called with each dict; its result is the batch.
///
/// Raises:
///     ConfigError: options that would never give a batch.
///     MismatchError: ``load_state_dict`` of another plan; the message names the difference.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(100, dtype=np.uint32).tofile(path)
/// >>> view = wr.open(path, format="tokens", dtype="uint32").pack(8)
/// >>> loader = wr.Loader(view, batch_size=4, seed=7)
/// >>> batch = next(loader)
/// >>> batch["input_ids"].shape, batch["labels"].dtype
/// ((4, 8), dtype('int64'))
/// >>> state = loader.state_dict()
/// >>> again = wr.Loader(view, batch_size=4, seed=7)
/// >>> again.load_state_dict(state)
/// >>> bool((next(again)["labels"] == next(loader)["labels"]).all())
/// True
#[pyclass(frozen, module = "windrow", name = "Loader")]
pub(crate) struct Loader {
    running: Running,
    framework: Framework,
    collate: Option<Py<PyAny>>,
}

impl Loader {
    /// The run.
    pub(crate) fn running(&self) -> &Running {
        &self.running
    }
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(signature = (view, batch_size=None, *, global_batch_size=None, shuffle=true, seed=Count(0), drop_last=true,
                        rank=None, world_size=None, epochs=None, num_threads=None, prefetch=Count(4),
                        framework="numpy", dtype=None, collate=None),
           text_signature = "(view, batch_size=None, *, global_batch_size=None, shuffle=True, seed=0, drop_last=True, rank=None, world_size=None, epochs=None, num_threads=None, prefetch=4, framework='numpy', dtype=None, collate=None)")]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python class")]
    fn new(
        py: Python<'_>,
        view: &Bound<'_, PyAny>,
        batch_size: Option<Count>,
        global_batch_size: Option<Count>,
        shuffle: bool,
        seed: Count,
        drop_last: bool,
        rank: Option<Count>,
        world_size: Option<Count>,
        epochs: Option<Count>,
        num_threads: Option<Count>,
        prefetch: Count,
        framework: &str,
        dtype: Option<AnyDType>,
        collate: Option<Py<PyAny>>,
    ) -> PyResult<Loader> {
        let builder = builder_of(py, view, dtype)?;
        let builder = match (batch_size, global_batch_size) {
            (Some(rows), None) => builder.batch_size(rows.0),
            (None, Some(rows)) => builder.global_batch_size(rows.0),
            (given, _) => {
                let found = if given.is_some() { "both are given" } else { "none is given" };
                let error = Error::config(format!("batch_size or global_batch_size: {found}")).hint(
                    "batch_size counts the rows of each rank, global_batch_size those of all ranks together",
                );
                return Err(raise(py, &error));
            }
        };
        let builder = match (rank, world_size) {
            (Some(rank), Some(world_size)) => builder.rank(rank.0, world_size.0),
            (None, None) => builder,
            _ => return Err(raise(py, &Error::config("rank and world_size: only one of them is given"))),
        };
        let builder = builder
            .shuffle(shuffle)
            .seed(seed.0)
            .drop_last(drop_last)
            .epochs(epochs.map(|e| e.0))
            .threads(num_threads.map(Count::size))
            .prefetch(prefetch.size());
        let framework = Framework::named(py, framework)?;
        if let Some(collate) = collate.as_ref().map(|c| c.bind(py)).filter(|c| !c.is_callable()) {
            return Err(PyTypeError::new_err(format!(
                "collate is a function, not {}",
                collate.get_type().name()?
            )));
        }
        Ok(Loader { running: Running::new(py, builder)?, framework, collate })
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let before = self.running.cursor();
        let Some(batch) = self.running.next(py)? else { return Ok(None) };
        let handed = || -> PyResult<Bound<'py, PyAny>> {
            let dict = self.framework.batch(&Memory::new(py, batch)?)?;
            match &self.collate {
                None => Ok(dict.into_any()),
                Some(collate) => collate.bind(py).call1((dict,)),
            }
        };
        match handed() {
            Ok(batch) => Ok(Some(batch)),
            Err(error) => {
                // Nobody got it: the next call gives the same batch, and a state does not count it.
                let state = self.running.state();
                self.running.resume(py, &State { epoch: before.epoch, samples: before.samples, ..state })?;
                Err(error)
            }
        }
    }

    /// Steps in an epoch.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let (plan, steps) = self.running.plan(py)?;
        let n_steps = steps.in_epoch(plan.sampler(), self.running.cursor().epoch);
        n_steps
            .and_then(|n| usize::try_from(n).ok())
            .ok_or_else(|| PyTypeError::new_err("a mixture with stop=\"never\" has no length"))
    }

    fn __repr__(&self) -> String {
        let state = self.running.state();
        format!(
            "Loader({}; seed={}, epoch={}, samples={})",
            state.plan, state.seed, state.epoch, state.samples
        )
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.running.stop(py)
    }

    /// Ends the threads and frees the batches laid ahead; the next batch would start them again.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1)
    /// >>> batch = next(loader)
    /// >>> loader.close()
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.running.stop(py)
    }

    /// Where the run stands: ``{"version", "plan", "seed", "epoch", "samples"}``. Plain JSON below one kilobyte, the same on
    /// every rank; counts the batches that ``next`` gave.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, seed=7)
    /// >>> batches = next(loader), next(loader)
    /// >>> state = loader.state_dict()
    /// >>> state["version"], state["seed"], state["epoch"], state["samples"]
    /// (1, 7, 0, 2)
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::plain(py, &self.running.state())
    }

    /// Goes to where a run of the same plan stood, whatever its batch size, threads and number of ranks.
    ///
    /// Raises:
    ///     MismatchError: the state is of another plan or seed; the loader stays where it was.
    ///     CorruptError, UnsupportedError: it is no state, or of another version.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> view = wr.open(path, dtype="uint16").pack(3)
    /// >>> loader = wr.Loader(view, batch_size=1)
    /// >>> batch = next(loader)
    /// >>> resumed = wr.Loader(view, batch_size=1)
    /// >>> resumed.load_state_dict(loader.state_dict())
    /// >>> bool((next(resumed)["labels"] == next(loader)["labels"]).all())
    /// True
    fn load_state_dict(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        self.running.resume(py, &State::from_json(&json_text(state)?).or_raise(py)?)
    }

    /// The epoch, from 0.
    #[getter]
    fn epoch(&self) -> u64 {
        self.running.cursor().epoch
    }

    /// Samples of the epoch that were delivered, to all ranks together.
    #[getter]
    fn samples(&self) -> u64 {
        self.running.cursor().samples
    }

    /// The plan's identity: the same text for the same data, view, order and layout.
    #[getter]
    fn plan(&self) -> String {
        self.running.identity().to_string()
    }

    /// A dict: batches, samples and bytes delivered here, waited_secs, threads.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, num_threads=0)
    /// >>> batch = next(loader)
    /// >>> stats = loader.stats()
    /// >>> stats["batches"], stats["samples"], stats["bytes"], stats["threads"]
    /// (1, 1, 48, 0)
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::plain(py, &self.running.stats(py)?)
    }

    /// The plan as a JSON dict: what ``windrow trace`` and ``windrow.trace`` take.
    ///
    /// Raises:
    ///     ConfigError: records are scaled by a function, which JSON cannot hold.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> recipe = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, seed=7).recipe()
    /// >>> recipe["seed"], recipe["parts"][0]["view"]
    /// (7, {'pack': {'length': 3}})
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::plain(py, &self.running.builder().recipe().or_raise(py)?)
    }
}

fn builder_of(py: Python<'_>, view: &Bound<'_, PyAny>, dtype: Option<AnyDType>) -> PyResult<LoaderBuilder> {
    if let Ok(view) = view.cast::<View>() {
        let samples = view.get().samples();
        return match dtype {
            None => Ok(samples.loader()),
            Some(dtype) => Ok(py.detach(|| samples.with_dtype(dtype.0)).or_raise(py)?.loader()),
        };
    }
    if let Ok(mixed) = view.cast::<Mix>() {
        let mixture = mixed.get().mixture();
        let Some(dtype) = dtype else { return Ok(mixture.loader()) };
        let again = py.detach(|| {
            let parts = mixture.parts().map(|(name, s, w)| Ok((name.to_string(), s.with_dtype(dtype.0)?, w)));
            mix(parts.collect::<Result<_>>()?, mixture.stop())
        });
        return Ok(again.or_raise(py)?.loader());
    }
    let class = view.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a Loader takes a View or a Mix, not {class}; cut a data set first, as ds.pack(1024)"
    )))
}

// A state is a flat dict of texts and whole numbers; what else it holds, Python's json writes, which takes a
// millisecond to import.
fn json_text(dict: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut map = serde_json::Map::new();
    for (key, value) in dict {
        let value = if let Ok(text) = value.cast::<PyString>() {
            serde_json::Value::from(text.to_str()?)
        } else if let (true, Ok(number)) = (value.is_exact_instance_of::<PyInt>(), value.extract::<u64>()) {
            serde_json::Value::from(number)
        } else {
            return dict.py().import("json")?.call_method1("dumps", (dict,))?.extract();
        };
        map.insert(key.extract()?, value);
    }
    Ok(serde_json::Value::from(map).to_string())
}
