//! What distinguishes one Python function from another in every run, as the package finds it.

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use windrow::dev::output::hash_of;

/// Its name, and a hash of what it is made of. With `is_plan` it goes into a plan, which two functions must not share.
///
/// # Errors
/// `ConfigError` for one of a plan that cannot be distinguished from others.
pub(crate) fn described(function: &Bound<'_, PyAny>, is_plan: bool) -> PyResult<String> {
    let py = function.py();
    let options = [("is_plan", is_plan)].into_py_dict(py)?;
    py.import("windrow._function")?.getattr("word")?.call((function,), Some(&options))?.extract()
}

/// The xxh3 of bytes, 16 hexadecimal digits.
#[pyfunction]
pub(crate) fn _hash(bytes: &[u8]) -> String {
    hash_of(bytes)
}
