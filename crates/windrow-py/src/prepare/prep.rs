//! Preparation in tasks from Python: what `windrow.prep` is made of.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Serialize;
use serde_json::{Map, Value};
use windrow::dac::WHERE_WEIGHTS;
use windrow::format::Options;
use windrow::prep::{self, Converting, Encoding, Prep, TASK_BYTES, Tokenizing};
use windrow::prepare::{IndexOptions, Watch};
use windrow::{Error, Paths};

use crate::prepare::Inputs;
use crate::prepare::callback::Watcher;
use crate::python::error::OrRaise;
use crate::python::given::{argument, given, stores};
use crate::python::json;
use crate::python::options::{Count, size_of};

given! {
    struct Planned<'py> {
        task: String,
        inputs: Inputs,
        out: PathBuf,
        options: String,
        task_bytes: Option<Bound<'py, PyAny>>,
    }
}

/// Plans a job; its path. ``options`` is JSON: those of the task.
#[pyfunction]
pub(crate) fn _prep_plan<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyString>> {
    let stores = stores(given)?;
    let Planned { task, inputs, out, options, task_bytes } = Planned::of(given)?;
    let task_bytes = task_bytes.map_or(Ok(TASK_BYTES), |bytes| size_of(&bytes, "task_bytes"))?;
    let path = py.detach(|| match (task.as_str(), &inputs.0[..]) {
        ("tokenize", inputs) => {
            let how = how(&options)?;
            let inputs = Paths::list(inputs).inputs(&stores, how.split.as_deref())?;
            prep::plan(&inputs, &out, &how, task_bytes, &stores)
        }
        ("index", [base]) => prep::plan_index(base, &out, &indexing(&options)?, task_bytes, &stores),
        ("convert", [input]) => prep::plan_convert(input, &out, &converting(&options)?, task_bytes, &stores),
        ("encode", [sound]) => prep::plan_encode(sound, &out, &encoding(&options)?, task_bytes, &stores),
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
    let allow_empty = given.remove("allow_empty").is_some_and(|allow| allow == true);
    Ok(Tokenizing { allow_empty, ..Tokenizing::of(given)? })
}

// What is no option of the task is one of the own of the format that is written.
fn converting(options: &str) -> Result<Converting, Error> {
    let (mut how, mut own): (Map<_, _>, Map<_, _>) = given(options)?
        .into_iter()
        .partition(|(name, _)| ["to", "dtype", "opening"].contains(&name.as_str()));
    own.retain(|_, value| !value.is_null());
    let to = how.get("to").and_then(Value::as_str).unwrap_or_default();
    if to.is_empty() {
        let error = Error::config("the format to write is missing").field("to");
        return Err(error.hint("to=\"shards\""));
    }
    let allowed = windrow::write_options(to);
    if let Some(name) = own.keys().find(|name| !allowed.contains(&name.as_str())) {
        return Err(Error::config(format!("{name} is not an option of this task")).field(name.clone()));
    }
    how.insert("own".to_string(), own.into());
    let opening = how.remove("opening");
    let how: Converting = serde_json::from_value(how.into()).map_err(misread)?;
    match opening {
        Some(Value::Object(opening)) => Ok(Converting { opening: Options::of(opening)?, ..how }),
        _ => Ok(how),
    }
}

fn encoding(options: &str) -> Result<Encoding, Error> {
    let how: Encoding = serde_json::from_str(options).map_err(misread)?;
    if how.weights.as_os_str().is_empty() {
        Err(Error::config("the codec's weights are missing").field("weights").hint(WHERE_WEIGHTS))
    } else {
        Ok(how)
    }
}

fn given(options: &str) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(options).map_err(misread)
}

fn misread(e: serde_json::Error) -> Error {
    Error::config("the options cannot be understood").caused_by(e)
}

given! {
    struct Run {
        job: PathBuf,
        task: Count,
        num_threads: Option<Count>,
    }
}

/// Runs a task of a job: whether it had to.
#[pyfunction]
pub(crate) fn _prep_task(py: Python<'_>, given: &Bound<'_, PyDict>) -> PyResult<bool> {
    let (stores, watcher) = (stores(given)?, Watcher::of(given)?);
    let Run { job, task, num_threads } = Run::of(given)?;
    let made = py.detach(|| {
        let prep = Prep::open(&job, &stores)?;
        prep.check()?;
        prep.run(task.0, num_threads.map(Count::size), &watcher)
    });
    watcher.finish(py, made)
}

/// What of a job is done, as a dict.
#[pyfunction]
pub(crate) fn _prep_status<'py>(given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    asked(given, Prep::status)
}

/// Makes one data set of all parts; a report, as a dict.
#[pyfunction]
pub(crate) fn _prep_merge<'py>(given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    asked(given, Prep::merge)
}

// What is known of a job after something was done with all of it, as a dict.
fn asked<'py, T: Serialize + Send>(
    given: &Bound<'py, PyDict>,
    ask: fn(&Prep, &dyn Watch) -> windrow::Result<T>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, stores, watcher) = (given.py(), stores(given)?, Watcher::new(given.py(), None)?);
    let job: PathBuf = argument(given, "job")?;
    let found = py.detach(|| ask(&Prep::open(&job, &stores)?, &watcher));
    json::plain(py, &watcher.finish(py, found)?)
}

/// Writes the files of one run out of the parts; a report, as a dict.
#[pyfunction]
pub(crate) fn _prep_join<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let (stores, watcher) = (stores(given)?, Watcher::of(given)?);
    let (job, out): (PathBuf, PathBuf) = (argument(given, "job")?, argument(given, "out")?);
    let overwrite: bool = argument(given, "overwrite")?;
    let report = py.detach(|| Prep::open(&job, &stores)?.join(&out, overwrite, &watcher));
    json::plain(py, &watcher.finish(py, report)?)
}

/// Removes what killed runs left: how many files.
#[pyfunction]
pub(crate) fn _prep_clean(py: Python<'_>, given: &Bound<'_, PyDict>) -> PyResult<u64> {
    let (job, stores): (PathBuf, _) = (argument(given, "job")?, stores(given)?);
    py.detach(|| Prep::open(&job, &stores)?.clean()).or_raise(py)
}
