//! `windrow.mix`: views and mixtures as one, in shares that may change; and shares by size.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use windrow::{Error, MixtureOptions, Part, Stop, mix_with};

use super::{Mix, View};
use crate::python::error::{OrRaise, raise};
use crate::python::interrupt::Attempt;
use crate::python::mapping::{Mapping, is_mapping};
use crate::python::near::none_left;
use crate::python::options::{Count, choice};
use crate::python::said::text_of;

/// Mixes views: after any number of samples of an epoch each has given its share of them, to within one sample.
///
/// Args:
///     parts: name → (view, weight). Weights are numbers above 0; their ratio counts. A ``Mix`` can be a part too: one pass of it is
///         one of its epochs, and its views are called ``"name/theirs"``. All must give the same tensors.
///     stop: when an epoch ends: ``"first"`` before a sample would come twice, ``"all"`` once every sample has come,
///         ``"never"``.
///     phases: ``[(start, {name: weight}), …]``: other weights from a sample of the run on, counted over all ranks; a part that is
///         not named rests. Until the first one begins, the weights of ``parts`` hold. A part continues where it was. Needs
///         ``stop="never"``; weights may be 0 then. Shares are exact from the start of each phase.
///     steps_of: phases start at steps of so many samples, the global batch size, rather than at samples.
///     max_epochs: name → passes after which a part's share goes to the others, in proportion. Once every part has had its passes
///         the run ends. Needs ``stop="never"``.
///     part_ids: batches have ``part``, int32 ``[B]``: the number of each row's view, whose name ``loader.parts`` has.
///
/// Raises:
///     ConfigError: no part, an empty view, a weight that is not a number above 0, a name that no part has, phases that do not
///         follow one another or begin after the run has ended, phases or ``max_epochs`` without ``stop="never"``, ``part_ids`` of
///         views of rows.
///     MismatchError: the views give different tensors, as pack and bins do: the message names them.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(10, dtype=np.uint16).tofile(path)
/// >>> ds = wr.open(path, dtype="uint16")
/// >>> mixed = wr.mix({"a": (ds.pack(2), 0.75), "b": (ds.pack(2), 0.25)}, stop="all")
/// >>> len(mixed), len(wr.Loader(mixed, batch_size=4))
/// (16, 4)
/// >>> parts = {"a": (ds.pack(2), 1), "b": (ds.pack(2), 0)}
/// >>> mixed = wr.mix(parts, stop="never", phases=[(8, {"a": 1, "b": 1})], part_ids=True)
/// >>> loader = wr.Loader(mixed, batch_size=8)
/// >>> [int(next(loader)["part"].sum()) for step in range(3)], loader.parts
/// ([0, 4, 4], ['a', 'b'])
#[pyfunction]
#[pyo3(signature = (parts, *, stop="first", phases=None, steps_of=Count(1), max_epochs=None, part_ids=false, **unknown),
       text_signature = "(parts, *, stop='first', phases=None, steps_of=1, max_epochs=None, part_ids=False)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn mix(
    py: Python<'_>,
    parts: Mapping<'_>,
    stop: &str,
    phases: Option<Vec<(Count, Mapping<'_>)>>,
    steps_of: Count,
    max_epochs: Option<Mapping<'_>>,
    part_ids: bool,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Mix> {
    none_left(py, "mix", unknown)?;
    let stop: Stop = choice(py, "stop", stop, &["first", "all", "never"])?;
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
    let size = |given: &Bound<'py, PyAny>| match given.hasattr("__len__")? {
        true => Ok(given.len()? as u64),
        false => given.extract::<Count>().map(|size| size.0),
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
