//! What tells one Python function from another in every run: its name, and a checksum of what it is made of.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyFrozenSet, PyInt, PyString, PyTuple};

use crate::interrupt::Attempt;
use crate::said::shown;

/// A function's name, and what tells it from another one of that name, as two lambdas are: the checksum of its code, where
/// it has some.
///
/// # Errors
/// What is raised to end the program.
pub(crate) fn described(function: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = function.py();
    let part = |of: &Bound<'_, PyAny>, name: &str| {
        of.getattr(name).and_then(|found| found.extract::<String>()).attempt(py)
    };
    // What is called through its class is named by that.
    let (of, name) = match part(function, "__qualname__")? {
        Some(name) => (function.clone(), name),
        None => {
            let class = function.get_type().into_any();
            let name = part(&class, "__qualname__")?.unwrap_or_default();
            (class, name)
        }
    };
    let name = format!("{}.{name}", part(&of, "__module__")?.unwrap_or_default());
    Ok(match checksum(function).attempt(py)? {
        Some(sum) => format!("{name}#{sum:08x}"),
        None => name,
    })
}

/// [`described`], for what is written in Python.
#[pyfunction]
pub(crate) fn _described(function: &Bound<'_, PyAny>) -> PyResult<String> {
    described(function)
}

fn checksum(function: &Bound<'_, PyAny>) -> PyResult<u32> {
    let mut text = Vec::new();
    add_code(&function.getattr("__code__")?, &mut text)?;
    add_plain(&function.getattr("__defaults__")?, &mut text)?;
    let cells = function.getattr("__closure__")?;
    if !cells.is_none() {
        for cell in cells.try_iter()? {
            // An empty cell holds nothing yet.
            if let Ok(value) = cell?.getattr("cell_contents") {
                add_plain(&value, &mut text)?;
            }
        }
    }
    // That of zlib.
    Ok(crc32fast::hash(&text))
}

fn add_code(code: &Bound<'_, PyAny>, text: &mut Vec<u8>) -> PyResult<()> {
    text.extend(code.getattr("co_code")?.extract::<Vec<u8>>()?);
    text.extend(shown(&code.getattr("co_names")?)?.into_bytes());
    for constant in code.getattr("co_consts")?.try_iter()? {
        let constant = constant?;
        match constant.hasattr("co_code")? {
            true => add_code(&constant, text)?,
            false => add_plain(&constant, text)?,
        }
    }
    Ok(())
}

// Only what is written the same in every run: the repr of an object may hold its address, a set's order is another each time.
fn add_plain(value: &Bound<'_, PyAny>, text: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(set) = value.cast::<PyFrozenSet>() {
        let mut parts = set.iter().map(|part| shown(&part)).collect::<PyResult<Vec<_>>>()?;
        parts.sort();
        text.extend(parts.concat().into_bytes());
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().try_for_each(|part| add_plain(&part, text));
    } else if value.is_none() || is_number_or_text(value) {
        text.extend(shown(value)?.into_bytes());
    }
    Ok(())
}

fn is_number_or_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
}
