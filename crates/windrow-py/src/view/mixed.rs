//! `windrow.mix`: views and mixtures as one, in shares that may change; and shares by size.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use windrow::{Batches, Error, MixtureOptions, Part, Stop, mix_with};

use super::{Mix, View};
use crate::python::error::{OrRaise, raise};
use crate::python::given::given;
use crate::python::interrupt::Attempt;
use crate::python::mapping::{Mapping, is_mapping};
use crate::python::options::{Count, choice};
use crate::python::said::text_of;

given! {
    struct Given<'py> {
        stop: String,
        phases: Option<Vec<(Count, Mapping<'py>)>>,
        steps_of: Count,
        max_epochs: Option<Mapping<'py>>,
        part_ids: bool,
        batches: Option<String>,
        rows: Option<Count>,
    }
}

/// Mixes views, and mixtures of them, in shares.
#[pyfunction]
pub(crate) fn _mix(py: Python<'_>, parts: Mapping<'_>, given: &Bound<'_, PyDict>) -> PyResult<Mix> {
    let Given { stop, phases, steps_of, max_epochs, part_ids, batches, rows } = Given::of(given)?;
    let stop: Stop = choice(py, "stop", &stop, &["first", "all", "never"])?;
    let batches = match batches {
        None => Batches::Mixed,
        Some(batches) => choice(py, "batches", &batches, &["part"])?,
    };
    let (mut given, mut seeds, mut scalers) = (Vec::new(), Vec::new(), Vec::new());
    for (name, part) in parts.items::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()? {
        let name = text_of(name.cast::<PyString>()?);
        let none = || no_part(&name, &part);
        let pair = part.extract::<(Bound<'_, PyAny>, f64)>().attempt(py)?;
        let (view, weight) = pair.ok_or_else(none)?;
        if let Ok(view) = view.cast::<View>() {
            seeds.push(view.get().seed);
            scalers.push(view.get().scaler.as_ref().map(|function| function.clone_ref(py)));
            given.push((name, Part::from(view.get().samples.clone()), weight));
        } else if let Ok(mix) = view.cast::<Mix>() {
            let mix = mix.get();
            seeds.extend(&mix.seeds);
            scalers.extend(mix.scalers.iter().map(|s| s.as_ref().map(|function| function.clone_ref(py))));
            given.push((name, Part::from(mix.mixture.clone()), weight));
        } else {
            return Err(none());
        }
    }
    let options = MixtureOptions {
        stop,
        phases: phases
            .unwrap_or_default()
            .into_iter()
            .map(|(start, weights)| Ok((samples(py, start, steps_of)?, weights.items()?)))
            .collect::<PyResult<_>>()?,
        max_epochs: match max_epochs {
            Some(passes) => {
                let passes: Vec<(String, Count)> = passes.items()?;
                passes.into_iter().map(|(name, passes)| (name, passes.0)).collect()
            }
            None => Vec::new(),
        },
        part_ids,
        batches,
        rows: rows.map(|rows| rows.0),
    };
    let mixture = py.detach(|| mix_with(given, &options)).or_raise(py)?;
    Mix::new(py, mixture, seeds, scalers, None)
}

// Where a phase begins, in samples.
fn samples(py: Python<'_>, start: Count, steps_of: Count) -> PyResult<u64> {
    let error = |text: String| raise(py, &Error::config(text).field("steps_of"));
    match steps_of.0 {
        0 => Err(error("steps of 0 samples: give the global batch size".into())),
        rows => start
            .0
            .checked_mul(rows)
            .ok_or_else(|| error(format!("a phase at step {} of {rows} samples: beyond 2^64", start.0))),
    }
}

// Why this is not part of a mixture, and what would be.
fn no_part(name: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let pair = given.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
    let view = pair.as_ref().map_or(given, |(view, _)| view);
    let is_view = view.is_instance_of::<View>() || view.is_instance_of::<Mix>();
    let found = match view.get_type().name() {
        Ok(class) if pair.is_ok() && !is_view => format!("a {class} where a view is"),
        Ok(_) if pair.is_ok() => "a weight that is not a number".to_string(),
        Ok(class) => format!("a {class}"),
        Err(error) => return error,
    };
    PyTypeError::new_err(format!("{name:?}: expected (view, weight), found {found}; ds.pack(1024) is a view"))
}

/// Shares in proportion to sizes to the power of ``exponent``: 1 keeps the proportions, 0 makes all shares equal, 0.7 gives small
/// parts more than their size.
///
/// Args:
///     sizes: name → size, or a list of sizes. A size is a number, or a view: its length.
///     exponent: the power.
///
/// Returns:
///     The shares, which add up to 1: a dict by name, or a list.
///
/// Raises:
///     ConfigError: no size, a size of 0, an exponent that is not finite.
///
/// >>> import windrow as wr
/// >>> wr.temperature({"web": 900, "code": 100}, 0.5)
/// {'web': 0.75, 'code': 0.25}
#[pyfunction]
#[pyo3(signature = (sizes, exponent))]
pub(crate) fn temperature<'py>(
    py: Python<'py>,
    sizes: &Bound<'py, PyAny>,
    exponent: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let size = |given: &Bound<'py, PyAny>| {
        if given.hasattr("__len__")? {
            Ok(given.len()? as u64)
        } else {
            given.extract::<Count>().map(|size| size.0)
        }
    };
    if is_mapping(sizes)? {
        let named: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = sizes.extract::<Mapping<'py>>()?.items()?;
        let values = named.iter().map(|(_, value)| size(value)).collect::<PyResult<Vec<u64>>>()?;
        let shares = windrow::temperature(&values, exponent).or_raise(py)?;
        let dict = PyDict::new(py);
        named.iter().zip(shares).try_for_each(|((name, _), share)| dict.set_item(name, share))?;
        return Ok(dict.into_any());
    }
    let values = sizes.try_iter()?.map(|value| size(&value?)).collect::<PyResult<Vec<u64>>>()?;
    Ok(PyList::new(py, windrow::temperature(&values, exponent).or_raise(py)?)?.into_any())
}
