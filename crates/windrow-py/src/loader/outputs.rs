//! Names and dtypes of fields, as ``names=`` and ``dtypes=`` give them.

use pyo3::prelude::*;
use windrow::{Error, LoaderBuilder};

use crate::python::dtype::AnyDType;
use crate::python::error::raise;
use crate::python::given::of_argument;
use crate::python::mapping::Mapping;

/// The loader with these names and dtypes. `function` is one that gets its fields.
///
/// # Errors
/// `TypeError` for names and dtypes that are none, `ConfigError` where a function gets the fields.
pub(crate) fn of(
    py: Python<'_>,
    builder: LoaderBuilder,
    [names, dtypes]: [&Option<Mapping<'_>>; 2],
    function: Option<&str>,
) -> PyResult<LoaderBuilder> {
    let names: Vec<(String, Option<String>)> =
        names.as_ref().map_or(Ok(Vec::new()), Mapping::items).map_err(|e| of_argument(py, "names", e))?;
    let dtypes: Vec<(String, AnyDType)> =
        dtypes.as_ref().map_or(Ok(Vec::new()), Mapping::items).map_err(|e| of_argument(py, "dtypes", e))?;
    let option = [("names", names.is_empty()), ("dtypes", dtypes.is_empty())];
    let option = option.into_iter().find_map(|(option, is_empty)| (!is_empty).then_some(option));
    if let (Some(option), Some(function)) = (option, function) {
        let error = Error::config(format!(
            "{option}= and {function}= are given: {function} gets the fields of the view, and what it returns has its own"
        ));
        let error =
            error.field(option).hint(format!("leave one of them out; {function} can rename and cast"));
        return Err(raise(py, &error));
    }
    let builder = builder.names(names.iter().map(|(ours, name)| (ours.as_str(), name.as_deref())));
    Ok(builder.dtypes(dtypes.iter().map(|(ours, dtype)| (ours.as_str(), dtype.0))))
}
