//! What a step read, and which steps read a record.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use windrow::dev::plan::{Step, Steps};
use windrow::{Error, Kind, Plan, Recipe, Result, TracedRow, rows_of_step};

use crate::dataset::select;
use crate::loader::Loader;
use crate::loader::ranks::shard;
use crate::python::error::{OrRaise, raise};
use crate::python::given::given;
use crate::python::interrupt::Attempt;
use crate::python::json;
use crate::python::near::none_left;
use crate::python::options::Count;
use crate::python::said::class_of;
use crate::python::waiting::{wait_for, wait_while};

given! {
    struct Given<'py> {
        plan: Bound<'py, PyAny>,
        step: Count,
        row: Option<Count>,
        select: Option<Bound<'py, PyAny>>,
        epoch: Option<Count>,
        rank: Option<Count>,
        world_size: Option<Count>,
    }
}

/// Which bytes a step read, row by row.
#[pyfunction]
pub(crate) fn _trace<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let Given { plan, step, row, select, epoch, rank, world_size } = Given::of(given)?;
    let (plan, steps, _) = plan_of_numbers(&plan, select.as_ref())?;
    let traced = wait_while(py, move |is_wanted| -> Result<Vec<TracedRow>> {
        let step = steps.find(plan.sampler(), epoch.map(|e| e.0), step.0)?;
        let n_ranks = world_size.map_or(steps.shard.world_size(), |ranks| ranks.0);
        let step = Step { shard: shard(rank, world_size)?, ..step };
        let rows = rows_of_step(&plan, &step, row.map(|row| row.0), n_ranks)?;
        let rows = rows.into_iter().map(|row| {
            if is_wanted() {
                row.trace(&plan, step.epoch)
            } else {
                Err(Error::new(Kind::Interrupted, "stopped before the end"))
            }
        });
        rows.collect()
    });
    json::plain(py, &traced?)
}

/// Which steps of an epoch read a record: the inverse of ``trace``.
///
/// Args:
///     plan: as for ``trace``.
///     record: the record's number in its data set.
///     part: the view of a mixture: its name, or its number from 0.
///     epoch: the epoch, from 0.
///     most: the largest number of positions that are found.
///
/// Returns:
///     A list of dicts: step and row in the epoch, position, sample, and of a mix part_name. Steps that ``drop_last`` leaves out are not in it.
///
/// Raises:
///     OutOfRangeError: no such record or part, or no such epoch in this run.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(10, dtype=np.uint16).tofile(path)
/// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, shuffle=False)
/// >>> [found["step"] for found in wr.find(loader, record=0)]
/// [0, 1, 2]
#[pyfunction]
#[pyo3(signature = (plan, record, *, part=Part::Number(Count(0)), epoch=Count(0), most=Count(1000), **unknown),
       text_signature = "(plan, record, *, part=0, epoch=0, most=1000)")]
pub(crate) fn find<'py>(
    py: Python<'py>,
    plan: &Bound<'py, PyAny>,
    record: Count,
    part: Part,
    epoch: Count,
    most: Count,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "find", unknown)?;
    let (plan, steps, names) = plan_of(plan)?;
    let part = part.number(&names).or_raise(py)?;
    if let Some(most) = steps.epochs.filter(|most| epoch.0 >= *most) {
        return Err(raise(py, &Error::out_of_range("epoch", epoch.0, most)));
    }
    let searched = plan.clone();
    let name = names.get(part).cloned();
    let found = wait_while(py, move |is_wanted| {
        // `skip` and `drop_last` may leave out any number of positions.
        let is_delivered = |at| steps.places(searched.sampler(), epoch.0, at).next().is_some();
        searched.find_while(part, record.0, epoch.0, most.size(), &is_delivered, is_wanted)
    })?;
    let rows: Vec<Value> = found
        .iter()
        .flat_map(|found| {
            let places = steps.places(plan.sampler(), epoch.0, found.position);
            places.map(|(step, row)| {
                let mut found =
                    json!({ "step": step, "row": row, "position": found.position, "sample": found.sample });
                if let Some(name) = &name {
                    found["part_name"] = json!(name);
                }
                found
            })
        })
        .take(most.size())
        .collect();
    json::plain(py, &rows)
}

/// A part of a mixture, as it was mixed.
#[derive(FromPyObject)]
pub(crate) enum Part {
    Name(String),
    Number(Count),
}

impl Part {
    fn number(self, names: &[String]) -> Result<usize> {
        match self {
            Part::Number(number) => Ok(number.size()),
            Part::Name(name) => windrow::part_named(names, &name),
        }
    }
}

// The plan, its steps, and the names of its parts.
pub(crate) fn plan_of(given: &Bound<'_, PyAny>) -> PyResult<(Arc<Plan>, Steps, Vec<String>)> {
    plan_of_numbers(given, None)
}

// The same of a plan that may hold only a hash of its record numbers, which are then these.
fn plan_of_numbers(
    given: &Bound<'_, PyAny>,
    select: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Arc<Plan>, Steps, Vec<String>)> {
    let py = given.py();
    let numbers = select.map(select::given).transpose()?;
    if let Ok(loader) = given.cast::<Loader>() {
        let running = loader.get().running();
        let (plan, steps) = running.plan(py)?;
        return Ok((plan, steps, running.part_names().to_vec()));
    }
    let path = if given.is_instance_of::<PyDict>() { None } else { Some(path_of(given)?) };
    let text: String = match path {
        Some(_) => String::new(),
        None => py.import("json")?.call_method1("dumps", (given,))?.extract()?,
    };
    wait_for(py, move || -> Result<_> {
        let recipe = match &path {
            Some(path) => Recipe::open(path),
            None => Recipe::from_json(&text),
        };
        let mut recipe = recipe.map_err(|e| e.hint(HINT))?;
        numbers.map_or(Ok(()), |numbers| recipe.fill_numbers(&numbers))?;
        let loader = recipe.builder()?.rank(0, 1).num_threads(Some(0)).build()?;
        Ok((loader.plan().clone(), *loader.steps(), recipe.names))
    })
}

pub(crate) const HINT: &str = "a plan is what loader.recipe() gives; of data, give a Loader";

/// The path of a plan, where it is neither a loader nor a dict.
///
/// # Errors
/// `TypeError` for anything else.
pub(crate) fn path_of(plan: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    match plan.extract::<PathBuf>().attempt(plan.py())? {
        Some(path) => Ok(path),
        None => {
            let class = class_of(plan)?;
            Err(PyTypeError::new_err(format!("a plan is a Loader, a dict, or the path of one, not {class}")))
        }
    }
}
