//! Preparing data from Python: index, tokenise, verify, dummy tokens.

pub(crate) mod callback;
pub(crate) mod convert;
pub(crate) mod given;
pub(crate) mod keep;
pub(crate) mod own_options;
pub(crate) mod prep;
pub(crate) mod record;
pub(crate) mod text;
pub(crate) mod texts;
pub(crate) mod tokenize;
pub(crate) mod write;

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::prepare::{self, IndexOptions};
use windrow::{Error, formats as all_formats};

use crate::prepare::callback::Watcher;
use crate::python::dtype::numpy_ready;
use crate::python::error::raise;
use crate::python::given::{argument, given, stores};
use crate::python::interrupt::Attempt;
use crate::python::json;
use crate::python::options::Count;
use crate::python::paths::AnyPaths;
use crate::python::waiting::wait_for;

given! {
    struct Indexed {
        path: PathBuf,
        index_folder: String,
        overwrite: bool,
        checksum: bool,
        allow_empty: bool,
    }
}

/// Indexes the lines below a folder; the report as a dict.
#[pyfunction]
pub(crate) fn _index<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let (stores, watcher) = (stores(given)?, Watcher::of(given)?);
    let given = Indexed::of(given)?;
    let options = IndexOptions {
        index_folder: given.index_folder,
        overwrite: given.overwrite,
        checksum: given.checksum,
        allow_empty: given.allow_empty,
        ..IndexOptions::default()
    };
    let report = py.detach(|| prepare::index_with(&given.path, &options, &stores, &watcher));
    json::plain(py, &watcher.finish(py, report)?)
}

/// A path, or several.
pub(crate) struct Inputs(pub(crate) Vec<PathBuf>);

impl<'py> FromPyObject<'_, 'py> for Inputs {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<PathBuf>().attempt(given.py())? {
            Some(path) => Ok(Inputs(vec![path])),
            None => given.try_iter()?.map(|path| path?.extract()).collect::<PyResult<_>>().map(Inputs),
        }
    }
}

/// Checks every claim that is made about what is at a path; what was found as a dict.
#[pyfunction]
pub(crate) fn _verify<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let (path, stores): (AnyPaths, _) = (argument(given, "path")?, stores(given)?);
    let watcher = Watcher::new(py, None)?;
    let options = prepare::VerifyOptions::default();
    let findings = py.detach(|| path.0.verify_with(&options, &stores, &watcher));
    json::plain(py, &watcher.finish(py, findings)?)
}

/// Random token IDs ``[num_tokens]``, uint32, below ``vocab_size``: the same for the same seed.
///
/// Raises:
///     ConfigError: a vocabulary of 0.
///     OutOfMemoryError: more tokens than there is memory for.
///
/// >>> import windrow as wr
/// >>> wr.create_dummy_data(100, 5).dtype, wr.create_dummy_data(100, 5).shape
/// (dtype('uint32'), (5,))
#[pyfunction]
#[pyo3(signature = (vocab_size, num_tokens, seed=Count(0)), text_signature = "(vocab_size, num_tokens, seed=0)")]
pub(crate) fn create_dummy_data(
    py: Python<'_>,
    vocab_size: Count,
    num_tokens: Count,
    seed: Count,
) -> PyResult<Bound<'_, PyArray1<u32>>> {
    if num_tokens.0 > MOST_DUMMY {
        let error = Error::memory(format!("{} tokens", num_tokens.0))
            .hint("write them to a file with `windrow dummy`");
        return Err(raise(py, &error));
    }
    let tokens = wait_for(py, move || prepare::create_dummy_data(vocab_size.0, num_tokens.size(), seed.0))?;
    numpy_ready(py)?;
    Ok(tokens.into_pyarray(py))
}

// A quarter of a terabyte: more is a slip of the finger.
const MOST_DUMMY: u64 = 1 << 36;

/// Runs the program ``windrow`` on these arguments, the first of which is its name, and gives its exit code.
#[pyfunction]
pub(crate) fn _main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> i32 {
    py.detach(|| windrow_cli::main_from(arguments))
}

/// The formats that ``open`` reads: a list of dicts of name, title, layout, records, written_by, holds (``tokens``,
/// ``series``, ``codes``, ``rows``), and the options of ``open`` and of writing that not every format has.
///
/// >>> import windrow as wr
/// >>> "tokens" in [format["name"] for format in wr.formats()]
/// True
#[pyfunction]
pub(crate) fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let rows: Vec<_> = all_formats()
        .iter()
        .map(|format| {
            let info = format.info();
            let holds: Vec<_> = info.holds.iter().map(|holds| holds.name()).collect();
            serde_json::json!({
                "name": info.name,
                "title": info.title,
                "layout": info.layout,
                "records": info.records,
                "written_by": info.written_by,
                "holds": holds,
                "open_options": info.open_options.iter().map(|option| option.row.name).collect::<Vec<_>>(),
                "write_options": windrow::write_options(info.name),
            })
        })
        .collect();
    json::plain(py, &rows)
}
