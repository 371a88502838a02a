//! Preparation in tasks from Python: what `windrow.prep` is made of.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use windrow::dac::WHERE_WEIGHTS;
use windrow::prep::{self, Converting, Encoding, Prep, TASK_BYTES, Tokenizing};
use windrow::prepare::{IndexOptions, Watch};
use windrow::{Error, Paths};

use crate::prepare::Inputs;
use crate::prepare::callback::Watcher;
use crate::prepare::remainder::remainder_of;
use crate::python::error::OrRaise;
use crate::python::json;
use crate::python::options::{Count, size_of};
use crate::python::store_options::{StoreOptions, stores};

/// Plans a job; its path. ``options`` is JSON: those of the task.
#[pyfunction]
#[pyo3(signature = (task, inputs, out, options, *, task_bytes=None, store_options=None, timeout=None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn _prep_plan<'py>(
    py: Python<'py>,
    task: &str,
    inputs: Inputs,
    out: PathBuf,
    options: &str,
    task_bytes: Option<&Bound<'py, PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyString>> {
    let stores = stores(py, store_options, timeout)?;
    let task_bytes = task_bytes.map_or(Ok(TASK_BYTES), |bytes| size_of(bytes, "task_bytes"))?;
    let path = py.detach(|| match (task, &inputs.0[..]) {
        ("tokenize", inputs) => {
            let how = how(options)?;
            let inputs = Paths::list(inputs).inputs(&stores, how.split.as_deref())?;
            prep::plan(&inputs, &out, &how, task_bytes, &stores)
        }
        ("index", [base]) => prep::plan_index(base, &out, &indexing(options)?, task_bytes, &stores),
        ("convert", [input]) => prep::plan_convert(input, &out, &converting(options)?, task_bytes, &stores),
        ("encode", [sound]) => prep::plan_encode(sound, &out, &encoding(options)?, task_bytes, &stores),
        ("index" | "convert" | "encode", inputs) => {
            let what = format!("{} inputs; {task} takes one folder, file or pattern", inputs.len());
            Err(Error::config(what).field("inputs"))
        }
        _ => {
            let what = format!("task {task:?}, expected \"tokenize\", \"index\", \"convert\" or \"encode\"");
            Err(Error::config(what).field("task"))
        }
    });
    Ok(PyString::new(py, &path.or_raise(py)?.to_string_lossy()))
}

fn indexing(options: &str) -> Result<IndexOptions, Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        index_folder: Option<String>,
        #[serde(default)]
        allow_empty: bool,
    }
    let given: Given = serde_json::from_str(options).map_err(misread)?;
    let index_folder = given.index_folder.unwrap_or_else(|| "index".to_string());
    Ok(IndexOptions { index_folder, allow_empty: given.allow_empty, ..IndexOptions::default() })
}

fn how(options: &str) -> Result<Tokenizing, Error> {
    let mut given = given(options)?;
    let pads = given.get("remainder").is_some_and(|remainder| remainder == "pad");
    if pads {
        given.remove("remainder");
    }
    let pad_value = pad_value(given.remove("pad_value"))?;
    let allow_empty = given.remove("allow_empty").is_some_and(|allow| allow == true);
    let how: Tokenizing = parsed(given, &Tokenizing::default(), windrow::TOKENIZE_TO)?;
    let how = Tokenizing { allow_empty, ..how };
    if !pads && pad_value.is_none() {
        return Ok(how);
    }
    // A job names the ID, which only the tokenizer knows where none is given.
    let eos = if pad_value.is_none() { how.make()?.0.eos() } else { None };
    Ok(Tokenizing { remainder: remainder_of(pads, pad_value, eos)?, ..how })
}

fn pad_value(given: Option<Value>) -> Result<Option<i64>, Error> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    given.as_i64().map(Some).ok_or_else(|| {
        Error::config(format!("pad_value is {given}, expected a token ID, a whole number")).field("pad_value")
    })
}

fn converting(options: &str) -> Result<Converting, Error> {
    let how: Converting = parsed(given(options)?, &Converting::default(), "")?;
    match how.to.is_empty() {
        true => Err(Error::config("the format to write is missing").field("to").hint("to=\"shards\"")),
        false => Ok(how),
    }
}

fn encoding(options: &str) -> Result<Encoding, Error> {
    let how: Encoding = serde_json::from_str(options).map_err(misread)?;
    match how.weights.as_os_str().is_empty() {
        true => Err(Error::config("the codec's weights are missing").field("weights").hint(WHERE_WEIGHTS)),
        false => Ok(how),
    }
}

fn given(options: &str) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(options).map_err(misread)
}

fn misread(e: serde_json::Error) -> Error {
    Error::config("the options cannot be understood").caused_by(e)
}

// What is no option of the task is one of the own of the format that is written.
fn parsed<T: Serialize + DeserializeOwned>(
    given: Map<String, Value>,
    usual: &T,
    to: &str,
) -> Result<T, Error> {
    let known = serde_json::to_value(usual).unwrap_or_default();
    let (mut how, mut own): (Map<_, _>, Map<_, _>) =
        given.into_iter().partition(|(name, _)| name != "own" && known.get(name).is_some());
    let allowed = windrow::write_options(how.get("to").and_then(Value::as_str).unwrap_or(to));
    if let Some(name) = own.keys().find(|name| !allowed.contains(&name.as_str())) {
        return Err(Error::config(format!("{name} is not an option of this task")).field(name.clone()));
    }
    own.retain(|_, value| !value.is_null());
    how.insert("own".to_string(), own.into());
    serde_json::from_value(how.into()).map_err(misread)
}

/// Runs a task of a job: whether it had to.
#[pyfunction]
#[pyo3(signature = (job, task, *, threads=None, scratch=None, durable=true, progress=None, store_options=None, timeout=None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn _prep_task(
    py: Python<'_>,
    job: PathBuf,
    task: Count,
    threads: Option<Count>,
    scratch: Option<PathBuf>,
    durable: bool,
    progress: Option<Py<PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
) -> PyResult<bool> {
    let (stores, watcher) = (stores(py, store_options, timeout)?, Watcher::new(py, progress)?);
    let made = py.detach(|| {
        let prep = Prep::open_with(&job, scratch.as_deref(), durable, &stores)?;
        prep.check()?;
        prep.run(task.0, threads.map(Count::size), &watcher)
    });
    watcher.finish(py, made)
}

/// What of a job is done, as a dict.
#[pyfunction]
#[pyo3(signature = (job, *, store_options=None, timeout=None))]
pub(crate) fn _prep_status<'py>(
    py: Python<'py>,
    job: PathBuf,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    asked(py, &job, store_options, timeout, Prep::status)
}

/// Makes one data set of all parts; a report, as a dict.
#[pyfunction]
#[pyo3(signature = (job, *, store_options=None, timeout=None))]
pub(crate) fn _prep_merge<'py>(
    py: Python<'py>,
    job: PathBuf,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    asked(py, &job, store_options, timeout, Prep::merge)
}

// What is known of a job after something was done with all of it, as a dict.
fn asked<'py, T: Serialize + Send>(
    py: Python<'py>,
    job: &Path,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
    ask: fn(&Prep, &dyn Watch) -> windrow::Result<T>,
) -> PyResult<Bound<'py, PyAny>> {
    let (stores, watcher) = (stores(py, store_options, timeout)?, Watcher::new(py, None)?);
    let found = py.detach(|| ask(&Prep::open(job, &stores)?, &watcher));
    json::plain(py, &watcher.finish(py, found)?)
}

/// Writes the files of one run out of the parts; a report, as a dict.
#[pyfunction]
#[pyo3(signature = (job, out, *, overwrite=false, progress=None, store_options=None, timeout=None))]
pub(crate) fn _prep_join<'py>(
    py: Python<'py>,
    job: PathBuf,
    out: PathBuf,
    overwrite: bool,
    progress: Option<Py<PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let (stores, watcher) = (stores(py, store_options, timeout)?, Watcher::new(py, progress)?);
    let report = py.detach(|| Prep::open(&job, &stores)?.join(&out, overwrite, &watcher));
    json::plain(py, &watcher.finish(py, report)?)
}

/// Removes what killed runs left: how many files.
#[pyfunction]
#[pyo3(signature = (job, *, store_options=None, timeout=None))]
pub(crate) fn _prep_clean(
    py: Python<'_>,
    job: PathBuf,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
) -> PyResult<u64> {
    let stores = stores(py, store_options, timeout)?;
    py.detach(|| Prep::open(&job, &stores)?.clean()).or_raise(py)
}
