//! What tells one Python function from another in every run: its name, and a checksum of what it is made of.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyFrozenSet, PyFunction, PyInt, PyString, PyTuple, PyType};

use crate::interrupt::Attempt;
use crate::said::shown;

/// Functions in functions are looked at so far: one may hold itself.
const MOST_DEPTH: u32 = 4;

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
    Ok(match checksum(function).attempt(py)?.flatten() {
        Some(sum) => format!("{name}#{sum:08x}"),
        None => name,
    })
}

/// [`described`], for what is written in Python.
#[pyfunction]
pub(crate) fn _described(function: &Bound<'_, PyAny>) -> PyResult<String> {
    described(function)
}

// Of what it is made of beside its name; `None` where that cannot be seen.
fn checksum(function: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    let mut text = Vec::new();
    add_function(function, 0, &mut text)?;
    // That of zlib.
    Ok((!text.is_empty()).then(|| crc32fast::hash(&text)))
}

// A function's code and what it holds: its own, or that of the class through which it is called.
fn add_function(function: &Bound<'_, PyAny>, depth: u32, text: &mut Vec<u8>) -> PyResult<()> {
    if depth > MOST_DEPTH {
        return Ok(());
    }
    if function.is_instance(&function.py().import("functools")?.getattr("partial")?)? {
        add_part(described(&function.getattr("func")?)?.as_bytes(), text);
        add_value(&function.getattr("args")?, depth, text)?;
        return add_named(&function.getattr("keywords")?, depth, text);
    }
    if !function.hasattr("__code__")? {
        add_fields(function, depth, text)?;
        let call = function.get_type().getattr("__call__")?;
        return match call.hasattr("__code__")? {
            true => add_function(&call, depth + 1, text),
            false => Ok(()),
        };
    }
    // A method's object.
    if function.hasattr("__self__")? {
        add_fields(&function.getattr("__self__")?, depth, text)?;
    }
    add_code(&function.getattr("__code__")?, text)?;
    add_value(&function.getattr("__defaults__")?, depth, text)?;
    let named = function.getattr("__kwdefaults__")?;
    if !named.is_none() {
        add_named(&named, depth, text)?;
    }
    let cells = function.getattr("__closure__")?;
    if !cells.is_none() {
        for cell in cells.try_iter()? {
            // An empty cell holds nothing yet.
            if let Ok(value) = cell?.getattr("cell_contents") {
                add_value(&value, depth, text)?;
            }
        }
    }
    Ok(())
}

fn add_fields(object: &Bound<'_, PyAny>, depth: u32, text: &mut Vec<u8>) -> PyResult<()> {
    match object.hasattr("__dict__")? && !object.is_instance_of::<PyType>() {
        true => add_named(&object.getattr("__dict__")?, depth, text),
        false => Ok(()),
    }
}

// What of named values is plain, by their names.
fn add_named(values: &Bound<'_, PyAny>, depth: u32, text: &mut Vec<u8>) -> PyResult<()> {
    let mut named: Vec<(String, Bound<'_, PyAny>)> = Vec::new();
    for item in values.call_method0("items")?.try_iter()? {
        named.push(item?.extract()?);
    }
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (name, value) in &named {
        let mut inner = Vec::new();
        add_value(value, depth, &mut inner)?;
        if !inner.is_empty() {
            add_part(name.as_bytes(), text);
            text.append(&mut inner);
        }
    }
    Ok(())
}

fn add_code(code: &Bound<'_, PyAny>, text: &mut Vec<u8>) -> PyResult<()> {
    add_part(&code.getattr("co_code")?.extract::<Vec<u8>>()?, text);
    add_part(shown(&code.getattr("co_names")?)?.as_bytes(), text);
    for constant in code.getattr("co_consts")?.try_iter()? {
        let constant = constant?;
        match constant.hasattr("co_code")? {
            true => add_code(&constant, text)?,
            false => add_value(&constant, 0, text)?,
        }
    }
    Ok(())
}

// Only what is written the same in every run: the repr of an object may hold its address, a set's order is another each time.
fn add_value(value: &Bound<'_, PyAny>, depth: u32, text: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(set) = value.cast::<PyFrozenSet>() {
        let mut parts = set.iter().map(|part| shown(&part)).collect::<PyResult<Vec<_>>>()?;
        parts.sort();
        add_part(&parts.len().to_le_bytes(), text);
        parts.iter().for_each(|part| add_part(part.as_bytes(), text));
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        add_part(&tuple.len().to_le_bytes(), text);
        return tuple.iter().try_for_each(|part| add_value(&part, depth, text));
    } else if value.is_none() || is_number_or_text(value) {
        add_part(shown(value)?.as_bytes(), text);
    } else if value.is_exact_instance_of::<PyFunction>() {
        add_function(value, depth + 1, text)?;
    }
    Ok(())
}

// With its length, so that what follows is never taken for a part of it.
fn add_part(part: &[u8], text: &mut Vec<u8>) {
    text.extend((part.len() as u64).to_le_bytes());
    text.extend(part);
}

fn is_number_or_text(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
}
