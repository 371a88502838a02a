//! Views and mixtures: samples by number, as dicts of fresh arrays; what torch's `DataLoader` takes as a data set.

use std::slice;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};
use windrow::sampler::{Mix as Sequence, Sampler};
use windrow::{Error, Mixture, RecipePart, Samples, Stop, mix as mix_samples};
use windrow_core::Draw;
use windrow_core::collate::Batch;
use windrow_core::plan::{Feed, Pick, batch_of};

use crate::array::Memory;
use crate::epochs::Epochs;
use crate::error::{OrRaise, raise};
use crate::framework;
use crate::index::{Each, Index, NO_END, many};
use crate::json;
use crate::near::none_left;
use crate::options::{Count, choice};
use crate::pickled::{check, fingerprint};
use crate::scaler::cut;
use crate::waiting::wait_for;
use crate::{near, shown};

/// The samples that a data set is cut into, by number.
///
/// ``view[i]`` is a dict of name → writable numpy array of one sample; a slice, list or array of numbers gives a list of
/// them. A view is a map-style data set for ``torch.utils.data.DataLoader``: it pickles by path, forks and spawns. What is
/// random of a sample is drawn anew each time that it comes again; ``set_epoch`` says which draw it is. Made by
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

    fn laid(&self, py: Python<'_>, numbers: &[u64]) -> PyResult<Batch> {
        let epochs = self.epochs.of(py, numbers)?;
        let picks = numbers.iter().zip(&epochs).map(|(&sample, &epoch)| Pick {
            feed: 0,
            sample,
            draw: Draw::new(self.seed, epoch, 0, sample),
        });
        py.detach(|| batch_of(slice::from_ref(self.samples.feed()), picks)).or_raise(py)
    }
}

#[pymethods]
impl View {
    fn __len__(&self) -> usize {
        usize::try_from(self.samples.len()).unwrap_or(usize::MAX)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let index = Index::read(key, "sample", self.samples.len())?;
        item(py, index, |number| self.laid(py, &[number]))
    }

    /// The samples with these numbers, laid together: what ``DataLoader`` asks for. Tensors where torch is imported.
    fn __getitems__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numbers = many(indices, "sample", self.samples.len())?;
        framework::rows(&Memory::new(py, self.laid(py, &numbers)?)?, numbers.len())
    }

    /// The samples with these numbers as one batch: a dict of name → numpy array ``[len(indices), …]``.
    ///
    /// What a sampler of one's own feeds.
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
        framework::Framework::Numpy.batch(&Memory::new(py, self.laid(py, &numbers)?)?)
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
        let recut = py.import("windrow._native")?.getattr("_recut")?;
        Ok((recut, (recipe, self.seed, scaler, self.epochs.pickled(py))))
    }

    /// Says for which epoch random crops, tags and the like are drawn: as a ``Loader`` of the view's seed draws them then.
    ///
    /// Worker processes follow, also those of ``DataLoader(…, persistent_workers=True)``. Without it, each time a sample comes
    /// again it is another one: in worker processes by the number that ``DataLoader`` draws for them each epoch
    /// (``torch.manual_seed`` repeats it), in this process from epoch 0 on.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(1000, dtype=np.uint16).tofile(path)
    /// >>> view = wr.open(path, dtype="uint16").crop(3)
    /// >>> def crop(epoch):
    /// ...     view.set_epoch(epoch)
    /// ...     return view[0]["values"].tolist()
    /// >>> crop(0) == crop(0), crop(0) == crop(1)
    /// (True, False)
    fn set_epoch(&self, py: Python<'_>, epoch: Count) -> PyResult<()> {
        self.epochs.set(py, epoch)
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
type Recut = (String, u64, Option<Py<PyAny>>, Py<PyAny>);

/// Several views as one, each with its share of the samples. Made by ``windrow.mix``.
///
/// ``mix[i]`` is the i-th sample of the mixture's own sequence, which takes the samples of each view in their order: so
/// whoever reads it by number, as ``torch.utils.data.DataLoader`` does, gets the shares. ``len(mix)`` counts an epoch of it.
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
    sequence: Sequence,
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
        let sequence = mixture.sequence().or_raise(py)?;
        let feeds = mixture.parts().map(|(_, samples, _)| samples.feed().clone()).collect();
        let is_random = mixture.parts().any(|(_, samples, _)| samples.recipe().view.is_random());
        Ok(Mix { mixture, sequence, feeds, seeds, scalers, epochs: Epochs::new(py, is_random, epoch)? })
    }

    /// The mixture.
    pub(crate) fn mixture(&self) -> &Mixture {
        &self.mixture
    }

    // Positions that may be asked for.
    fn end(&self) -> u64 {
        self.sequence.len(0).unwrap_or(NO_END)
    }

    fn laid(&self, py: Python<'_>, positions: &[u64]) -> PyResult<Batch> {
        let draws = self.epochs.of(py, positions)?;
        let epoch = self.epochs.said(py)?.unwrap_or(0);
        let picks = positions.iter().zip(&draws).map(|(&position, &draws)| {
            let turn = self.sequence.onward(epoch, position);
            let (feed, sample) = self.sequence.part_of(turn.sample);
            Pick { feed, sample, draw: Draw::new(self.seeds[feed], draws, turn.pass, sample) }
        });
        py.detach(|| batch_of(&self.feeds, picks)).or_raise(py)
    }
}

#[pymethods]
impl Mix {
    /// Samples in an epoch.
    fn __len__(&self) -> PyResult<usize> {
        let samples = self.sequence.len(0).ok_or_else(|| {
            PyTypeError::new_err(
                "a mixture with stop=\"never\" has no length\n  hint: stop=\"first\" or \"all\" ends its epochs; \
                 for DataLoader give a sampler that ends, as sampler=range(100_000)",
            )
        })?;
        Ok(usize::try_from(samples).unwrap_or(usize::MAX))
    }

    // Not by its length, which it may not have.
    fn __bool__(&self) -> bool {
        true
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let index = Index::read(key, "sample", self.end())?;
        item(py, index, |number| self.laid(py, &[number]))
    }

    /// The samples with these numbers, laid together: what ``DataLoader`` asks for. Tensors where torch is imported.
    fn __getitems__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numbers = many(indices, "sample", self.end())?;
        framework::rows(&Memory::new(py, self.laid(py, &numbers)?)?, numbers.len())
    }

    fn __iter__(this: &Bound<'_, Self>) -> Each {
        Each::of(this.as_any(), this.get().end())
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

    /// Says which epoch ``mix[i]`` is of: each part goes on where it ended in the epoch before, and what is random is drawn
    /// anew. Worker processes follow. Until it is called, ``mix[i]`` is of epoch 0.
    ///
    /// With ``stop="never"`` there is one endless epoch, whose numbers go on; the number given keys what is random alone.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(100, dtype=np.uint16).tofile(path)
    /// >>> view = wr.open(path, dtype="uint16").pack(5)
    /// >>> mixed = wr.mix({"a": (view, 0.75), "b": (view, 0.25)})
    /// >>> [int(mixed[i]["input_ids"][0]) for i in (3, 7, 11, 15, 19, 22)]
    /// [0, 5, 10, 15, 20, 25]
    /// >>> mixed.set_epoch(1)
    /// >>> [int(mixed[i]["input_ids"][0]) for i in (3, 7, 11, 15, 19, 22)]
    /// [30, 35, 40, 45, 50, 55]
    fn set_epoch(&self, py: Python<'_>, epoch: Count) -> PyResult<()> {
        self.epochs.set(py, epoch)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Remix)> {
        let part = |(name, samples, weight)| Ok((name, Pickled::of(py, samples)?, weight));
        let parts = self.mixture.parts().map(part).collect::<PyResult<Vec<_>>>()?;
        let recipe = serde_json::to_string(&(parts, self.mixture.stop())).unwrap_or_default();
        let scalers = self.scalers.iter().map(|s| s.as_ref().map(|s| s.clone_ref(py))).collect();
        let remix = py.import("windrow._native")?.getattr("_remix")?;
        Ok((remix, (recipe, self.seeds.clone(), scalers, self.epochs.pickled(py))))
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
type Remix = (String, Vec<u64>, Vec<Option<Py<PyAny>>>, Py<PyAny>);

/// Mixes views: after any number of samples of an epoch each has given its share of them, to within one sample.
///
/// Args:
///     parts: name → (view, weight). Weights are numbers above 0; their ratio counts.
///     stop: when an epoch ends: ``"first"`` before a sample would come twice, ``"all"`` once every sample has come,
///         ``"never"``.
///
/// Raises:
///     ConfigError: no part, an empty view, a mix inside the mix, a weight that is no number above 0.
///     MismatchError: the views give different tensors, as pack and bins do: the message names them.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> np.arange(10, dtype=np.uint16).tofile(path)
/// >>> ds = wr.open(path, dtype="uint16")
/// >>> mixed = wr.mix({"a": (ds.pack(2), 0.75), "b": (ds.pack(2), 0.25)}, stop="all")
/// >>> len(mixed), len(wr.Loader(mixed, batch_size=4))
/// (16, 4)
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
            return Err(no_part(&name, &part));
        };
        seeds.push(view.get().seed);
        given.push((name, view.get().samples.clone(), weight));
        scalers.push(view.get().scaler.as_ref().map(|function| function.clone_ref(py)));
    }
    Mix::new(py, py.detach(|| mix_samples(given, stop)).or_raise(py)?, seeds, scalers, None)
}

// Why this is no part of a mixture, and what would be.
fn no_part(name: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let pair = given.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>();
    let view = pair.as_ref().map_or(given, |(view, _)| view);
    if view.is_instance_of::<Mix>() {
        let error = Error::config(format!("{name:?} is a Mix, and a mix is made of views"))
            .hint("give its views here, each with its share times the weight of the mix");
        return raise(given.py(), &error);
    }
    let found = match view.get_type().name() {
        Ok(class) if pair.is_ok() && !view.is_instance_of::<View>() => format!("a {class} where a view is"),
        Ok(_) if pair.is_ok() => "a weight that is no number".to_string(),
        Ok(class) => format!("a {class}"),
        Err(error) => return error,
    };
    PyTypeError::new_err(format!("{name:?}: expected (view, weight), found {found}; ds.pack(1024) is a view"))
}

/// Opens and cuts a pickled view again.
#[pyfunction]
#[pyo3(signature = (recipe, seed, scaler=None, epoch=None))]
pub(crate) fn _recut(
    py: Python<'_>,
    recipe: &str,
    seed: u64,
    scaler: Option<Py<PyAny>>,
    epoch: Option<Py<PyAny>>,
) -> PyResult<View> {
    let recipe: Pickled = unpickled(py, recipe)?;
    View::in_epoch(py, reopen(py, &recipe, scaler.as_ref())?, seed, scaler, epoch)
}

/// Opens a pickled mixture again.
#[pyfunction]
#[pyo3(signature = (recipe, seeds, scalers=Vec::new(), epoch=None),
       text_signature = "(recipe, seeds, scalers=..., epoch=None)")]
pub(crate) fn _remix(
    py: Python<'_>,
    recipe: &str,
    seeds: Vec<u64>,
    scalers: Vec<Option<Py<PyAny>>>,
    epoch: Option<Py<PyAny>>,
) -> PyResult<Mix> {
    let (parts, stop): (Vec<(String, Pickled, f64)>, Stop) = unpickled(py, recipe)?;
    let functions = scalers.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let reopened = parts
        .into_iter()
        .zip(functions)
        .map(|((name, part, weight), function)| Ok((name, reopen(py, &part, function)?, weight)))
        .collect::<PyResult<_>>()?;
    Mix::new(py, py.detach(|| mix_samples(reopened, stop)).or_raise(py)?, seeds, scalers, epoch)
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
    laid: impl Fn(u64) -> PyResult<Batch>,
) -> PyResult<Bound<'py, PyAny>> {
    let one = |number: u64| -> PyResult<Bound<'py, PyDict>> {
        py.check_signals()?;
        framework::row(&Memory::new(py, laid(number)?)?, 0)
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
