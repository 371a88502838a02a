//! Views and mixtures: samples by number, as dicts of fresh arrays; what torch's `DataLoader` takes as a data set.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};
use windrow::{Mixture, RecipePart, Samples, Stop, mix as mix_samples};
use windrow_core::Result;
use windrow_core::collate::Batch;

use crate::array::Memory;
use crate::error::{OrRaise, raise};
use crate::framework;
use crate::index::{Each, Index, many};
use crate::json;
use crate::near::none_left;
use crate::options::choice;
use crate::pickled::{check, fingerprint};
use crate::scaler::cut;
use crate::waiting::wait_for;
use crate::{near, shown};

/// The samples that a data set is cut into, by number.
///
/// ``view[i]`` is a dict of name → writable numpy array of one sample; a slice, list or array of numbers gives a list of
/// them. A view is a map-style data set for ``torch.utils.data.DataLoader``: it pickles by path, forks and spawns. Made by
/// ``Dataset.pack``, ``windows``, ``records``, ``segments``, ``crop``, ``bins`` and ``codes``.
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
}

impl View {
    /// Around samples; `seed` keys the random crops of `view[i]`, `scaler` is the function that scales them.
    pub(crate) fn new(samples: Samples, seed: u64, scaler: Option<Py<PyAny>>) -> View {
        View { samples, seed, scaler }
    }

    /// The samples.
    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }
}

#[pymethods]
impl View {
    fn __len__(&self) -> usize {
        usize::try_from(self.samples.len()).unwrap_or(usize::MAX)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let index = Index::read(key, "sample", self.samples.len())?;
        item(py, index, |numbers| self.samples.batch(numbers, self.seed))
    }

    /// The samples with these numbers, laid together: what ``DataLoader`` asks for. Tensors where torch is imported.
    fn __getitems__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numbers = many(indices, "sample", self.samples.len())?;
        let batch = py.detach(|| self.samples.batch(&numbers, self.seed)).or_raise(py)?;
        framework::rows(&Memory::new(py, batch)?, numbers.len())
    }

    /// The samples with these numbers as one batch: a dict of name → numpy array ``[len(indices), …]``.
    ///
    /// What a sampler of one's own feeds. Random crops are those of epoch 0.
    ///
    /// Raises:
    ///     OutOfRangeError: no such sample.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> view = wr.open(path, dtype="uint16").pack(2)
    /// >>> view.batch([3, 0])["input_ids"].tolist()
    /// [[6, 7], [0, 1]]
    fn batch<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let numbers = many(indices, "sample", self.samples.len())?;
        let batch = py.detach(|| self.samples.batch(&numbers, self.seed)).or_raise(py)?;
        framework::Framework::Numpy.batch(&Memory::new(py, batch)?)
    }

    fn __iter__(this: &Bound<'_, Self>) -> Each {
        Each::of(this.as_any(), this.get().samples.len())
    }

    fn __repr__(&self) -> String {
        let (view, path) = (self.samples.feed().view().describe(), &self.samples.recipe().path);
        let n_samples = shown::count(self.samples.len());
        format!("View({view} of {path:?}, {n_samples} samples of {})", shown::tensors(&self.samples))
    }

    fn _repr_html_(&self) -> String {
        shown::table(
            "windrow.View",
            &[
                ("view", self.samples.feed().view().describe()),
                ("of", self.samples.recipe().path.display().to_string()),
                ("samples", shown::count(self.samples.len())),
                ("each", shown::tensors(&self.samples)),
            ],
        )
    }

    fn __getattr__(this: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        Err(near::no_attribute(this.as_any(), name))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Recut)> {
        let recipe = Pickled::of(py, &self.samples)?;
        let recipe = serde_json::to_string(&recipe).unwrap_or_default();
        let scaler = self.scaler.as_ref().map(|function| function.clone_ref(py));
        Ok((py.import("windrow._native")?.getattr("_recut")?, (recipe, self.seed, scaler)))
    }

    /// What one epoch sees of the data, in values: a dict of used, repeated, padded, unseen, and skipped_records.
    ///
    /// Raises:
    ///     CorruptError: an index is wrong.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> wr.open(path, dtype="uint16").pack(4).coverage()
    /// {'used': 9, 'repeated': 1, 'padded': 0, 'unseen': 1, 'skipped_records': 0}
    fn coverage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let samples = self.samples.clone();
        let coverage = wait_for(py, move || samples.coverage())?;
        json::plain(py, &coverage)
    }

    /// ``windrow.Loader(view, batch_size, **options)``.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=2, shuffle=False)
    /// >>> next(loader)["input_ids"].tolist()
    /// [[0, 1, 2], [3, 4, 5]]
    #[pyo3(signature = (batch_size=None, **options))]
    fn loader<'py>(
        this: &Bound<'py, Self>,
        batch_size: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        loader(this.as_any(), batch_size, options)
    }
}

// What a pickled view is opened from.
type Recut = (String, u64, Option<Py<PyAny>>);

/// Several views as one, each with its share of the samples. Made by ``windrow.mix``.
///
/// ``mix[i]`` numbers the samples through the first view, then the second, and so on; a loader takes them in their shares.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(10, dtype=np.uint16).tofile(path)
/// >>> ds = wr.open(path, dtype="uint16")
/// >>> mixed = wr.mix({"a": (ds.pack(2), 0.7), "b": (ds.pack(2), 0.3)})
/// >>> len(mixed), mixed[0]["labels"].tolist()
/// (8, [1, 2])
#[pyclass(frozen, module = "windrow", name = "Mix")]
pub(crate) struct Mix {
    mixture: Mixture,
    // First sample number of each part, and the number of all.
    starts: Arc<[u64]>,
    // Of each part.
    seeds: Vec<u64>,
    // Of each part, where it has one.
    scalers: Vec<Option<Py<PyAny>>>,
}

impl Mix {
    fn new(mixture: Mixture, seeds: Vec<u64>, scalers: Vec<Option<Py<PyAny>>>) -> Mix {
        let ends = mixture.parts().scan(0u64, |end, (_, samples, _)| {
            *end = end.saturating_add(samples.len());
            Some(*end)
        });
        let starts = std::iter::once(0).chain(ends).collect();
        Mix { mixture, starts, seeds, scalers }
    }

    /// The mixture.
    pub(crate) fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn part(&self, sample: u64) -> (usize, u64) {
        let part = self.starts.partition_point(|start| *start <= sample).saturating_sub(1);
        (part, sample - self.starts[part])
    }

    // The samples of one part, as one batch.
    fn batch(&self, part: usize, numbers: &[u64]) -> Result<Batch> {
        match (self.mixture.parts().nth(part), self.seeds.get(part)) {
            (Some((_, samples, _)), Some(seed)) => samples.batch(numbers, *seed),
            _ => Err(windrow::Error::out_of_range("view", part, self.starts.len() as u64 - 1)),
        }
    }
}

#[pymethods]
impl Mix {
    fn __len__(&self) -> usize {
        usize::try_from(self.len()).unwrap_or(usize::MAX)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let index = Index::read(key, "sample", self.len())?;
        item(py, index, |numbers| match numbers {
            [one] => {
                let (part, number) = self.part(*one);
                self.batch(part, &[number])
            }
            _ => Err(windrow::Error::config("samples of a mixture are laid one by one")),
        })
    }

    /// The samples with these numbers: what ``DataLoader`` asks for. Tensors where torch is imported.
    fn __getitems__<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let numbers = many(indices, "sample", self.len())?;
        let list = PyList::empty(py);
        // Neighbours of one part are laid together.
        let places: Vec<_> = numbers.iter().map(|n| self.part(*n)).collect();
        for run in places.chunk_by(|a, b| a.0 == b.0) {
            let part = run[0].0;
            let own: Vec<u64> = run.iter().map(|(_, number)| *number).collect();
            let batch = py.detach(|| self.batch(part, &own)).or_raise(py)?;
            for row in framework::rows(&Memory::new(py, batch)?, own.len())?.try_iter()? {
                list.append(row?)?;
            }
        }
        Ok(list)
    }

    fn __iter__(this: &Bound<'_, Self>) -> Each {
        Each::of(this.as_any(), this.get().len())
    }

    fn __repr__(&self) -> String {
        let parts: Vec<_> = self
            .mixture
            .parts()
            .map(|(name, s, w)| format!("{name}: {} samples, weight {w}", shown::count(s.len())))
            .collect();
        format!("Mix({})", parts.join("; "))
    }

    fn _repr_html_(&self) -> String {
        let part = |(name, samples, weight): (&'_ str, &windrow::Samples, f64)| {
            let view = samples.feed().view().describe();
            (name.to_string(), format!("{} samples of {view}, weight {weight}", shown::count(samples.len())))
        };
        let parts: Vec<(String, String)> = self.mixture.parts().map(part).collect();
        let rows: Vec<_> = parts.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
        shown::table("windrow.Mix", &rows)
    }

    fn __getattr__(this: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        Err(near::no_attribute(this.as_any(), name))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Remix)> {
        let part = |(name, samples, weight)| Ok((name, Pickled::of(py, samples)?, weight));
        let parts = self.mixture.parts().map(part).collect::<PyResult<Vec<_>>>()?;
        let recipe = serde_json::to_string(&(parts, self.mixture.stop())).unwrap_or_default();
        let scalers = self.scalers.iter().map(|s| s.as_ref().map(|s| s.clone_ref(py))).collect();
        Ok((py.import("windrow._native")?.getattr("_remix")?, (recipe, self.seeds.clone(), scalers)))
    }

    /// What one pass over each view sees of its data: name → a dict as ``View.coverage`` gives.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> ds = wr.open(path, dtype="uint16")
    /// >>> mixed = wr.mix({"a": (ds.pack(2), 0.7), "b": (ds.pack(2), 0.3)})
    /// >>> mixed.coverage()["b"]
    /// {'used': 9, 'repeated': 3, 'padded': 0, 'unseen': 1, 'skipped_records': 0}
    fn coverage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, samples, _) in self.mixture.parts() {
            let samples = samples.clone();
            let coverage = wait_for(py, move || samples.coverage())?;
            dict.set_item(name, json::plain(py, &coverage)?)?;
        }
        Ok(dict)
    }

    /// ``windrow.Loader(mix, batch_size, **options)``.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> ds = wr.open(path, dtype="uint16")
    /// >>> loader = wr.mix({"a": (ds.pack(2), 0.7), "b": (ds.pack(2), 0.3)}).loader(batch_size=2)
    /// >>> next(loader)["labels"].shape
    /// (2, 2)
    #[pyo3(signature = (batch_size=None, **options))]
    fn loader<'py>(
        this: &Bound<'py, Self>,
        batch_size: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        loader(this.as_any(), batch_size, options)
    }
}

// What a pickled mixture is opened from.
type Remix = (String, Vec<u64>, Vec<Option<Py<PyAny>>>);

/// Mixes views: after any number of samples of an epoch each has given its share of them, to within one sample.
///
/// Args:
///     parts: name → (view, weight). Weights are numbers above 0; their ratio counts.
///     stop: when an epoch ends: ``"first"`` before a sample would come twice, ``"all"`` once every sample has come,
///         ``"never"``.
///
/// Raises:
///     ConfigError: no part, an empty view, a weight that is no number above 0.
///     MismatchError: the views give different tensors.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(10, dtype=np.uint16).tofile(path)
/// >>> ds = wr.open(path, dtype="uint16")
/// >>> mixed = wr.mix({"a": (ds.pack(2), 0.75), "b": (ds.pack(2), 0.25)}, stop="all")
/// >>> len(mixed), len(wr.Loader(mixed, batch_size=4))
/// (8, 4)
#[pyfunction]
#[pyo3(signature = (parts, *, stop="first", **unknown), text_signature = "(parts, *, stop='first')")]
pub(crate) fn mix(
    py: Python<'_>,
    parts: &Bound<'_, PyMapping>,
    stop: &str,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Mix> {
    none_left(py, "mix", unknown)?;
    let stop: Stop = choice(py, "stop", stop, &["first", "all", "never"])?;
    let (mut given, mut seeds, mut scalers) = (Vec::new(), Vec::new(), Vec::new());
    for item in parts.items()? {
        let (name, part) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let name = name.cast::<PyString>()?.to_string();
        let Ok((view, weight)) = part.extract::<(Bound<'_, View>, f64)>() else {
            return Err(PyTypeError::new_err(format!("{name:?}: expected (view, weight)")));
        };
        seeds.push(view.get().seed);
        given.push((name, view.get().samples.clone(), weight));
        scalers.push(view.get().scaler.as_ref().map(|function| function.clone_ref(py)));
    }
    Ok(Mix::new(py.detach(|| mix_samples(given, stop)).or_raise(py)?, seeds, scalers))
}

/// Opens and cuts a pickled view again.
#[pyfunction]
#[pyo3(signature = (recipe, seed, scaler=None))]
pub(crate) fn _recut(py: Python<'_>, recipe: &str, seed: u64, scaler: Option<Py<PyAny>>) -> PyResult<View> {
    let recipe: Pickled = unpickled(py, recipe)?;
    Ok(View::new(reopen(py, &recipe, scaler.as_ref())?, seed, scaler))
}

/// Opens a pickled mixture again.
#[pyfunction]
#[pyo3(signature = (recipe, seeds, scalers=Vec::new()), text_signature = "(recipe, seeds, scalers=...)")]
pub(crate) fn _remix(
    py: Python<'_>,
    recipe: &str,
    seeds: Vec<u64>,
    scalers: Vec<Option<Py<PyAny>>>,
) -> PyResult<Mix> {
    let (parts, stop): (Vec<(String, Pickled, f64)>, Stop) = unpickled(py, recipe)?;
    let functions = scalers.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let reopened = parts
        .into_iter()
        .zip(functions)
        .map(|((name, part, weight), function)| Ok((name, reopen(py, &part, function)?, weight)))
        .collect::<PyResult<_>>()?;
    Ok(Mix::new(py.detach(|| mix_samples(reopened, stop)).or_raise(py)?, seeds, scalers))
}

/// What a pickle holds of samples: where they lie and how they are cut, and the fingerprint of what lay there.
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

fn reopen(py: Python<'_>, pickled: &Pickled, function: Option<&Py<PyAny>>) -> PyResult<Samples> {
    let part = &pickled.recipe;
    let (path, options) = (part.path.clone(), part.options.clone());
    let opened = wait_for(py, move || windrow::open_with(&path, &options))?;
    let samples = cut(py, &opened, part.view.clone(), part.dtype, function)?;
    check(py, samples.feed().source(), pickled.data, &part.path)?;
    Ok(samples)
}

fn unpickled<T: serde::de::DeserializeOwned>(py: Python<'_>, text: &str) -> PyResult<T> {
    serde_json::from_str(text)
        .map_err(|e| raise(py, &windrow::Error::corrupt("this is no pickled view").caused_by(e)))
}

fn item<'py>(
    py: Python<'py>,
    index: Index,
    lay: impl Fn(&[u64]) -> Result<Batch> + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let one = |number: u64| -> PyResult<Bound<'py, PyDict>> {
        py.check_signals()?;
        let batch = py.detach(|| lay(&[number])).or_raise(py)?;
        framework::row(&Memory::new(py, batch)?, 0)
    };
    match index {
        Index::One(number) => Ok(one(number)?.into_any()),
        Index::Many(numbers) => {
            let rows = numbers.into_iter().map(one).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, rows)?.into_any())
        }
    }
}

fn loader<'py>(
    view: &Bound<'py, PyAny>,
    batch_size: Option<Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = view.py();
    let arguments = PyTuple::new(py, [Some(view.clone()), batch_size])?;
    py.get_type::<crate::loader::Loader>().call(arguments, options)
}
