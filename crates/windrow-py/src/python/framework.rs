//! How a batch reaches numpy, torch or jax: dicts over the batch's own memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString};
use windrow::{Batch, DType, List};

use crate::python::array::{Memory, field_array, row_array};
use crate::python::row;
use crate::python::said::said;

/// Whose arrays a loader gives.
pub(crate) enum Framework {
    /// `numpy.ndarray`.
    Numpy,
    /// `torch.Tensor`, on the CPU.
    Torch(Torch),
    /// `jax.Array`; no copy where jax takes the memory as it is.
    Jax(Py<PyAny>),
}

/// torch's functions, found once.
pub(crate) struct Torch {
    from_numpy: Py<PyAny>,
    bfloat16: Py<PyAny>,
    /// Batches are copied into page-locked memory, which torch counts: none is used again while a copy out of it runs.
    is_pinned: bool,
}

impl Torch {
    fn find(torch: &Bound<'_, PyAny>) -> PyResult<Torch> {
        Ok(Torch {
            from_numpy: torch.getattr("from_numpy")?.unbind(),
            bfloat16: torch.getattr("bfloat16")?.unbind(),
            is_pinned: false,
        })
    }

    // A field as a tensor over the same memory. torch takes no bfloat16 from numpy, so its bits go as int16.
    fn field<'py>(&self, memory: &Bound<'py, Memory>, field: usize) -> PyResult<Bound<'py, PyAny>> {
        let py = memory.py();
        match memory.get().fields()[field].dtype {
            DType::Bf16 => {
                let bits =
                    self.from_numpy.bind(py).call1((field_array(memory, field, Some(DType::I16))?,))?;
                bits.call_method1("view", (&self.bfloat16,))
            }
            _ => self.from_numpy.bind(py).call1((field_array(memory, field, None)?,)),
        }
    }

    // The same, in page-locked memory where that was asked for.
    fn handed<'py>(&self, memory: &Bound<'py, Memory>, field: usize) -> PyResult<Bound<'py, PyAny>> {
        self.pinned(self.field(memory, field)?)
    }

    fn pinned<'py>(&self, tensor: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.is_pinned { tensor.call_method0("pin_memory") } else { Ok(tensor) }
    }

    // An array as a tensor over the same memory.
    fn of<'py>(&self, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = array.py();
        let from_numpy = self.from_numpy.bind(py);
        if said(&array.getattr("dtype")?)? != "bfloat16" {
            return self.pinned(from_numpy.call1((array,))?);
        }
        let bits = from_numpy.call1((array.call_method1("view", ("int16",))?,))?;
        self.pinned(bits.call_method1("view", (&self.bfloat16,))?)
    }
}

impl Framework {
    /// By name; imports it.
    pub(crate) fn named(py: Python<'_>, name: &str) -> PyResult<Framework> {
        match name {
            "numpy" => Ok(Framework::Numpy),
            "torch" => Ok(Framework::Torch(Torch::find(py.import("torch")?.as_any())?)),
            "jax" => Ok(Framework::Jax(py.import("jax.numpy")?.getattr("asarray")?.unbind())),
            other => Err(crate::python::error::raise(
                py,
                &windrow::Error::config(format!("framework={other:?}")).hint("one of numpy, torch, jax"),
            )),
        }
    }

    /// Puts batches in page-locked memory.
    ///
    /// # Errors
    /// `ConfigError` for another framework than torch, and where torch finds no device that memory could be locked for.
    pub(crate) fn pinned(self, py: Python<'_>) -> PyResult<Framework> {
        let Framework::Torch(torch) = self else {
            let error = windrow::Error::config("pin_memory=True is of torch's tensors alone");
            return Err(crate::python::error::raise(py, &error.hint("give the loader framework=\"torch\"")));
        };
        if !py.import("torch.cuda")?.call_method0("is_available")?.is_truthy()? {
            let error = windrow::Error::config("pin_memory=True, and torch finds no CUDA device");
            let hint = "pin_memory=torch.cuda.is_available() runs on both; else install a torch that is built for CUDA";
            return Err(crate::python::error::raise(py, &error.hint(hint)));
        }
        Ok(Framework::Torch(Torch { is_pinned: true, ..torch }))
    }

    /// An array of NumPy's, called `name` where the framework does not have its numbers.
    pub(crate) fn array<'py>(&self, array: Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Framework::Numpy => Ok(array),
            Framework::Torch(torch) => torch.of(&array),
            Framework::Jax(asarray) => {
                let made = asarray.bind(array.py()).call1((&array,))?;
                let dtype = array.getattr("dtype")?;
                let is_whole = matches!(said(&dtype.getattr("kind")?)?.as_str(), "i" | "u");
                if is_whole && dtype.getattr("itemsize")?.extract::<usize>()? == 8 {
                    check_narrowed(&made, &array, name)?;
                }
                Ok(made)
            }
        }
    }

    /// A whole batch: a dict of name → array `[B, …]`, or list where columns hold something else; of a view of rows the list
    /// of its records.
    pub(crate) fn batch<'py>(&self, py: Python<'py>, mut batch: Batch) -> PyResult<Bound<'py, PyAny>> {
        if let Some(records) = batch.take_records() {
            return Ok(row::list(py, records)?.into_any());
        }
        let mut lists = batch.take_lists().into_iter().peekable();
        let memory = &Memory::new(py, batch)?;
        let dict = PyDict::new(py);
        let add = |list: List| dict.set_item(PyString::intern(py, &list.name), row::list(py, list.values)?);
        for (number, field) in memory.get().fields().iter().enumerate() {
            while let Some(list) = lists.next_if(|list| list.n_fields_before <= number) {
                add(list)?;
            }
            let array = match self {
                Framework::Numpy => field_array(memory, number, None)?,
                Framework::Torch(torch) => torch.handed(memory, number)?,
                Framework::Jax(asarray) => {
                    let array = field_array(memory, number, None)?;
                    let converted = asarray.bind(py).call1((&array,))?;
                    if matches!(field.dtype, DType::I64 | DType::U64) {
                        check_narrowed(&converted, &array, &field.name)?;
                    }
                    converted
                }
            };
            dict.set_item(PyString::intern(py, &field.name), array)?;
        }
        lists.try_for_each(add)?;
        Ok(dict.into_any())
    }
}

// jax makes 32-bit numbers of 64-bit ones outside its 64-bit mode, and wraps those that do not fit.
fn check_narrowed(converted: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    let dtype = converted.getattr("dtype")?;
    if dtype.getattr("itemsize")?.extract::<usize>()? == 8 {
        return Ok(());
    }
    let numpy = converted.py().import("numpy")?;
    let narrow = numpy.call_method1("asarray", (converted,))?;
    if numpy.call_method1("array_equal", (narrow, array))?.is_truthy()? {
        return Ok(());
    }
    let wide = array.getattr("dtype")?;
    let error = windrow::Error::config(format!(
        "a number of {name} does not fit {dtype}, which jax makes of {wide} in its 32-bit mode"
    ));
    // Stacked rows have the dtypes that they are stored in.
    let hint = "jax.config.update(\"jax_enable_x64\", True); \
                views of token IDs also take dtype=\"uint32\", for IDs below 2^32";
    Err(crate::python::error::raise(converted.py(), &error.hint(hint)))
}

/// One row of a batch as a dict of name → numpy array.
pub(crate) fn row_of<'py>(memory: &Bound<'py, Memory>, row: usize) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(memory.py());
    for (number, field) in memory.get().fields().iter().enumerate() {
        dict.set_item(PyString::intern(memory.py(), &field.name), row_array(memory, number, row)?)?;
    }
    Ok(dict)
}

/// All rows of a batch as dicts: a list, or where torch is imported a sequence that its collate function knows.
pub(crate) fn rows<'py>(memory: &Bound<'py, Memory>, n_rows: usize) -> PyResult<Bound<'py, PyAny>> {
    static ROWS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = memory.py();
    let Some(torch) = imported_torch(py)? else {
        let rows = (0..n_rows).map(|i| row_of(memory, i)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, rows)?.into_any());
    };
    let whole = PyDict::new(py);
    for (number, field) in memory.get().fields().iter().enumerate() {
        whole.set_item(PyString::intern(py, &field.name), torch.field(memory, number)?)?;
    }
    let rows = ROWS.get_or_try_init(py, || py.import("windrow.torch")?.getattr("Rows").map(Bound::unbind))?;
    rows.bind(py).call1((whole,))
}

// torch, if this process has imported it; a view must not import it on its own.
fn imported_torch(py: Python<'_>) -> PyResult<Option<&'static Torch>> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
    if let Some(torch) = TORCH.get(py) {
        return Ok(Some(torch));
    }
    match imported(py, "torch", "from_numpy")? {
        Some(torch) => TORCH.get_or_try_init(py, || Torch::find(&torch)).map(Some),
        None => Ok(None),
    }
}

// A module that this process has imported already; half imported, it has no such function yet.
fn imported<'py>(py: Python<'py>, name: &str, function: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    match modules.cast::<PyDict>().map_err(|e| PyValueError::new_err(e.to_string()))?.get_item(name)? {
        Some(module) if module.hasattr(function)? => Ok(Some(module)),
        _ => Ok(None),
    }
}

/// Sees to it that in a worker process of torch's `DataLoader` what cannot be sent is not waited for.
pub(crate) fn watch_worker(py: Python<'_>) -> PyResult<()> {
    worker_seed(py).map(drop)
}

/// In a worker process of torch's `DataLoader`: the number that it draws again each epoch, the same for all its workers.
pub(crate) fn worker_seed(py: Python<'_>) -> PyResult<Option<u64>> {
    static ASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static GUARD: PyOnceLock<()> = PyOnceLock::new();
    let ask = match ASK.get(py) {
        Some(ask) => ask,
        None => match imported(py, "torch.utils.data", "get_worker_info")? {
            Some(module) => {
                ASK.get_or_try_init(py, || module.getattr("get_worker_info").map(Bound::unbind))?
            }
            None => return Ok(None),
        },
    };
    let worker = ask.bind(py).call0()?;
    if worker.is_none() {
        return Ok(None);
    }
    GUARD.get_or_try_init(py, || py.import("windrow.torch").map(drop))?;
    let (seed, id) = (worker.getattr("seed")?, worker.getattr("id")?);
    Ok(Some(seed.extract::<u64>()?.wrapping_sub(id.extract()?)))
}
