//! Scalers as Python gives them: nothing, a name, or a function from a whole record to as many values.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyRange, PyTuple};
use windrow::{Custom, DType, Error, Fit, Samples, Scaler, ViewRecipe, Whole};
use windrow_core::{Decode, Element, Result, Values};

use crate::python::array::value_array;
use crate::python::error::{OrRaise, raise};
use crate::python::function::described;
use crate::python::interrupt::{Attempt, look};
use crate::python::said::{class_of, said, shown};

/// The name of a function that scales, as a recipe has it: another name or other code is another plan.
///
/// # Errors
/// `TypeError` for what cannot be called.
pub(crate) fn name_of(given: &Bound<'_, PyAny>) -> PyResult<String> {
    if !given.is_callable() {
        return Err(PyTypeError::new_err(format!(
            "scaler: expected None, a name such as \"standard\", or a function, found {}",
            class_of(given)?
        )));
    }
    Ok(Custom::named(&described(given, true)?).name().to_string())
}

/// The part of each record that `fit` names: a pair of fractions, or a range of values.
///
/// # Errors
/// `TypeError` for anything else; `ConfigError` for a range with a step.
pub(crate) fn read_fit(given: &Bound<'_, PyAny>) -> PyResult<Fit> {
    let py = given.py();
    if let Ok(range) = given.cast::<PyRange>() {
        let (start, stop, step) = (range.getattr("start")?, range.getattr("stop")?, range.getattr("step")?);
        return match (start.extract(), stop.extract(), step.extract::<i64>()) {
            (Ok(start), Ok(stop), Ok(1)) => Ok(Fit::Values(start, stop)),
            _ => Err(raise(
                py,
                &Error::config(format!("fit={}: expected a range from 0 on, without a step", said(given)?)),
            )),
        };
    }
    match given.extract::<(f64, f64)>().attempt(py)? {
        Some((from, to)) => Ok(Fit::Fraction(from, to)),
        None => Err(PyTypeError::new_err(format!(
            "fit: expected two fractions as (0.0, 0.7), or a range of values, found {}",
            said(given)?
        ))),
    }
}

/// The samples of a recipe; Ctrl-C ends the computing of statistics.
pub(crate) fn cut(
    py: Python<'_>,
    data: &windrow::Dataset,
    recipe: ViewRecipe,
    dtype: Option<DType>,
    function: Option<&Py<PyAny>>,
) -> PyResult<Samples> {
    let recipe = match (recipe.scaler(), function) {
        (Scaler::Custom(named), Some(function)) => {
            let (name, function) = (named.name().to_string(), function.clone_ref(py));
            let called = name.clone();
            let call = move |whole: Whole<'_>| Python::attach(|py| call(py, &called, &function, whole));
            recipe.scaled_by(Custom::new(&name, call))
        }
        _ => recipe,
    };
    py.detach(|| {
        const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
        let looked = Cell::new(Instant::now());
        let stop = || {
            if looked.get().elapsed() < BETWEEN_LOOKS {
                return false;
            }
            looked.set(Instant::now());
            Python::attach(look)
        };
        data.cut(recipe, dtype, &stop)
    })
    .or_raise(py)
}

fn call(py: Python<'_>, name: &str, function: &Py<PyAny>, whole: Whole<'_>) -> Result<Vec<f64>> {
    // What Python raised comes out as it was.
    let failed =
        |e: PyErr| Error::config(format!("the scaler {name:?} failed")).record(whole.record).caused_by(e);
    let (found, expected, bytes) = called(py, function, whole).map_err(failed)?;
    if found != expected {
        return Err(Error::config(format!(
            "the scaler {name:?} gave an array of shape {found} for one of shape {expected}"
        ))
        .record(whole.record)
        .hint("a scaler gives as many values as it gets: windows are made afterwards"));
    }
    Ok(bytes)
}

// The shapes of what came back and of what was given, and the numbers.
fn called(py: Python<'_>, function: &Py<PyAny>, whole: Whole<'_>) -> PyResult<(String, String, Vec<f64>)> {
    let stored: Vec<u8> = whole.values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let values = Values {
        bytes: &stored,
        element: Element::little(DType::F64),
        channels: whole.channels.unwrap_or(1),
        decode: Decode::Plain,
    };
    let given = value_array(py, &values, whole.dtype, whole.channels.is_some())?;
    // It is the function's own: scaling in place is fine.
    given.call_method1("setflags", (true,))?;
    let expected = shown(&given.getattr("shape")?)?;
    let made = function.bind(py).call1((given,))?;
    let options = PyDict::new(py);
    options.set_item("dtype", "<f8")?;
    let made = py.import("numpy")?.getattr("asarray")?.call((made,), Some(&options))?;
    let found = shown(made.getattr("shape")?.cast_into::<PyTuple>()?.as_any())?;
    let bytes = made.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    let numbers = bytes.as_bytes().as_chunks().0.iter().map(|number| f64::from_le_bytes(*number));
    Ok((found, expected, numbers.collect()))
}
