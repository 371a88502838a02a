//! dtypes on both sides: what users may write for one, and numpy's object for each.

use numpy::PyArrayDescr;
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use windrow::{DType, Error};

use crate::python::error::raise;
use crate::python::interrupt::check;
use crate::python::said::said;

/// A dtype as users write it: numpy's names, `np.dtype`, scalar types, `torch.int64`, `jnp.bfloat16`.
#[derive(Clone, Copy)]
pub(crate) struct AnyDType(pub(crate) DType);

impl<'py> FromPyObject<'_, 'py> for AnyDType {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        let text = said(&given)?;
        let torch_name = text.strip_prefix("torch.");
        if let Some(name) = torch_name.or(given.is_instance_of::<PyString>().then_some(text.as_str())) {
            // numpy reads "i8" as eight bytes, so its reading comes first; bfloat16 it knows only with ml_dtypes.
            if name == "bfloat16" {
                return Ok(AnyDType(DType::Bf16));
            }
            return match py.import("numpy")?.call_method1("dtype", (name,)) {
                Ok(found) => from_numpy(&found),
                Err(e) if !is_refusal(py, &e) => Err(e),
                Err(_) => DType::parse(name).map(AnyDType).map_err(|e| raise(py, &e)),
            };
        }
        match py.import("numpy")?.call_method1("dtype", (given,)) {
            Ok(found) => from_numpy(&found),
            Err(e) if !is_refusal(py, &e) => Err(e),
            Err(_) => Err(PyTypeError::new_err(format!("not a dtype: {text}"))),
        }
    }
}

// Whether numpy refused something that is not a dtype; a Ctrl-C does not count.
fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py)
}

fn from_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<AnyDType> {
    let py = dtype.py();
    if dtype.getattr("byteorder")?.extract::<String>()? == ">" {
        let error = Error::unsupported(format!("big-endian {dtype} as a dtype to choose"))
            .hint("numbers leave in the machine's byte order; what is stored says its own");
        return Err(raise(py, &error));
    }
    let name: String = dtype.getattr("name")?.extract()?;
    DType::parse(&name).map(AnyDType).map_err(|e| raise(py, &e))
}

/// numpy, imported: its bindings have no error for a Ctrl-C that comes while they look for it, they panic.
pub(crate) fn numpy_ready(py: Python<'_>) -> PyResult<()> {
    static READY: PyOnceLock<()> = PyOnceLock::new();
    READY.get_or_try_init(py, || {
        py.import("numpy.lib")?;
        // What waits is raised here, before they run Python.
        check(py)?;
        numpy::dtype::<u8>(py);
        PyResult::Ok(())
    })?;
    Ok(())
}

/// numpy's dtype; for bfloat16 that of `ml_dtypes` where it is installed, else `uint16`.
pub(crate) fn descr<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyArrayDescr>> {
    // One place for each dtype, filled when it is first asked for.
    static DESCRS: [PyOnceLock<Py<PyArrayDescr>>; 13] = [const { PyOnceLock::new() }; 13];
    let made = DESCRS[dtype as usize].get_or_try_init(py, || {
        numpy_ready(py)?;
        let found = match dtype {
            DType::Bf16 => match py.import("ml_dtypes") {
                Ok(module) => PyArrayDescr::new(py, module.getattr("bfloat16")?)?,
                Err(e) if e.is_instance_of::<PyImportError>(py) => PyArrayDescr::new(py, "uint16")?,
                Err(e) => return Err(e),
            },
            other => PyArrayDescr::new(py, other.name())?,
        };
        PyResult::Ok(found.unbind())
    })?;
    Ok(made.bind(py).clone())
}
