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
    let (plan, steps, _) = plan_of(&plan, select.as_ref())?;
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

given! {
    struct Find<'py> {
        plan: Bound<'py, PyAny>,
        record: Count,
        part: Part,
        epoch: Count,
        most: Count,
        select: Option<Bound<'py, PyAny>>,
    }
}

/// Which steps of an epoch read a record: the inverse of ``trace``.
#[pyfunction]
pub(crate) fn _find<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let Find { plan, record, part, epoch, most, select } = Find::of(given)?;
    let (plan, steps, names) = plan_of(&plan, select.as_ref())?;
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

/// The plan, its steps, and the names of its parts. `select`: numbers of which its text may hold only a hash.
///
/// # Errors
/// As [`written`] and [`Written::recipe`]; `MismatchError` for numbers that no part is of.
pub(crate) fn plan_of(
    given: &Bound<'_, PyAny>,
    select: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Arc<Plan>, Steps, Vec<String>)> {
    let py = given.py();
    let numbers = select::given(select)?;
    if let Ok(loader) = given.cast::<Loader>() {
        let running = loader.get().running();
        let (plan, steps) = running.plan(py)?;
        return Ok((plan, steps, running.part_names().to_vec()));
    }
    let written = written(given)?;
    wait_for(py, move || -> Result<_> {
        let mut recipe = written.recipe()?;
        numbers.iter().try_for_each(|numbers| recipe.fill_numbers(numbers))?;
        let loader = recipe.builder()?.rank(0, 1).num_threads(Some(0)).build()?;
        Ok((loader.plan().clone(), *loader.steps(), recipe.names))
    })
}

/// A plan as text, or where that is.
pub(crate) enum Written {
    Text(String),
    At(PathBuf),
}

impl Written {
    /// The plan.
    ///
    /// # Errors
    /// As [`Recipe::open`].
    pub(crate) fn recipe(&self) -> Result<Recipe> {
        let recipe = match self {
            Written::Text(text) => Recipe::from_json(text),
            Written::At(path) => Recipe::open(path),
        };
        recipe.map_err(|e| e.hint("a plan is what loader.recipe() gives; of data, give a Loader"))
    }
}

/// The dict of a plan as text, or its path.
///
/// # Errors
/// `TypeError` for anything else.
pub(crate) fn written(plan: &Bound<'_, PyAny>) -> PyResult<Written> {
    if plan.is_instance_of::<PyDict>() {
        let text = plan.py().import("json")?.call_method1("dumps", (plan,))?.extract()?;
        return Ok(Written::Text(text));
    }
    match plan.extract::<PathBuf>().attempt(plan.py())? {
        Some(path) => Ok(Written::At(path)),
        None => {
            let class = class_of(plan)?;
            Err(PyTypeError::new_err(format!("a plan is a Loader, a dict, or the path of one, not {class}")))
        }
    }
}
