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
use crate::python::interrupt::Attempt;
use crate::python::json;
use crate::python::paths::AnyPaths;
use crate::python::said::class_of;
use crate::python::store_options::{StoreOptions, stores};

/// Writes all records of a data set in another format; the output appears complete or not at all.
///
/// Args:
///     ds_or_path: a ``Dataset``, or the path of one, as for ``open``: numbers, or rows where the format holds rows. ``open`` has the options of reading:
///         ``wr.convert(wr.open(path, format="tokens", dtype="uint16", eos=0), …)``. A part of a data set, as
///         ``ds.split(…)`` gives it, is written as it is.
///     out: the folder (shards, forager, codes, flat-tokens) or file to write; of Megatron what both names begin with. Or its URL.
///     to: the format, as for ``write``.
///     dtype: dtype of a written number; None takes that of the input (int32 for uint32 IDs in Megatron's format, int16 for
///         codes).
///     overwrite: replace an existing output.
///     allow_empty: data without any record gives an empty output, in a format that can be opened without one.
///     durable: bring everything to the disk before it becomes visible.
///     progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
///     options: the format's own, as for ``write``.
///     store_options, timeout: of URLs, as for ``open``.
///
/// Returns:
///     A dict: output, files, records, output_bytes, ….
///
/// Raises:
///     ExistsError: something is there, and no ``overwrite``.
///     NotFoundError: there are no records, and no ``allow_empty``.
///     ConfigError: the format cannot hold these records, a number does not fit, or an option of another format is set; the
///         message says why.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> np.arange(6, dtype=np.uint16).tofile(folder / "tokens.bin")
/// >>> ds = wr.open(folder / "tokens.bin", format="tokens", dtype="uint16")
/// >>> wr.convert(ds, folder / "t.jsonl", to="jsonl")["records"]
/// 1
/// >>> (folder / "t.jsonl").read_text()
/// '{"sequence": [0, 1, 2, 3, 4, 5]}\n'
#[pyfunction]
#[pyo3(signature = (ds_or_path, out, *, to, dtype=None, overwrite=false, allow_empty=false, durable=true, progress=None, store_options=None, timeout=None, **options),
       text_signature = "(ds_or_path, out, *, to, dtype=None, overwrite=False, allow_empty=False, durable=True, progress=None, store_options=None, timeout=None, **options)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    ds_or_path: &Bound<'py, PyAny>,
    out: PathBuf,
    to: &str,
    dtype: Option<AnyDType>,
    overwrite: bool,
    allow_empty: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = own_options::writer(py, "convert", to, options)?;
    let stores = stores(py, store_options, timeout)?;
    let stores = Options { allow_empty, ..stores };
    let asked = WriteOptions {
        dtype: dtype.map(|d| d.0),
        overwrite,
        allow_empty,
        durable,
        ..WriteOptions::default()
    };
    let watcher = Watcher::new(py, progress)?;
    if let Ok(data) = ds_or_path.cast::<Dataset>() {
        let data = data.get().data().clone();
        return all_records(py, || Ok(data), &out, format.as_ref(), asked, &stores, watcher);
    }
    let Some(AnyPaths(paths)) = ds_or_path.extract::<AnyPaths>().attempt(py)? else {
        let class = class_of(ds_or_path)?;
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
