//! Records that are chosen, as Python gives them: numbers, masks and slices of any library's, or a comparison.

use numpy::{PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyRange, PySlice, PyString};
use windrow::{Choose, Condition, Error, Given, Numbers, Op};
use windrow_core::format::{Choice, MOST_IN_TEXT, Options};

use crate::python::dtype::numpy_ready;
use crate::python::error::{OrRaise, raise};
use crate::python::index::many;
use crate::python::said::{class_of, said, text_of};

/// The records of `data` that `which` names.
///
/// # Errors
/// `OutOfRangeError` for one that is not there; `ConfigError` for one that comes twice, a mask of another length, and fractions;
/// `TypeError` for anything else.
pub(crate) fn select(
    py: Python<'_>,
    data: &windrow::Dataset,
    which: &Bound<'_, PyAny>,
) -> PyResult<windrow::Dataset> {
    let choose = |choose: Choose<'_>| py.detach(|| data.select(choose)).or_raise(py);
    if let Ok(slice) = which.cast::<PySlice>() {
        let indices = slice.indices(isize::try_from(data.len())?)?;
        let (start, step) = (indices.start.max(0) as u64, indices.step as i64);
        return choose(Choose::Slice { start, step, n: indices.slicelength as u64 });
    }
    if let Some(slice) = of_range(which, data.len())? {
        return choose(slice);
    }
    if which.is_instance_of::<PyString>() || which.hasattr("keys")? || which.is_none() {
        return Err(no_choice(which)?);
    }
    numpy_ready(py)?;
    let numpy = py.import("numpy")?;
    let given = numpy.call_method1("asarray", (which,))?;
    let array = given.cast::<PyUntypedArray>()?;
    if array.ndim() != 1 {
        return Err(no_choice(which)?);
    }
    let dtype = array.dtype();
    match dtype.kind() {
        b'b' => {
            let mask = numpy.call_method1("ascontiguousarray", (array,))?.call_method1("view", ("uint8",))?;
            let mask: PyReadonlyArray1<'_, u8> = mask.extract()?;
            choose(Choose::Mask(mask.as_slice()?))
        }
        b'u' if dtype.itemsize() == 8 => {
            let numbers: PyReadonlyArray1<'_, u64> = array.extract()?;
            choose(Choose::Numbers(numbers.as_array().to_vec()))
        }
        b'i' | b'u' => {
            let numbers = numpy.call_method1("ascontiguousarray", (array, "int64"))?;
            let numbers: PyReadonlyArray1<'_, i64> = numbers.extract()?;
            choose(Choose::FromEither(numbers.as_slice()?))
        }
        b'f' if array.is_empty() => choose(Choose::Numbers(Vec::new())),
        b'f' => Err(fraction(py, array.as_any())?),
        b'O' => choose(Choose::Numbers(many(array.as_any(), "record", data.len())?)),
        _ => Err(no_choice(which)?),
    }
}

// The first fraction among numbers, or where all are whole the first of them.
fn fraction(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let numbers: Vec<f64> = array.call_method0("tolist")?.extract()?;
    let place = numbers.iter().position(|number| number.fract() != 0.0).unwrap_or(0);
    let error =
        Error::config(format!("{:?}, at place {place}, is not the number of a record", numbers[place]));
    Ok(raise(py, &error.field("select").hint("give whole numbers, or a mask of True and False")))
}

// A range is a slice, unless it counts from both ends.
fn of_range(which: &Bound<'_, PyAny>, len: u64) -> PyResult<Option<Choose<'static>>> {
    let Ok(range) = which.cast::<PyRange>() else { return Ok(None) };
    let n = range.len()? as u64;
    if n == 0 {
        return Ok(Some(Choose::Numbers(Vec::new())));
    }
    let number = |at: isize| range.get_item(at)?.extract::<i64>();
    let (Ok(first), Ok(last), Ok(step)) = (number(0), number(-1), range.getattr("step")?.extract()) else {
        return Ok(None);
    };
    let start = match (u64::try_from(first), u64::try_from(last)) {
        (Ok(first), Ok(_)) => first,
        (Err(_), Err(_)) => {
            let least = first.min(last);
            if least.unsigned_abs() > len {
                return Err(raise(range.py(), &Error::out_of_range("record", least, len)));
            }
            len - first.unsigned_abs()
        }
        _ => return Ok(None),
    };
    Ok(Some(Choose::Slice { start, step, n }))
}

fn no_choice(which: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyTypeError::new_err(format!(
        "select takes a list or array of record numbers, a range, a mask or a slice, not {}",
        class_of(which)?
    )))
}

/// The numbers that chosen records have, as an array; a range where none were chosen.
pub(crate) fn numbers<'py>(py: Python<'py>, data: &windrow::Dataset) -> PyResult<Bound<'py, PyAny>> {
    let Some(chosen) = data.chosen() else {
        return Ok(PyRange::new(py, 0, isize::try_from(data.len())?)?.into_any());
    };
    numpy_ready(py)?;
    let narrow = chosen.of() <= 1 << 32;
    array(py, chosen.numbers(), narrow)
}

fn array<'py>(py: Python<'py>, numbers: &Numbers, narrow: bool) -> PyResult<Bound<'py, PyAny>> {
    Ok(match numbers {
        Numbers::Narrow(numbers) if narrow => PyArray1::from_slice(py, numbers).into_any(),
        Numbers::Wide(numbers) if !narrow => PyArray1::from_slice(py, numbers).into_any(),
        numbers if narrow => {
            let numbers: Vec<u32> = py.detach(|| numbers.iter().map(|number| number as u32).collect());
            PyArray1::from_vec(py, numbers).into_any()
        }
        numbers => PyArray1::from_vec(py, py.detach(|| numbers.iter().collect())).into_any(),
    })
}

/// The condition that three arguments say.
///
/// # Errors
/// `ConfigError` for an operator that there is not, and a value that compares with nothing.
pub(crate) fn condition(column: String, op: &str, value: &Bound<'_, PyAny>) -> PyResult<Condition> {
    let py = value.py();
    let op = Op::parse(op).or_raise(py)?;
    let value = if let Ok(text) = value.cast::<PyString>() {
        Given::Text(text_of(text))
    } else if value.is_none() {
        let error =
            Error::config("None is compared with nothing: a missing value never matches").field("where");
        return Err(raise(py, &error.hint("for records without a value, select by a mask")));
    } else if let Ok(is) = value.cast::<PyBool>() {
        Given::Whole(i64::from(is.is_true()))
    } else if let Ok(number) = value.extract::<i64>() {
        Given::Whole(number)
    } else if let Ok(number) = value.extract::<u64>() {
        Given::Large(number)
    } else if value.is_instance_of::<PyInt>() {
        let error = Error::config(format!("{} is beyond 64 bits", said(value)?)).field("where");
        return Err(raise(py, &error.hint("give a number from -2^63 to 2^64 - 1, or a float")));
    } else if let Ok(number) = value.extract::<f64>() {
        Given::from(number)
    } else {
        return Err(PyTypeError::new_err(format!(
            "where compares with a number or a text, not {}",
            class_of(value)?
        )));
    };
    Ok(Condition { column, op, value })
}

/// Numbers of chosen records that a pickle holds beside its text, which has only their hash.
pub(crate) type Kept = Vec<Py<PyAny>>;

/// Those of these options.
pub(crate) fn kept(py: Python<'_>, options: &Options) -> PyResult<Kept> {
    let long = options.select.iter().filter_map(|choice| match choice {
        Choice::Numbers(numbers)
            if !matches!(numbers, Numbers::Slice { .. }) && numbers.len() > MOST_IN_TEXT =>
        {
            Some(numbers)
        }
        _ => None,
    });
    long.map(|numbers| {
        numpy_ready(py)?;
        Ok(array(py, numbers, matches!(numbers, Numbers::Narrow(_)))?.unbind())
    })
    .collect()
}

/// Puts them back into the options that they are of.
pub(crate) fn filled(py: Python<'_>, options: &mut Options, kept: &Kept) -> PyResult<()> {
    for numbers in kept {
        options.fill_numbers(&one(numbers.bind(py))?);
    }
    Ok(())
}

/// Numbers of records in an array, as `numbers` of a data set gives them, or in each of a list of arrays.
///
/// # Errors
/// `TypeError` for anything else.
pub(crate) fn given(numbers: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Numbers>> {
    let Some(numbers) = numbers else { return Ok(Vec::new()) };
    match numbers.cast::<PyList>() {
        Ok(list) if list.get_item(0).is_ok_and(|first| first.len().is_ok()) => {
            list.iter().map(|numbers| one(&numbers)).collect()
        }
        _ => Ok(vec![one(numbers)?]),
    }
}

fn one(numbers: &Bound<'_, PyAny>) -> PyResult<Numbers> {
    let py = numbers.py();
    numpy_ready(py)?;
    let numbers = py.import("numpy")?.call_method1("ascontiguousarray", (numbers, "uint64"))?;
    let numbers: PyReadonlyArray1<'_, u64> = numbers.extract()?;
    let numbers = numbers.as_slice()?;
    Ok(py.detach(|| Numbers::list(numbers.to_vec())))
}
