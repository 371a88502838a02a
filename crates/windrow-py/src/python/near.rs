//! A name that is not there: the error says which one is meant, or what windrow has instead.

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::said::text_of;

/// What other libraries' data sets have, and what to type instead.
const ELSEWHERE: [(&str, &str); 8] = [
    ("batch", "wr.Loader(view, batch_size=32)"),
    ("map", "wr.Loader(view, collate=function)"),
    ("prefetch", "wr.Loader(view, prefetch=4)"),
    ("repeat", "wr.Loader(view).stream()"),
    ("filter", "ds.where(\"score\", \">=\", 0.8), or ds.select(mask)"),
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
    let plain = format!("{:?} object has no attribute {name:?}", text_of(&class.name()?)).replace('"', "'");
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

/// Options as other libraries call them, or windrow once did, and what they are called here.
const RENAMED: [(&str, &str); 28] = [
    ("batch", "batch_size"),
    ("block_size", "length"),
    ("collate_fn", "collate"),
    ("context_len", "context_length"),
    ("drop_remainder", "drop_last"),
    ("durable", "fsync"),
    ("eos", "document_eos"),
    ("eos_id", "document_eos"),
    ("eos_id", "eos"),
    ("eos_token_id", "document_eos"),
    ("eos_token_id", "eos"),
    ("generator", "seed"),
    ("horizon", "prediction_length"),
    ("max_length", "length"),
    ("max_seq_length", "length"),
    ("num_epochs", "epochs"),
    ("num_replicas", "world_size"),
    ("num_workers", "num_threads"),
    ("pad_id", "pad_value"),
    ("pad_token_id", "pad_value"),
    ("prefetch_factor", "prefetch"),
    ("sampler", "shuffle"),
    ("seq_len", "length"),
    ("seq_length", "length"),
    ("text_column", "text_field"),
    ("threads", "num_threads"),
    ("verify", "verify_checksums"),
    ("workers", "num_threads"),
];

/// Refuses options that a function does not have, naming the one that is meant. `name` is the function's, or that of a
/// class and its method.
///
/// # Errors
/// `TypeError`, as Python's own.
pub(crate) fn none_left(py: Python<'_>, name: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some(given) = unknown.and_then(|unknown| unknown.keys().get_item(0).ok()) else { return Ok(()) };
    let given: String = given.extract()?;
    let called = name.rsplit('.').next().unwrap_or(name);
    Err(PyTypeError::new_err(_unexpected(py, called, &given, options_of(py, name)?)?))
}

/// The message about an option that a function does not have.
#[pyfunction]
pub(crate) fn _unexpected(
    py: Python<'_>,
    called: &str,
    given: &str,
    options: Vec<String>,
) -> PyResult<String> {
    let plain = format!("{called}() got an unexpected keyword argument '{given}'");
    Ok(match meant(py, given, options)? {
        Some(hint) => format!("{plain}; {hint}"),
        None => plain,
    })
}

/// The names of a function's own arguments. `name` as for [`none_left`].
pub(crate) fn options_of(py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
    let mut function = py.import("windrow._native")?.into_any();
    for part in name.split('.') {
        function = function.getattr(part)?;
    }
    let signature: String = function.getattr("__text_signature__")?.extract()?;
    Ok(signature
        .trim_matches(['(', ')'])
        .split(',')
        .filter_map(|option| option.split('=').next())
        .map(|option| option.trim().to_string())
        .filter(|option| option.starts_with(char::is_alphabetic))
        .collect())
}

/// Which of `options` the name given means, as the end of a sentence.
pub(crate) fn meant(py: Python<'_>, given: &str, options: Vec<String>) -> PyResult<Option<String>> {
    let renamed = RENAMED.iter().find(|(other, ours)| *other == given && options.iter().any(|o| o == ours));
    Ok(match renamed {
        Some((_, ours)) => Some(format!("use {ours}=")),
        None => near(py, given, options)?.map(|meant| format!("did you mean '{meant}'?")),
    })
}
