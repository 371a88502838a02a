//! All records of a data set in another format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::format::{Options, WriteFormat, WriteOptions};
use windrow::prepare;

use crate::dataset::Dataset;
use crate::prepare::callback::Watcher;
use crate::prepare::own_options;
use crate::python::dtype::AnyDType;
use crate::python::given::{given, stores};
use crate::python::interrupt::Attempt;
use crate::python::json;
use crate::python::paths::AnyPaths;
use crate::python::said::class_of;

given! {
    struct Given<'py> {
        ds_or_path: Bound<'py, PyAny>,
        out: PathBuf,
        to: String,
        dtype: Option<AnyDType>,
        overwrite: bool,
        allow_empty: bool,
        fsync: bool,
    }
}

/// Writes the records of a data set in another format; the report as a dict.
#[pyfunction]
pub(crate) fn _convert<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let (stores, watcher) = (stores(given)?, Watcher::of(given)?);
    let (own, asked) = (own_options::given(given)?, Given::of(given)?);
    let format = own_options::writer(given, "convert", &asked.to, &own)?;
    let Given { ds_or_path, out, allow_empty, .. } = asked;
    let stores = Options { allow_empty, ..stores };
    let asked = WriteOptions {
        dtype: asked.dtype.map(|d| d.0),
        overwrite: asked.overwrite,
        allow_empty,
        fsync: asked.fsync,
        ..WriteOptions::default()
    };
    if let Ok(data) = ds_or_path.cast::<Dataset>() {
        let data = data.get().data().clone();
        return all_records(py, || Ok(data), &out, format.as_ref(), asked, &stores, watcher);
    }
    let Some(AnyPaths(paths)) = ds_or_path.extract::<AnyPaths>().attempt(py)? else {
        let class = class_of(&ds_or_path)?;
        let hint = "wr.write(out, records, to=…) writes records";
        return Err(PyTypeError::new_err(format!("expected a Dataset or a path, found {class}; {hint}")));
    };
    all_records(py, || paths.open(&stores), &out, format.as_ref(), asked, &stores, watcher)
}

/// Writes what `data` opens; the report as a dict.
pub(crate) fn all_records<'py>(
    py: Python<'py>,
    data: impl FnOnce() -> windrow::Result<windrow::Dataset> + Send,
    out: &Path,
    format: &dyn WriteFormat,
    options: WriteOptions,
    stores: &Options,
    watcher: Watcher,
) -> PyResult<Bound<'py, PyAny>> {
    let report = py.detach(|| {
        let data = data()?;
        let options = WriteOptions { of: data.manifest().cloned().map(Arc::new), ..options };
        prepare::convert_with(data.source().as_ref(), out, format, &options, stores, &watcher)
    });
    json::plain(py, &watcher.finish(py, report)?)
}
