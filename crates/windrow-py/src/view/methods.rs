//! What Python calls on a view or mixture: samples, pickling, epochs, a loader.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use windrow::Value;
use windrow::dev::sampler::Sampler;

use super::{ByNumber, Mix, Pickled, Recut, Remix, View};
use crate::dataset::select;
use crate::loader::Loader;
use crate::python::array::Memory;
use crate::python::framework;
use crate::python::index::{Each, Index, many};
use crate::python::interrupt::check;
use crate::python::options::Count;
use crate::python::waiting::wait_for;
use crate::python::{in_memory, row};
use crate::python::{json, near, shown};

#[pymethods]
impl View {
    fn __len__(&self) -> usize {
        usize::try_from(self.samples.len()).unwrap_or(usize::MAX)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        item(py, Index::read(key, "sample", self.samples.len())?, self)
    }

    /// The samples with these numbers as one batch: what ``DataLoader`` asks for. Tensors where torch is imported; of a
    /// view of rows its records.
    fn __getitems__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        items(py, &many(indices, "sample", self.samples.len())?, self)
    }

    /// The samples with these numbers as one batch: a dict of name → numpy array ``[len(indices), …]``; of a view of rows
    /// the list of its records, or their columns where it stacks them.
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
    fn batch<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numbers = many(indices, "sample", self.samples.len())?;
        framework::Framework::Numpy.batch(py, self.assembled(py, &numbers)?)
    }

    fn __iter__(this: &Bound<'_, Self>) -> Each {
        Each::of(this.as_any(), this.get().samples.len())
    }

    fn __repr__(&self) -> String {
        let path = shown::paths(&self.samples.recipe().path);
        let view = self.samples.feed().view().describe();
        let n_samples = shown::count(self.samples.len());
        format!("View({view} of {path}, {n_samples} samples of {})", shown::tensors(&self.samples))
    }

    fn _repr_html_(&self) -> String {
        shown::table(
            "windrow.View",
            &[
                ("view", self.samples.feed().view().describe()),
                ("of", self.samples.recipe().path.to_string()),
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
        let arrays = in_memory::pickled(py, self.samples.dataset());
        let kept = select::kept(py, &self.samples.recipe().options)?;
        Ok((recut, (recipe, self.seed, scaler, self.epochs.pickled(py), arrays, kept)))
    }

    /// Says for which epoch random crops, tags and the like are drawn: as a ``Loader`` of the view's seed draws them then. Of a view
    /// with ``reshuffle=True`` it says which epoch's order of documents the samples are cut from, that of a ``Loader`` of seed 0.
    ///
    /// Worker processes follow, also those of ``DataLoader(…, persistent_workers=True)``. Without it, a random
    /// sample is another one each time that it comes: in worker processes by the number that ``DataLoader`` draws for them each
    /// epoch (``torch.manual_seed`` repeats it), in this process from epoch 0 on. The order of documents is that of epoch 0, in
    /// worker processes with that number as its seed.
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

    /// What one epoch sees of the data, in values: a dict of used, repeated, padded, unseen, and skipped_records. With
    /// ``reshuffle=True`` it is the epoch that ``set_epoch`` said, else 0.
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
        let (samples, epoch) = (self.samples.clone(), self.epochs.said(py)?.unwrap_or(0));
        let coverage = wait_for(py, move || samples.coverage_in(epoch))?;
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

#[pymethods]
impl Mix {
    /// Samples in an epoch.
    fn __len__(&self) -> PyResult<usize> {
        let samples = self.sequence()?.len(0).ok_or_else(|| {
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
        item(py, Index::read(key, "sample", self.end()?)?, self)
    }

    /// The samples with these numbers as one batch: what ``DataLoader`` asks for. Tensors where torch is imported; of a
    /// view of rows its records.
    fn __getitems__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        items(py, &many(indices, "sample", self.end()?)?, self)
    }

    fn __iter__(this: &Bound<'_, Self>) -> PyResult<Each> {
        Ok(Each::of(this.as_any(), this.get().end()?))
    }

    fn __repr__(&self) -> String {
        let parts = self.shown().into_iter().map(|(name, text)| format!("{name}: {text}"));
        format!("Mix({})", parts.collect::<Vec<_>>().join("; "))
    }

    fn _repr_html_(&self) -> String {
        let view = |samples: &windrow::Samples| format!(" of {}", samples.feed().view().describe());
        let views: Vec<String> = self.mixture.parts().map(|(_, samples, _)| view(samples)).collect();
        let mut rows = self.shown();
        for ((_, text), view) in rows.iter_mut().zip(&views) {
            *text = text.replacen(" samples", &format!(" samples{view}"), 1);
        }
        let rows: Vec<_> = rows.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
        shown::table("windrow.Mix", &rows)
    }

    fn __getattr__(this: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        Err(near::no_attribute(this.as_any(), name))
    }

    /// Says which epoch ``mix[i]`` is of: each part continues where it ended in the epoch before, and what is random is drawn
    /// again. Worker processes follow. Until it is called, ``mix[i]`` is of epoch 0.
    ///
    /// With ``stop="never"`` there is one endless epoch, whose numbers continue; the number given keys what is random alone. Documents of
    /// parts with ``reshuffle=True`` come in another order in each pass of the part, which may go on over epochs.
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
        let parts = self.mixture.parts().map(|(_, samples, _)| Pickled::of(py, samples));
        let parts = parts.collect::<PyResult<Vec<_>>>()?;
        let recipe = (parts, self.mixture.shares(), self.mixture.has_part_ids());
        let recipe = serde_json::to_string(&recipe).unwrap_or_default();
        let scalers = self.scalers.iter().map(|s| s.as_ref().map(|s| s.clone_ref(py))).collect();
        let remix = py.import("windrow._native")?.getattr("_remix")?;
        let arrays =
            self.mixture.parts().map(|(_, samples, _)| in_memory::pickled(py, samples.dataset())).collect();
        let mut kept = Vec::new();
        for (_, samples, _) in self.mixture.parts() {
            kept.extend(select::kept(py, &samples.recipe().options)?);
        }
        Ok((remix, (recipe, self.seeds.clone(), scalers, self.epochs.pickled(py), arrays, kept)))
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

/// Phases that are shown.
const MOST_SHOWN: usize = 8;

impl Mix {
    // Its views with their weights, or where those change their shares from each sample on.
    fn shown(&self) -> Vec<(String, String)> {
        let weights = self.mixture.shares().of_plain_views();
        let view = |(number, (name, samples, _)): (usize, (&str, &windrow::Samples, f64))| {
            let weight = weights.get(number).map_or(String::new(), |weight| format!(", weight {weight}"));
            (name.to_string(), format!("{} samples{weight}", shown::count(samples.len())))
        };
        let mut rows: Vec<(String, String)> = self.mixture.parts().enumerate().map(view).collect();
        if weights.is_empty() {
            let shares = self.mixture.shares();
            let phases = match &self.sequence {
                Some(sequence) => sequence.shares(),
                None => shares.phases.clone(),
            };
            rows.extend(phases.iter().take(MOST_SHOWN).map(|phase| {
                let parts = shares.names.iter().zip(&phase.weights);
                let parts: Vec<String> = parts.map(|(name, share)| format!("{name} {share:.5}")).collect();
                (format!("from sample {}", shown::count(phase.start)), parts.join(", "))
            }));
            if phases.len() > MOST_SHOWN {
                rows.push(("…".into(), format!("{} more", phases.len() - MOST_SHOWN)));
            }
        }
        rows
    }
}

fn item<'py>(py: Python<'py>, index: Index, of: &impl ByNumber) -> PyResult<Bound<'py, PyAny>> {
    let one = |number: u64| -> PyResult<Bound<'py, PyAny>> {
        check(py)?;
        if of.is_rows() {
            return row::record(py, of.records(py, &[number])?.pop().unwrap_or(Value::Null));
        }
        Ok(framework::row_of(&Memory::new(py, of.assembled(py, &[number])?)?, 0)?.into_any())
    };
    match index {
        Index::One(number) => one(number),
        Index::Many(numbers) => {
            let rows = numbers.into_iter().map(one).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, rows)?.into_any())
        }
    }
}

fn items<'py>(py: Python<'py>, numbers: &[u64], of: &impl ByNumber) -> PyResult<Bound<'py, PyAny>> {
    if of.is_rows() {
        Ok(row::list(py, of.records(py, numbers)?)?.into_any())
    } else {
        framework::rows(&Memory::new(py, of.assembled(py, numbers)?)?, numbers.len())
    }
}

fn loader<'py>(
    view: &Bound<'py, PyAny>,
    batch_size: Option<Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = view.py();
    let arguments = PyTuple::new(py, [Some(view.clone()), batch_size])?;
    py.get_type::<Loader>().call(arguments, options)
}
