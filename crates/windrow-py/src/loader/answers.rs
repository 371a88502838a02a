//! What a run read and gave: two plans compared, what steps covered, the batch of a step.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use windrow::dev::plan::{Steps, Workspace};
use windrow::dev::{Progress, Watch};
use windrow::{Error, Recipe, Result, compare};

use crate::dataset::select;
use crate::loader::Loader;
use crate::loader::ranks::shard;
use crate::loader::trace::{plan_of, written};
use crate::python::error::{OrRaise, raise};
use crate::python::framework::Framework;
use crate::python::given::given;
use crate::python::json;
use crate::python::near::none_left;
use crate::python::options::Count;
use crate::python::waiting::wait_while;

/// Whether two plans give the same batches; else the first step that differs, and why.
///
/// Steps of the same rows of the same data are compared without reading them, all others byte by byte.
///
/// Args:
///     a, b: a ``Loader``, the dict that ``loader.recipe()`` gives, or the path of a file that holds it.
///     steps: compare at most this number, from the first that can differ.
///     select: as for ``trace``; each array is that of one of the plans, or of both.
///
/// Returns:
///     A dict: ``same``; ``first``, None or a dict of step, epoch and what differs there; ``compared``, the steps that are the
///     same where no difference was found but plans are not the same, else 0; ``differences``, a list of dicts of what (data, view,
///     order, mixture, seed, batch size, last batch, skip), option, and its values a and b.
///
/// Raises:
///     NotFoundError, CorruptError: no file at the path, or no plan.
///     MismatchError: a plan does not fit its data any more.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(100, dtype=np.uint16).tofile(path)
/// >>> view = wr.open(path, dtype="uint16").pack(3)
/// >>> found = wr.diff(view.loader(batch_size=2, seed=1), view.loader(batch_size=2, seed=2))
/// >>> found["same"], found["first"]["step"], found["differences"][0]["what"]
/// (False, 0, 'seed')
#[pyfunction]
#[pyo3(signature = (a, b, *, steps=Count(1000), select=None, **unknown), text_signature = "(a, b, *, steps=1000, select=None)")]
pub(crate) fn diff<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    steps: Count,
    select: Option<Bound<'py, PyAny>>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "diff", unknown)?;
    let (mut a, mut b) = (recipe_of(a)?, recipe_of(b)?);
    for numbers in select::given(select.as_ref())? {
        if let (Err(e), Err(_)) = (a.fill_numbers(&numbers), b.fill_numbers(&numbers)) {
            return Err(raise(py, &e));
        }
    }
    let found = wait_while(py, move |is_wanted| compare(&a, &b, steps.0, is_wanted))?;
    json::plain(py, &found)
}

given! {
    struct Covered<'py> {
        plan: Bound<'py, PyAny>,
        steps: (Count, Count),
        list_records: bool,
        rank: Option<Count>,
        world_size: Option<Count>,
        select: Option<Bound<'py, PyAny>>,
    }
}

/// Which parts, files and records a range of steps read.
#[pyfunction]
pub(crate) fn _coverage<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let Covered { plan, steps, list_records, rank, world_size, select } = Covered::of(given)?;
    let steps = steps.0.0..steps.1.0;
    if steps.end < steps.start {
        let error =
            Error::config(format!("steps {} to {}: they end before they begin", steps.start, steps.end));
        return Err(raise(py, &error.field("steps").hint("give the first step and the one after the last")));
    }
    let (plan, rule, names) = plan_of(&plan, select.as_ref())?;
    let found = wait_while(py, move |is_wanted| -> Result<Value> {
        let rule = Steps { shard: shard(rank, world_size)?, ..rule };
        let covered = plan.covered(&rule, steps.clone(), list_records, &Asked(is_wanted))?;
        let parts = covered.parts.iter().zip(plan.feeds()).enumerate().map(|(number, (part, feed))| {
            let mut object = json!(part);
            object["part"] = json!(number);
            object["name"] = json!(names.get(number));
            object["records_of"] = json!(feed.numbers());
            object
        });
        Ok(json!({ "steps": covered.steps, "parts": parts.collect::<Vec<_>>() }))
    });
    json::plain(py, &found?)
}

// Nobody sees how far it is; Python is asked whether it is wanted.
struct Asked<'a>(&'a (dyn Fn() -> bool + Sync));

impl Watch for Asked<'_> {
    fn progress(&self, _now: Progress) {}

    fn cancelled(&self) -> bool {
        !(self.0)()
    }
}

given! {
    struct Extract<'py> {
        plan: Bound<'py, PyAny>,
        step: Count,
        epoch: Option<Count>,
        rank: Option<Count>,
        world_size: Option<Count>,
        select: Option<Bound<'py, PyAny>>,
    }
}

/// The batch of a step, as a loader of the plan gives it with ``framework="numpy"``.
#[pyfunction]
pub(crate) fn _extract<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let Extract { plan, step, epoch, rank, world_size, select } = Extract::of(given)?;
    let (plan, rule, _) = plan_of(&plan, select.as_ref())?;
    let batch = wait_while(py, move |_| {
        let rule = Steps { shard: shard(rank, world_size)?, ..rule };
        let step = rule.find(plan.sampler(), epoch.map(|e| e.0), step.0)?;
        plan.batch_of(&step, None, &mut Workspace::default())
    })?;
    Framework::Numpy.batch(py, batch)
}

fn recipe_of(given: &Bound<'_, PyAny>) -> PyResult<Recipe> {
    let py = given.py();
    if let Ok(loader) = given.cast::<Loader>() {
        return loader.get().running().builder(py)?.recipe().or_raise(py);
    }
    written(given)?.recipe().or_raise(py)
}
