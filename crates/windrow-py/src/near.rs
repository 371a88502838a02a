//! A name that is not there: the error says which one is meant, or what windrow has instead.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

/// What other libraries' data sets have, and what to type instead.
const ELSEWHERE: [(&str, &str); 8] = [
    ("batch", "wr.Loader(view, batch_size=32)"),
    ("map", "wr.Loader(view, collate=function)"),
    ("prefetch", "wr.Loader(view, prefetch=4)"),
    ("repeat", "wr.Loader(view).stream()"),
    ("select", "ds[[0, 2]]"),
    ("shard", "wr.Loader(view, rank=0, world_size=2)"),
    ("shuffle", "wr.Loader(view, shuffle=True)"),
    ("take", "ds[:10]"),
];

/// The `AttributeError` of an object of ours that has no attribute `name`.
pub(crate) fn no_attribute(of: &Bound<'_, PyAny>, name: &str) -> PyErr {
    told(of, name).map_or_else(|error| error, PyAttributeError::new_err)
}

fn told(of: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let class = of.get_type();
    let plain = format!("{:?} object has no attribute {name:?}", class.name()?.to_string()).replace('"', "'");
    // Libraries look for such names all the time.
    if name.starts_with('_') {
        return Ok(plain);
    }
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(other, _)| *other == name) {
        return Ok(format!("{plain}; use {instead}"));
    }
    let names: Vec<String> = class.dir()?.iter().map(|name| name.extract()).collect::<PyResult<_>>()?;
    Ok(match near(of.py(), name, names.into_iter().filter(|name| !name.starts_with('_')).collect())? {
        Some(meant) => format!("{plain}; did you mean '{meant}'?"),
        None => plain,
    })
}

/// The name that is most like the one given, if one is.
pub(crate) fn near(py: Python<'_>, given: &str, names: Vec<String>) -> PyResult<Option<String>> {
    let found = py.import("difflib")?.call_method1("get_close_matches", (given, names, 1))?;
    Ok(found.extract::<Vec<String>>()?.into_iter().next())
}
