//! Rows of named columns as dicts, and dicts as rows.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use windrow::{Array, DType, Row, Value};

use crate::python::array::{as_array, owned_array};
use crate::python::said::{class_of, shown};

/// A dict of the row's values; arrays are read-only.
pub(crate) fn dict(py: Python<'_>, row: Row) -> PyResult<Bound<'_, PyAny>> {
    named(py, row, false)
}

/// A value; arrays are read-only.
pub(crate) fn value(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    object(py, value, false)
}

/// Records of a batch, whose arrays are the caller's to write.
pub(crate) fn list(py: Python<'_>, records: Vec<Value>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    let mut names: Vec<(String, Bound<'_, PyString>)> = Vec::new();
    for record in records {
        let Value::Struct(row) = record else {
            list.append(object(py, record, true)?)?;
            continue;
        };
        let dict = PyDict::new(py);
        for (number, (name, value)) in row.into_iter().enumerate() {
            // Records mostly have the same names in the same order: their strings are made once.
            if names.get(number).is_none_or(|(known, _)| *known != name) {
                names.truncate(number);
                let made = PyString::new(py, &name);
                names.push((name, made));
            }
            dict.set_item(&names[number].1, object(py, value, true)?)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// A record of a batch.
pub(crate) fn record(py: Python<'_>, record: Value) -> PyResult<Bound<'_, PyAny>> {
    object(py, record, true)
}

fn named(py: Python<'_>, row: Row, is_writable: bool) -> PyResult<Bound<'_, PyAny>> {
    let dict = PyDict::new(py);
    for (name, value) in row {
        dict.set_item(name, object(py, value, is_writable)?)?;
    }
    Ok(dict.into_any())
}

fn object(py: Python<'_>, value: Value, is_writable: bool) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Value::I64(value) => value.into_pyobject(py)?.into_any(),
        Value::U64(value) => value.into_pyobject(py)?.into_any(),
        // By its digits, as Python writes it; the whole number of any size.
        Value::Big(digits) => py.get_type::<PyInt>().call1((digits,))?,
        Value::F64(value) => PyFloat::new(py, value).into_any(),
        Value::Text(text) => PyString::new(py, &text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        Value::Array(array) => owned_array(py, array, is_writable)?,
        Value::List(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(object(py, value, is_writable)?)?;
            }
            list.into_any()
        }
        Value::Struct(row) => named(py, row, is_writable)?,
    })
}

/// The row that a dict is.
///
/// # Errors
/// `TypeError` naming the key of what no column holds.
pub(crate) fn of(dict: &Bound<'_, PyDict>) -> PyResult<Row> {
    let mut row = Row::new();
    for (name, item) in dict {
        let Ok(name) = name.extract::<String>() else {
            return Err(PyTypeError::new_err(format!("a column is named by a text, not {}", shown(&name)?)));
        };
        let value = value_of(&item).map_err(|error| {
            if error.is_instance_of::<PyTypeError>(item.py()) {
                PyTypeError::new_err(format!("column {name:?}: {}", error.value(item.py())))
            } else {
                error
            }
        })?;
        row.insert(name, value);
    }
    Ok(row)
}

/// The value that an object is.
///
/// # Errors
/// `TypeError` for what no column holds.
pub(crate) fn value_of(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    if item.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = item.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if item.is_instance_of::<PyInt>() {
        return match item.extract::<i64>() {
            Ok(whole) => Ok(Value::I64(whole)),
            Err(_) => match item.extract::<u64>() {
                Ok(whole) => Ok(Value::U64(whole)),
                Err(_) => Ok(Value::Big(item.str()?.extract()?)),
            },
        };
    }
    if let Ok(value) = item.cast::<PyFloat>() {
        return Ok(Value::F64(value.value()));
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Value::Text(text.extract()?));
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = item.cast::<PyByteArray>() {
        return Ok(Value::Bytes(bytes.to_vec()));
    }
    if let Ok(dict) = item.cast::<PyDict>() {
        return of(dict).map(Value::Struct);
    }
    if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
        return item.try_iter()?.map(|one| value_of(&one?)).collect::<PyResult<_>>().map(Value::List);
    }
    if item.hasattr("dtype")? && item.hasattr("shape")? {
        return array_of(item);
    }
    Err(PyTypeError::new_err(format!("{} is nothing that a column holds", class_of(item)?)))
}

// An array of numpy's, a tensor, or one of numpy's numbers, which is a number here.
fn array_of(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    let array = as_array(item)?;
    let found = array.getattr("dtype")?;
    let kind: String = found.getattr("kind")?.extract()?;
    let shape: Vec<u64> = array.getattr("shape")?.extract()?;
    if shape.is_empty() {
        return value_of(&array.call_method0("item")?);
    }
    let name: String = found.getattr("name")?.extract()?;
    let dtype = DType::parse(&name).ok().filter(|_| "biuf".contains(&kind) || name == "bfloat16");
    let Some(dtype) = dtype else {
        return Err(PyTypeError::new_err(format!("an array of {name} is nothing that a column holds")));
    };
    let little = array.call_method1("astype", (found.call_method1("newbyteorder", ("<",))?,))?;
    let bytes = little.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec();
    Ok(Value::Array(Array { dtype, shape, bytes }))
}
