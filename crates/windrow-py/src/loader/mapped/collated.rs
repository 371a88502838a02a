//! What a function made of the rows of a batch, side by side: columns that are arrays, or lists.

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList};
use windrow::Error;

use super::place::RowPlace;
use crate::python::array::as_array;
use crate::python::error::raise;
use crate::python::framework::Framework;
use crate::python::said::{class_of, said, shown};

/// The results of a batch.
pub(crate) enum Made {
    /// One for each row, as they are.
    Results(Py<PyList>),
    /// Numbers or arrays, stacked.
    Stacked(Py<PyAny>),
    /// Dicts as one: name → column.
    Named(Vec<(Py<PyAny>, Column)>),
}

pub(crate) enum Column {
    Array(Py<PyAny>),
    List(Py<PyList>),
}

const HINT: &str = "make them of one shape and dtype in map, or let collate= join them";

impl Made {
    /// The results as they are.
    pub(super) fn results(py: Python<'_>, results: &[Bound<'_, PyAny>]) -> PyResult<Made> {
        Ok(Made::Results(PyList::new(py, results)?.unbind()))
    }

    /// Dicts with the same keys as one of columns; numbers or arrays stacked; else a list. `place` says where a row is of.
    ///
    /// # Errors
    /// `MismatchError` for dicts of other keys, and for numbers or arrays of another shape or dtype; `ConfigError` for nothing.
    pub(super) fn of(
        py: Python<'_>,
        results: &[Bound<'_, PyAny>],
        place: &dyn Fn(usize) -> RowPlace,
    ) -> PyResult<Made> {
        let Some(first) = results.first() else { return Made::results(py, results) };
        let refuse =
            |row: usize, what: String, hint: &str| raise(py, &place(row).at(Error::config(what)).hint(hint));
        if let Some(row) = results.iter().position(|result| result.is_none()) {
            return Err(refuse(row, "map returned None".to_string(), "return the row that the batch gets"));
        }
        if let Some(dicts) = all_dicts(results) {
            return named(py, &dicts, place);
        }
        let kinds = results.iter().map(Kind::of).collect::<PyResult<Vec<_>>>()?;
        if !kinds.iter().any(|kind| matches!(kind, Kind::Other)) {
            return Ok(match stacked(py, None, results, &kinds, place)? {
                Column::Array(array) => Made::Stacked(array),
                Column::List(list) => Made::Results(list),
            });
        }
        if first.hasattr("__await__")? {
            let what = format!("map returned a {}", class_of(first)?);
            return Err(refuse(0, what, "map is called in threads: give it a function without async"));
        }
        Made::results(py, results)
    }

    /// As the framework has it.
    pub(crate) fn handed<'py>(self, py: Python<'py>, framework: &Framework) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Made::Results(list) => Ok(list.into_bound(py).into_any()),
            Made::Stacked(array) => framework.array(array.into_bound(py), "the results of map"),
            Made::Named(columns) => {
                let dict = PyDict::new(py);
                for (name, column) in columns {
                    match column {
                        Column::Array(array) => {
                            let called = said(name.bind(py))?;
                            dict.set_item(name, framework.array(array.into_bound(py), &called)?)?;
                        }
                        Column::List(list) => dict.set_item(name, list)?,
                    }
                }
                Ok(dict.into_any())
            }
        }
    }
}

fn all_dicts<'a, 'py>(results: &'a [Bound<'py, PyAny>]) -> Option<Vec<&'a Bound<'py, PyDict>>> {
    results.iter().map(|result| result.cast::<PyDict>().ok()).collect()
}

fn named(py: Python<'_>, dicts: &[&Bound<'_, PyDict>], place: &dyn Fn(usize) -> RowPlace) -> PyResult<Made> {
    let names = dicts[0].keys();
    let mut columns = Vec::with_capacity(names.len());
    for name in &names {
        let mut values = Vec::with_capacity(dicts.len());
        for (row, dict) in dicts.iter().enumerate() {
            let Some(value) = dict.get_item(&name)? else {
                let what = format!("no key {} here, but in record {}", shown(&name)?, place(0).record());
                return Err(raise(py, &place(row).at(Error::mismatch(what)).hint(KEYS)));
            };
            values.push(value);
        }
        let column = column(py, &said(&name)?, &values, place)?;
        columns.push((name.unbind(), column));
    }
    for (row, dict) in dicts.iter().enumerate().filter(|(_, dict)| dict.len() != names.len()) {
        for name in dict.keys() {
            if !names.contains(&name)? {
                let what = format!("a key {} here, but none in record {}", shown(&name)?, place(0).record());
                return Err(raise(py, &place(row).at(Error::mismatch(what)).hint(KEYS)));
            }
        }
    }
    Ok(Made::Named(columns))
}

const KEYS: &str = "map returns the same keys for each row of a batch; with collate= any";

fn column(
    py: Python<'_>,
    name: &str,
    values: &[Bound<'_, PyAny>],
    place: &dyn Fn(usize) -> RowPlace,
) -> PyResult<Column> {
    let kinds = values.iter().map(Kind::of).collect::<PyResult<Vec<_>>>()?;
    if kinds.iter().all(|kind| matches!(kind, Kind::Other)) {
        return Ok(Column::List(PyList::new(py, values)?.unbind()));
    }
    stacked(py, Some(name), values, &kinds, place)
}

/// What is known of a value of a column.
enum Kind<'py> {
    Bool,
    Whole,
    Fraction,
    Array(Bound<'py, PyUntypedArray>),
    Other,
}

impl<'py> Kind<'py> {
    fn of(value: &Bound<'py, PyAny>) -> PyResult<Kind<'py>> {
        if let Ok(array) = value.cast::<PyUntypedArray>() {
            return Ok(Kind::of_array(array.clone()));
        }
        if value.is_instance_of::<PyBool>() {
            return Ok(Kind::Bool);
        }
        if value.is_instance_of::<PyInt>() {
            return Ok(Kind::Whole);
        }
        if value.is_exact_instance_of::<PyFloat>() {
            return Ok(Kind::Fraction);
        }
        if !(value.hasattr("dtype")? && value.hasattr("shape")?) {
            return Ok(Kind::Other);
        }
        // A number of NumPy's, a tensor, an array of JAX's.
        match as_array(value)?.cast_into::<PyUntypedArray>() {
            Ok(array) => Ok(Kind::of_array(array)),
            Err(_) => Ok(Kind::Other),
        }
    }

    // Texts, times and objects are not stacked.
    fn of_array(array: Bound<'py, PyUntypedArray>) -> Kind<'py> {
        let dtype = array.dtype();
        let is_number = match dtype.kind() {
            b'b' | b'i' | b'u' | b'f' | b'c' => true,
            // NumPy's word for what another package defines, and for structs.
            b'V' => !dtype.has_fields() && dtype.num() > 255,
            _ => false,
        };
        if is_number { Kind::Array(array) } else { Kind::Other }
    }

    fn is_like(&self, other: &Kind<'py>) -> bool {
        match (self, other) {
            (Kind::Array(ours), Kind::Array(theirs)) => {
                ours.shape() == theirs.shape() && ours.dtype().is_equiv_to(&theirs.dtype())
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn said(&self, value: &Bound<'py, PyAny>) -> PyResult<String> {
        Ok(match self {
            Kind::Bool => "bool []".to_string(),
            Kind::Whole => "int64 []".to_string(),
            Kind::Fraction => "float64 []".to_string(),
            Kind::Array(array) => format!("{} {:?}", said(array.dtype().as_any())?, array.shape()),
            Kind::Other => class_of(value)?,
        })
    }
}

fn stacked(
    py: Python<'_>,
    name: Option<&str>,
    values: &[Bound<'_, PyAny>],
    kinds: &[Kind<'_>],
    place: &dyn Fn(usize) -> RowPlace,
) -> PyResult<Column> {
    if let Some(row) = kinds.iter().position(|kind| !kind.is_like(&kinds[0])) {
        let (here, there) = (kinds[row].said(&values[row])?, kinds[0].said(&values[0])?);
        let name = name.map_or("the results of map".to_string(), |name| format!("column {name:?}"));
        let what = format!("{name}: {here} here, {there} in record {}", place(0).record());
        return Err(raise(py, &place(row).at(Error::mismatch(what)).hint(HINT)));
    }
    let numpy = |function: &'static str| py.import("numpy")?.getattr(function);
    let array = |dtype: &str| numpy("array")?.call1((PyList::new(py, values)?, dtype));
    let made = match &kinds[0] {
        Kind::Array(_) => {
            static STACK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let stack = STACK.get_or_try_init(py, || numpy("stack").map(Bound::unbind))?;
            let arrays = kinds.iter().filter_map(|kind| match kind {
                Kind::Array(array) => Some(array),
                _ => None,
            });
            stack.bind(py).call1((arrays.collect::<Vec<_>>(),))?
        }
        Kind::Bool => array("bool")?,
        Kind::Fraction => array("float64")?,
        Kind::Whole | Kind::Other => match array("int64").or_else(|_| array("uint64")) {
            Ok(made) => made,
            // Numbers beyond 64 bits.
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
                return Ok(Column::List(PyList::new(py, values)?.unbind()));
            }
            Err(error) => return Err(error),
        },
    };
    Ok(Column::Array(made.unbind()))
}
