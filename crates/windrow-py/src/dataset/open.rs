//! `windrow.open`, and how a pickle opens its data set again.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use windrow::format::Options;
use windrow::{Error, open_options};

use crate::dataset::Dataset;
use crate::dataset::select::{Kept, filled};
use crate::prepare::callback::{BETWEEN_CALLS, watched_by};
use crate::python::error::{OrRaise, raise};
use crate::python::paths::AnyPaths;
use crate::python::pickled::check;
use crate::python::waiting::{wait_for, wait_watched};
use crate::python::{in_memory, rows};

/// What is at a path, or several, opened with the options of the table; `progress` hears how many objects of a store were looked at.
#[pyfunction]
pub(crate) fn _open(
    py: Python<'_>,
    path: AnyPaths,
    progress: Option<Py<PyAny>>,
    given: &Bound<'_, PyDict>,
) -> PyResult<Dataset> {
    let rows = open_options().collect::<Vec<_>>();
    let options = Options::of(rows::all(rows.into_iter(), given)?).or_raise(py)?;
    let paths = path.absolute();
    let (function, is_own_bar) = watched_by(py, progress, "bar_of_objects")?;
    let watch = function.as_ref().map(|function| {
        let mut last = (Instant::now(), (0, 0));
        move |done: u64, total: u64| {
            if last.1 == (done, total) || (done < total && last.0.elapsed() < BETWEEN_CALLS) {
                return Ok(());
            }
            last = (Instant::now(), (done, total));
            let now = PyDict::new(py);
            now.set_item("done_objects", done)?;
            now.set_item("total_objects", total)?;
            function.call1(py, (now,)).map(drop)
        }
    });
    let opened = wait_watched(py, watch, move || paths.open(&options));
    if let (true, Some(bar)) = (is_own_bar, &function) {
        bar.call_method0(py, "close")?;
    }
    Ok(Dataset::new(opened?))
}

/// Opens a pickled data set again.
#[pyfunction]
#[pyo3(signature = (path, options, data, kept=Vec::new()), text_signature = "(path, options, data, kept=...)")]
pub(crate) fn _reopen(
    py: Python<'_>,
    path: AnyPaths,
    options: &str,
    data: u64,
    kept: Kept,
) -> PyResult<Dataset> {
    let mut options: Options = serde_json::from_str(options)
        .map_err(|e| raise(py, &Error::corrupt("this is not a pickled data set").caused_by(e)))?;
    filled(py, &mut options, &kept)?;
    let opened = {
        let paths = path.0.clone();
        wait_for(py, move || paths.open(&options))?
    };
    check(py, opened.source(), data, &path.0)?;
    Ok(Dataset::new(opened))
}

/// Arrays in memory as records, and a dict beside each: of a frame, or of a pickle that held them.
#[pyfunction]
#[pyo3(signature = (arrays, beside, options="{}", data=None, kept=Vec::new()),
       text_signature = "(arrays, beside, options=\"{}\", data=None, kept=...)")]
pub(crate) fn _in_memory(
    py: Python<'_>,
    arrays: Bound<'_, PyList>,
    beside: Bound<'_, PyList>,
    options: &str,
    data: Option<u64>,
    kept: Kept,
) -> PyResult<Dataset> {
    let mut options: Options = serde_json::from_str(options)
        .map_err(|e| raise(py, &Error::corrupt("this is not a pickled data set").caused_by(e)))?;
    filled(py, &mut options, &kept)?;
    let opened = in_memory::opened(py, &arrays, &beside, &options)?;
    if let Some(expected) = data {
        check(py, opened.source(), expected, opened.paths())?;
    }
    Ok(Dataset::new(opened))
}
