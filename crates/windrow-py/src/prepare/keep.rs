//! What keeps data from Python: its manifest, and the cache of what was made of it.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use windrow::dev::store::Cache;
use windrow::format::Options;
use windrow::write_manifest;

use crate::python::given::{argument, given, stores};
use crate::python::json;
use crate::python::waiting::wait_for;

given! {
    struct Listing {
        path: PathBuf,
        out: Option<PathBuf>,
        overwrite: bool,
        format: Option<String>,
        index_folder: Option<String>,
    }
}

/// Writes the manifest of a folder; where it is and what it lists as a dict.
#[pyfunction]
pub(crate) fn _manifest<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let stores = stores(given)?;
    let Listing { path, out, overwrite, format, index_folder } = Listing::of(given)?;
    let options = Options { format, index_folder, ..stores };
    let listed = wait_for(py, move || write_manifest(path, &options, out.as_deref(), overwrite))?;
    json::plain(py, &listed)
}

/// What the cache holds as a dict; or clears it, and what that did.
#[pyfunction]
pub(crate) fn _cache<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let clear: bool = argument(given, "clear")?;
    let found = wait_for(py, move || {
        let cache = Cache::of_environment()?;
        Ok(if clear {
            json!({ "folder": cache.folder(), "cleared": cache.clear()? })
        } else {
            json!(cache.held()?)
        })
    })?;
    json::plain(py, &found)
}
