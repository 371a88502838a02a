//! Preparation in tasks from Python: what `windrow.prep` is made of.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value, json};
use windrow::dac::WHERE_WEIGHTS;
use windrow::format::Options;
use windrow::prep::{self, Converting, Encoding, Prep, TASK_BYTES, Tokenizing};
use windrow::prepare::IndexOptions;
use windrow::{Error, Paths};

use crate::prepare::Inputs;
use crate::prepare::callback::Watcher;
use crate::python::error::OrRaise;
use crate::python::given::{given, stores};
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

// Plans a job; its path.
fn plan(given: &Bound<'_, PyDict>, stores: &Options) -> PyResult<PathBuf> {
    let py = given.py();
    let Planned { task, inputs, out, options, task_bytes } = Planned::of(given)?;
    let task_bytes = task_bytes.map_or(Ok(TASK_BYTES), |bytes| size_of(&bytes, "task_bytes"))?;
    let path = py.detach(|| match (task.as_str(), &inputs.0[..]) {
        ("tokenize", inputs) => {
            let how = how(&options)?;
            let inputs = Paths::list(inputs).inputs(stores, how.split.as_deref())?;
            prep::plan(&inputs, &out, &how, task_bytes, stores)
        }
        ("index", [base]) => prep::plan_index(base, &out, &indexing(&options)?, task_bytes, stores),
        ("convert", [input]) => prep::plan_convert(input, &out, &converting(&options)?, task_bytes, stores),
        ("encode", [sound]) => prep::plan_encode(sound, &out, &encoding(&options)?, task_bytes, stores),
        ("index" | "convert" | "encode", inputs) => {
            let what = format!("{} inputs; {task} takes one folder, file or pattern", inputs.len());
            Err(Error::config(what).field("inputs"))
        }
        _ => {
            let what = format!("task {task:?}, expected \"tokenize\", \"index\", \"convert\" or \"encode\"");
            Err(Error::config(what).field("task"))
        }
    });
    path.or_raise(py)
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
    struct OfJob {
        job: PathBuf,
        task: Option<Count>,
        num_threads: Option<Count>,
        out: Option<PathBuf>,
        overwrite: Option<bool>,
    }
}

/// What a function of `windrow.prep` does; what is known then: of `plan` the path of the job, of `task` whether it had to be run, of
/// `clean` how many files were removed, else a report as a dict. `options` of `plan` is JSON: those of the task.
#[pyfunction]
pub(crate) fn _prep<'py>(what: &str, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let (py, stores, watcher) = (given.py(), stores(given)?, Watcher::of(given)?);
    if what == "plan" {
        return json::plain(py, &plan(given, &stores)?.to_string_lossy());
    }
    let OfJob { job, task, num_threads, out, overwrite } = OfJob::of(given)?;
    let (task, out) = (task.map_or(0, |task| task.0), out.unwrap_or_default());
    let found = py.detach(|| {
        let prep = Prep::open(&job, &stores)?;
        Ok(match what {
            "task" => {
                prep.check()?;
                json!(prep.run(task, num_threads.map(Count::size), &watcher)?)
            }
            "join" => json!(prep.join(&out, overwrite.unwrap_or_default(), &watcher)?),
            "merge" => json!(prep.merge(&watcher)?),
            "clean" => json!(prep.clean()?),
            _ => json!(prep.status(&watcher)?),
        })
    });
    json::plain(py, &watcher.finish(py, found)?)
}
