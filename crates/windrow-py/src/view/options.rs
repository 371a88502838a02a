//! Options of a view as Python gives them, read as its table says.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, json};
use windrow::{Custom, Error, VIEWS, ViewRecipe};

use crate::python::error::{OrRaise, raise};
use crate::python::given::of_argument;
use crate::python::rows;

/// The recipe of the view of this name.
///
/// # Errors
/// `TypeError` for a value of another type, `ConfigError` for one that is not meant.
pub(crate) fn recipe(py: Python<'_>, view: &str, given: &Bound<'_, PyDict>) -> PyResult<ViewRecipe> {
    let given = given.copy()?;
    if let Some(name) = given.get_item("scaler_name")? {
        given.del_item("scaler_name")?;
        name_scaler(&given, &name)?;
    }
    let given = &given;
    let options = match VIEWS.iter().find(|info| info.name == view) {
        Some(info) => rows::all(info.options().collect::<Vec<_>>().into_iter(), given)?,
        None => Map::new(),
    };
    if view != "windows" && options.get("fields") == Some(&json!([])) {
        let error = Error::config("fields=[]: a sample of no fields").field("fields");
        let hint = "name those that are wanted, or leave fields out for all of them";
        return Err(raise(py, &error.hint(hint)));
    }
    ViewRecipe::of(view, options).or_raise(py)
}

// A function of the caller's has the name that it is given.
fn name_scaler(given: &Bound<'_, PyDict>, name: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = given.py();
    if name.is_none() {
        return Ok(());
    }
    let name: String = name.extract().map_err(|e| of_argument(py, "scaler_name", e))?;
    let scaler = given.get_item("scaler")?.filter(|scaler| scaler.is_callable());
    if scaler.is_none() {
        let error = Error::config(format!("scaler_name={name:?}, but scaler is no function"));
        return Err(raise(
            py,
            &error.field("scaler_name").hint("it names a function that scales: leave it out"),
        ));
    }
    let named = PyDict::new(py);
    named.set_item("custom", Custom::named(&name).name())?;
    given.set_item("scaler", named)
}
