//! Scalers as Python gives them: nothing, a name, or a function from a whole record to as many values.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use windrow::{Custom, DType, DataSet, Error, Samples, ScalerName, ViewRecipe, Whole};
use windrow_core::{Decode, Element, Result, Values};

use crate::array::value_array;
use crate::error::{OrRaise, raise};
use crate::function::described;

/// A scaler by name, and the function where it is one.
pub(crate) struct Scaler {
    /// What the recipe says.
    pub(crate) name: ScalerName,
    /// What Python calls.
    pub(crate) function: Option<Py<PyAny>>,
}

impl Scaler {
    /// `None`, a name in any case, or a callable.
    ///
    /// # Errors
    /// `ConfigError` for an unknown name, `TypeError` for anything else.
    pub(crate) fn read(given: Option<&Bound<'_, PyAny>>) -> PyResult<Scaler> {
        let named = |name| Ok(Scaler { name, function: None });
        let Some(given) = given else { return named(ScalerName::None) };
        if let Ok(text) = given.cast::<PyString>() {
            return match text.to_string().to_lowercase().as_str() {
                "max" => named(ScalerName::Max),
                "zero" => named(ScalerName::Zero),
                _ => Err(raise(
                    given.py(),
                    &Error::config(format!("scaler={text:?}"))
                        .hint("one of max, zero, or a function from an array to one of its shape"),
                )),
            };
        }
        if !given.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "scaler: expected None, \"max\", \"zero\" or a function, found {}",
                given.get_type().name()?
            )));
        }
        // Another name or other code is another plan.
        let custom = Custom::new(&described(given), |_| Ok(Vec::new()));
        let name = ScalerName::Custom(custom.name().to_string());
        Ok(Scaler { name, function: Some(given.clone().unbind()) })
    }
}

/// The samples of a recipe; Ctrl-C ends the computing of statistics.
pub(crate) fn cut(
    py: Python<'_>,
    data: &DataSet,
    recipe: ViewRecipe,
    dtype: Option<DType>,
    function: Option<&Py<PyAny>>,
) -> PyResult<Samples> {
    let custom = match (recipe.scaler(), function) {
        (ScalerName::Custom(name), Some(function)) => {
            let (name, function) = (name.clone(), function.clone_ref(py));
            let called = name.clone();
            Some(Custom::new(&name, move |whole| Python::attach(|py| call(py, &called, &function, whole))))
        }
        _ => None,
    };
    py.detach(|| {
        const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
        let looked = Cell::new(Instant::now());
        let stop = || {
            if looked.get().elapsed() < BETWEEN_LOOKS {
                return false;
            }
            looked.set(Instant::now());
            Python::attach(|py| py.check_signals().is_err())
        };
        data.cut(recipe, dtype, custom.as_ref(), &stop)
    })
    .or_raise(py)
}

fn call(py: Python<'_>, name: &str, function: &Py<PyAny>, whole: Whole<'_>) -> Result<Vec<f32>> {
    // What Python raised comes out as it was.
    let failed =
        |e: PyErr| Error::config(format!("the scaler {name:?} failed")).record(whole.record).caused_by(e);
    let (found, expected, bytes) = called(py, function, whole).map_err(failed)?;
    if found != expected {
        return Err(Error::config(format!(
            "the scaler {name:?} gave an array of shape {found} for one of shape {expected}"
        ))
        .record(whole.record)
        .hint("a scaler gives as many values as it gets: windows are cut afterwards"));
    }
    Ok(bytes)
}

// The shapes of what came back and of what was given, and the numbers.
fn called(py: Python<'_>, function: &Py<PyAny>, whole: Whole<'_>) -> PyResult<(String, String, Vec<f32>)> {
    let stored: Vec<u8> = whole.values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let values = Values {
        bytes: &stored,
        element: Element::little(DType::F32),
        channels: whole.channels.unwrap_or(1),
        decode: Decode::Plain,
    };
    let given = value_array(py, &values, DType::F32, whole.channels.is_some())?;
    // It is the function's own: scaling in place is fine.
    given.call_method1("setflags", (true,))?;
    let expected = given.getattr("shape")?.repr()?.to_string();
    let made = function.bind(py).call1((given,))?;
    let options = PyDict::new(py);
    options.set_item("dtype", "<f4")?;
    let made = py.import("numpy")?.getattr("asarray")?.call((made,), Some(&options))?;
    let found = made.getattr("shape")?.cast_into::<PyTuple>()?.repr()?.to_string();
    let bytes = made.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    let number = |chunk: &[u8]| f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    Ok((found, expected, bytes.as_bytes().chunks_exact(4).map(number).collect()))
}
