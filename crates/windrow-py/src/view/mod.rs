//! Views and mixtures: samples by number, as dicts of fresh arrays; what torch's `DataLoader` takes as a data set.

pub(crate) mod epochs;

mod methods;
mod mixed;
pub(crate) mod options;

pub(crate) use mixed::{_mix, temperature};

use std::slice;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use windrow::dev::sampler::{Mix as Sequence, Sampler};
use windrow::{Mixture, RecipePart, Samples, Shares, Value};
use windrow_core::collate::Batch;
use windrow_core::plan::{Feed, Pick, batch_of, records_of};
use windrow_core::{Draw, Pass};

use crate::dataset::scaler::cut;
use crate::dataset::select::{Kept, filled};
use crate::python::error::{OrRaise, raise};
use crate::python::in_memory;
use crate::python::index::NO_END;
use crate::python::pickled::{check, fingerprint};
use crate::python::waiting::wait_for;
use crate::view::epochs::Epochs;

/// The samples that a data set is cut into, by number.
///
/// ``view[i]`` is a dict of name → writable numpy array of one sample; a slice, list or array of numbers gives a list of
/// them. A view is a map-style data set for ``torch.utils.data.DataLoader``: it pickles by path, forks and spawns. What is
/// random of a sample is drawn again each time that it comes again; ``set_epoch`` says which draw it is. Made by
/// ``Dataset.pack``, ``windows``, ``records``, ``segments``, ``crop``, ``bins``, ``codes`` and ``rows``, whose samples are
/// records as they are.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(10, dtype=np.uint16).tofile(path)
/// >>> view = wr.open(path, dtype="uint16").pack(3)
/// >>> len(view), view[-1]["labels"].tolist(), [sample["input_ids"].tolist() for sample in view[:2]]
/// (3, [7, 8, 9], [[0, 1, 2], [3, 4, 5]])
#[pyclass(frozen, module = "windrow", name = "View")]
pub(crate) struct View {
    samples: Samples,
    seed: u64,
    // Goes with a pickle: a recipe only names it.
    scaler: Option<Py<PyAny>>,
    epochs: Epochs,
}

impl View {
    /// Around samples; `seed` keys the random crops of `view[i]`, `scaler` is the function that scales them.
    pub(crate) fn new(
        py: Python<'_>,
        samples: Samples,
        seed: u64,
        scaler: Option<Py<PyAny>>,
    ) -> PyResult<View> {
        View::in_epoch(py, samples, seed, scaler, None)
    }

    fn in_epoch(
        py: Python<'_>,
        samples: Samples,
        seed: u64,
        scaler: Option<Py<PyAny>>,
        epoch: Option<Py<PyAny>>,
    ) -> PyResult<View> {
        let epochs = Epochs::new(py, samples.recipe().view.is_random(), epoch)?;
        Ok(View { samples, seed, scaler, epochs })
    }

    /// The samples.
    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }
}

/// What is asked for samples by number.
trait ByNumber {
    /// The views that they are of.
    fn feeds(&self) -> &[Feed];

    /// The samples with these numbers.
    fn picked(&self, py: Python<'_>, numbers: &[u64]) -> PyResult<Vec<Pick>>;

    /// They are records, not tensors.
    fn is_rows(&self) -> bool {
        self.feeds().first().is_some_and(|feed| feed.collate().rows().is_some())
    }

    /// The samples as one batch.
    fn assembled(&self, py: Python<'_>, numbers: &[u64]) -> PyResult<Batch> {
        let picks = self.picked(py, numbers)?;
        let feeds = self.feeds();
        py.detach(|| batch_of(feeds, picks.into_iter())).or_raise(py)
    }

    /// The records that samples are.
    fn records(&self, py: Python<'_>, numbers: &[u64]) -> PyResult<Vec<Value>> {
        let picks = self.picked(py, numbers)?;
        let feeds = self.feeds();
        py.detach(|| records_of(feeds, picks.into_iter())).or_raise(py)
    }
}

impl ByNumber for View {
    fn feeds(&self) -> &[Feed] {
        slice::from_ref(self.samples.feed())
    }

    fn picked(&self, py: Python<'_>, numbers: &[u64]) -> PyResult<Vec<Pick>> {
        if self.samples.feed().view().is_reshuffled() {
            let (seed, epoch) = self.epochs.order(py)?;
            let pass = Pass { seed, epoch, ..Pass::default() };
            return Ok(numbers
                .iter()
                .map(|&sample| Pick { feed: 0, sample, draw: pass.draw(sample) })
                .collect());
        }
        let epochs = self.epochs.of(py, numbers)?;
        let pick = |(&sample, &epoch): (&u64, &u64)| Pick {
            feed: 0,
            sample,
            draw: Draw::new(self.seed, epoch, 0, sample),
        };
        Ok(numbers.iter().zip(&epochs).map(pick).collect())
    }
}

impl ByNumber for Mix {
    fn feeds(&self) -> &[Feed] {
        &self.feeds
    }

    fn picked(&self, py: Python<'_>, positions: &[u64]) -> PyResult<Vec<Pick>> {
        let sequence = self.sequence()?;
        let draws = self.epochs.of(py, positions)?;
        let epoch = self.epochs.said(py)?.unwrap_or(0);
        let (order_seed, _) = self.epochs.order(py)?;
        let pick = |(&position, &draws): (&u64, &u64)| {
            let turn = sequence.onward(epoch, position);
            let (feed, sample) = sequence.view_of(turn.sample);
            // Parts go on from epoch to epoch, so their passes alone have an order each.
            let (seed, epoch) = match self.feeds[feed].view().is_reshuffled() {
                true => (order_seed, 0),
                false => (self.seeds[feed], draws),
            };
            let pass = Pass { seed, epoch, pass: turn.pass, view: feed as u64 };
            Pick { feed, sample, draw: pass.draw(sample) }
        };
        Ok(positions.iter().zip(&draws).map(pick).collect())
    }
}

// What a pickled view is opened from.
type Recut = (String, u64, Option<Py<PyAny>>, Py<PyAny>, Option<Arrays>, Kept);

/// Several views as one, each with its share of the samples. Made by ``windrow.mix``.
///
/// ``mix[i]`` is the i-th sample of the mixture's own sequence, which takes the samples of each view in their order: so
/// whoever reads it by number, as ``torch.utils.data.DataLoader`` does, gets the shares. ``len(mix)`` counts an epoch of it. With
/// ``batches="part"`` there are numbers and a length where ``rows=`` says how many rows a batch has.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(100, dtype=np.uint16).tofile(path)
/// >>> view = wr.open(path, dtype="uint16").pack(5)
/// >>> mixed = wr.mix({"a": (view, 0.75), "b": (view, 0.25)})
/// >>> len(view), len(mixed), [int(sample["input_ids"][0]) for sample in mixed[:8]]
/// (19, 25, [0, 5, 10, 0, 15, 20, 25, 5])
#[pyclass(frozen, module = "windrow", name = "Mix")]
pub(crate) struct Mix {
    mixture: Mixture,
    // None where the rows of batches of one part are not known.
    sequence: Option<Arc<Sequence>>,
    // Of each part, as their numbers run.
    feeds: Vec<Feed>,
    // Of each part.
    seeds: Vec<u64>,
    // Of each part, where it has one.
    scalers: Vec<Option<Py<PyAny>>>,
    epochs: Epochs,
}

impl Mix {
    fn new(
        py: Python<'_>,
        mixture: Mixture,
        seeds: Vec<u64>,
        scalers: Vec<Option<Py<PyAny>>>,
        epoch: Option<Py<PyAny>>,
    ) -> PyResult<Mix> {
        let sequence = mixture.has_sequence().then(|| mixture.sequence()).transpose().or_raise(py)?;
        let feeds = mixture.feeds().or_raise(py)?;
        let is_random = mixture.parts().any(|(_, samples, _)| samples.recipe().view.is_random());
        Ok(Mix { mixture, sequence, feeds, seeds, scalers, epochs: Epochs::new(py, is_random, epoch)? })
    }

    /// The mixture.
    pub(crate) fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    // What samples by number are read from.
    fn sequence(&self) -> PyResult<&Sequence> {
        self.sequence.as_deref().ok_or_else(|| {
            PyTypeError::new_err(
                "a mixture with batches=\"part\" has batches of the loader's size, and no samples by number\n  hint: \
                 wr.torch.Stream(mixed, batch_size=…) gives its batches to DataLoader; wr.mix(…, rows=…) says how many rows a batch has",
            )
        })
    }

    // Positions that may be asked for.
    fn end(&self) -> PyResult<u64> {
        Ok(self.sequence()?.len(0).unwrap_or(NO_END))
    }
}

// What a pickled mixture is opened from.
type Remix = (String, Vec<u64>, Vec<Option<Py<PyAny>>>, Py<PyAny>, Vec<Option<Arrays>>, Kept);

// Of data in memory, what it is made of.
type Arrays = (Py<PyList>, Py<PyList>);

/// Opens and cuts a pickled view again.
#[pyfunction]
#[pyo3(signature = (recipe, seed, scaler=None, epoch=None, arrays=None, kept=Vec::new()),
       text_signature = "(recipe, seed, scaler=None, epoch=None, arrays=None, kept=...)")]
pub(crate) fn _recut(
    py: Python<'_>,
    recipe: &str,
    seed: u64,
    scaler: Option<Py<PyAny>>,
    epoch: Option<Py<PyAny>>,
    arrays: Option<Arrays>,
    kept: Kept,
) -> PyResult<View> {
    let mut recipe: Pickled = unpickled(py, recipe)?;
    filled(py, &mut recipe.recipe.options, &kept)?;
    View::in_epoch(py, reopen(py, &recipe, scaler.as_ref(), arrays.as_ref())?, seed, scaler, epoch)
}

/// Opens a pickled mixture again.
#[pyfunction]
#[pyo3(signature = (recipe, seeds, scalers=Vec::new(), epoch=None, arrays=Vec::new(), kept=Vec::new()),
       text_signature = "(recipe, seeds, scalers=..., epoch=None, arrays=..., kept=...)")]
pub(crate) fn _remix(
    py: Python<'_>,
    recipe: &str,
    seeds: Vec<u64>,
    scalers: Vec<Option<Py<PyAny>>>,
    epoch: Option<Py<PyAny>>,
    arrays: Vec<Option<Arrays>>,
    kept: Kept,
) -> PyResult<Mix> {
    let (mut parts, shares, part_ids): (Vec<Pickled>, Shares, bool) = unpickled(py, recipe)?;
    for part in &mut parts {
        filled(py, &mut part.recipe.options, &kept)?;
    }
    let functions = scalers.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let arrays = arrays.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let reopened = parts.iter().zip(functions).zip(arrays);
    let reopened = reopened.map(|((part, function), arrays)| reopen(py, part, function, arrays));
    let reopened = reopened.collect::<PyResult<Vec<Samples>>>()?;
    let mixture = py.detach(|| Mixture::assembled(reopened, &shares, part_ids)).or_raise(py)?;
    Mix::new(py, mixture, seeds, scalers, epoch)
}

/// What a pickle holds of samples: where they are and how they are cut, and the fingerprint of the data.
#[derive(serde::Serialize, serde::Deserialize)]
struct Pickled {
    recipe: RecipePart,
    data: u64,
}

impl Pickled {
    fn of(py: Python<'_>, samples: &Samples) -> PyResult<Pickled> {
        let data = fingerprint(py, samples.feed().source())?;
        Ok(Pickled { recipe: samples.recipe().clone(), data })
    }
}

fn reopen(
    py: Python<'_>,
    pickled: &Pickled,
    function: Option<&Py<PyAny>>,
    arrays: Option<&Arrays>,
) -> PyResult<Samples> {
    let part = &pickled.recipe;
    let opened = match arrays {
        Some((arrays, beside)) => in_memory::opened(py, arrays.bind(py), beside.bind(py), &part.options)?,
        None => {
            let (paths, options) = (part.path.clone(), part.options.clone());
            wait_for(py, move || paths.open(&options))?
        }
    };
    let samples = cut(py, &opened, part.view.clone(), part.dtype, function)?;
    check(py, samples.feed().source(), pickled.data, &part.path)?;
    Ok(samples)
}

fn unpickled<T: serde::de::DeserializeOwned>(py: Python<'_>, text: &str) -> PyResult<T> {
    serde_json::from_str(text)
        .map_err(|e| raise(py, &windrow::Error::corrupt("this is not a pickled view").caused_by(e)))
}
