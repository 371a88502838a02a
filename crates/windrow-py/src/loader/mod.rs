//! `windrow.Loader`: a view or mixture as batches, in any order, for any number of ranks, resumable at any step.

pub(crate) mod answers;
pub(crate) mod balance;
pub(crate) mod batches;
pub(crate) mod bench;
pub(crate) mod blocks;
pub(crate) mod delivery;
pub(crate) mod exclude;
pub(crate) mod lengths;
pub(crate) mod mapped;
pub(crate) mod outputs;
pub(crate) mod ranks;
pub(crate) mod running;
pub(crate) mod seqax;
pub(crate) mod trace;

use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use windrow::{Error, LastBatch, LoaderBuilder, State, last_batch};
use windrow_core::plan::Cursor;

use crate::loader::balance::balance;
use crate::loader::batches::Batches;
use crate::loader::blocks::shuffle;
use crate::loader::delivery::Delivery;
use crate::loader::mapped::{Mapped, Spent};
use crate::loader::ranks::{Found, Ranks, context};
use crate::loader::running::Running;
use crate::python::dtype::AnyDType;
use crate::python::error::{OrRaise, raise};
use crate::python::framework::Framework;
use crate::python::given::given;
use crate::python::json;
use crate::python::mapping::Mapping;
use crate::python::options::Count;
use crate::python::said::class_of;
use crate::python::{near, shown};
use crate::view::{Mix, View};

#[pyclass(frozen, module = "windrow", name = "Loader")]
pub(crate) struct Loader {
    delivery: Arc<Delivery>,
    whole: bool,
}

impl Loader {
    /// The run.
    pub(crate) fn running(&self) -> &Running {
        &self.delivery.running
    }

    // What the loader gives and where it is.
    fn shown(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String)>> {
        let (plan, steps) = self.running().plan(py)?;
        let Cursor { epoch, samples, .. } = self.running().cursor();
        let views: Vec<_> = plan.feeds().iter().map(|feed| feed.view().describe()).collect();
        let rows = shown::count(steps.global_batch_size);
        let rows = if plan.sampler().batches().is_some() { format!("about {rows}") } else { rows };
        let Found { shard, by } = self.running().rank(py)?;
        let context = self.running().builder(py)?.context_group();
        let context =
            context.map_or(String::new(), |(rank, size)| format!(", rank {rank} of {size} of each row"));
        let outputs = plan.feeds().first().and_then(|feed| feed.outputs());
        let in_epoch = match py.detach(|| steps.in_epoch(plan.sampler(), epoch)) {
            Some(n) => format!("{} batches", shown::count(n.saturating_mul(steps.micro_batches))),
            None => "no end".to_string(),
        };
        let shown = [
            Some(("view", views.join(" + "))),
            outputs.map(|fields| ("fields", fields)),
            Some((
                "batch",
                format!("{rows} rows, rank {} of {} ({by}){context}", shard.rank(), shard.world_size()),
            )),
            Some(("order", format!("{}, seed {}", plan.sampler().describe(), plan.seed()))),
            Some((
                "epoch",
                format!("{epoch}, {} samples delivered; an epoch has {in_epoch}", shown::count(samples)),
            )),
        ];
        Ok(shown.into_iter().flatten().collect())
    }
}

#[pymethods]
impl Loader {
    fn __iter__(this: Bound<'_, Self>) -> PyResult<Batches> {
        let (py, loader) = (this.py(), this.get());
        let Some(epoch) = loader.running().upcoming_epoch(py)? else {
            let Some(n_epochs) = loader.running().plan(py)?.1.epochs else {
                let error = Error::config("the run is over: every part of the mix has had its max_epochs")
                    .hint(
                        "give max_epochs that reach further; next(loader) and loader.stream() just end there",
                    );
                return Err(raise(py, &error));
            };
            let error = Error::config(format!(
                "the run is over: epochs={n_epochs}, and all of them were delivered"
            ))
            .hint("leave epochs= out or give a larger one; next(loader) and loader.stream() just end there");
            return Err(raise(py, &error));
        };
        if loader.whole && loader.running().cursor().epoch == epoch {
            loader.running().begin(py, epoch)?;
        }
        Ok(Batches::of_epoch(loader.delivery.clone(), epoch))
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.delivery.next(py, None)
    }

    /// An iterator over all batches that are left, epoch after epoch; it ends after the last of ``epochs``.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, epochs=2)
    /// >>> len(loader), len(list(loader.stream()))
    /// (3, 6)
    fn stream(this: Bound<'_, Self>) -> Batches {
        Batches::all(this.get().delivery.clone())
    }

    /// Goes to the first batch of an epoch. The epoch that the loader is in keeps its place, so a trainer may call this
    /// before each ``for``, after resuming too.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1)
    /// >>> batch = next(loader)
    /// >>> loader.set_epoch(0)
    /// >>> loader.epoch, loader.samples
    /// (0, 1)
    /// >>> loader.set_epoch(5)
    /// >>> loader.epoch, loader.samples
    /// (5, 0)
    fn set_epoch(&self, py: Python<'_>, epoch: Count) -> PyResult<()> {
        if self.running().cursor().epoch == epoch.0 { Ok(()) } else { self.running().begin(py, epoch.0) }
    }

    /// Batches of the epoch that the next ``for`` is in, those that were delivered among them.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let (plan, steps) = self.running().plan(py)?;
        let cursor = self.running().cursor();
        // Skips make epochs unequal, and where nothing is left of one, `for` begins the next: as `__iter__` does.
        let epoch = steps.next(plan.sampler(), cursor).map_or(cursor.epoch, |step| step.epoch);
        // Where each epoch has batches of its own, this goes through the epoch.
        let n_steps = py.detach(|| steps.in_epoch(plan.sampler(), epoch));
        n_steps
            .and_then(|n| usize::try_from(n.checked_mul(steps.micro_batches)?).ok())
            .ok_or_else(|| PyTypeError::new_err("a mixture with stop=\"never\" has no length"))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let rows = self.shown(py)?;
        let texts: Vec<_> = rows.iter().map(|(name, text)| format!("{name}: {text}")).collect();
        Ok(format!("Loader({})", texts.join("; ")))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(shown::table("windrow.Loader", &self.shown(py)?))
    }

    fn __getattr__(this: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        Err(near::no_attribute(this.as_any(), name))
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.running().stop(py)
    }

    /// Ends the threads and frees the batches assembled ahead; the next batch would start them again.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1)
    /// >>> batch = next(loader)
    /// >>> loader.close()
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.running().stop(py)
    }

    /// Where the run is: ``{"version", "plan", "seed", "epoch", "samples"}``. Plain JSON below one kilobyte, the same on
    /// every rank; counts the batches that ``next`` gave.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, seed=7)
    /// >>> batches = next(loader), next(loader)
    /// >>> state = loader.state_dict()
    /// >>> state["version"], state["seed"], state["epoch"], state["samples"]
    /// (1, 7, 0, 2)
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::plain(py, &self.running().state())
    }

    /// Goes to where a run of the same plan was, whatever its batch size, threads and number of ranks.
    ///
    /// Raises:
    ///     MismatchError: the state is of another plan or seed; the loader stays where it was.
    ///     CorruptError, UnsupportedError: it is not a state, or of another version.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> view = wr.open(path, dtype="uint16").pack(3)
    /// >>> loader = wr.Loader(view, batch_size=1)
    /// >>> batch = next(loader)
    /// >>> resumed = wr.Loader(view, batch_size=1)
    /// >>> resumed.load_state_dict(loader.state_dict())
    /// >>> bool((next(resumed)["labels"] == next(loader)["labels"]).all())
    /// True
    fn load_state_dict(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        self.running().resume(py, &State::from_json(&json_text(state)?).or_raise(py)?)
    }

    /// The samples of this loader one by one, for hosts that ask a loader for its data set: a ``windrow.torch.Stream`` that
    /// is where the loader is. Needs torch.
    #[getter]
    fn dataset<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let stream = py.import("windrow.torch").map_err(|error| {
            let needed = PyAttributeError::new_err("the data set of a Loader needs torch");
            needed.set_cause(py, Some(error));
            needed
        })?;
        let delivery = &this.get().delivery;
        let is_collated = delivery.collate.is_some() || delivery.running.mapped().is_some();
        stream.getattr("Stream")?.call_method1("of", (this, is_collated))
    }

    /// Rows of a full batch of this rank; None with ``max_tokens``, where each batch has its own.
    #[getter]
    fn batch_size(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let (plan, steps) = self.running().plan(py)?;
        let own = steps.shard.rows(steps.global_batch_size);
        let rows = (own.end - own.start) / steps.micro_batches.max(1);
        Ok(plan.sampler().batches().is_none().then_some(rows))
    }

    /// None: a loader knows its order itself.
    #[getter]
    fn batch_sampler(&self) -> Option<u64> {
        None
    }

    /// None: a loader knows its order itself.
    #[getter]
    fn sampler(&self) -> Option<u64> {
        None
    }

    /// 0: a loader has threads, no worker processes.
    #[getter]
    fn num_workers(&self) -> u64 {
        0
    }

    /// None: it is worker processes that fetch ahead by it.
    #[getter]
    fn prefetch_factor(&self) -> Option<u64> {
        None
    }

    /// Whether the last batch of an epoch is left out when it is not full.
    #[getter]
    fn drop_last(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.running().plan(py)?.1.last == LastBatch::Drop)
    }

    /// By what rows are dealt to ranks, as ``balance=`` was given; of a function its name.
    #[getter]
    fn balance(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.running().plan(py)?.0.balance().map(ToString::to_string))
    }

    /// How many batches of a rank make an optimiser's step.
    #[getter]
    fn accumulate(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.running().plan(py)?.1.micro_batches)
    }

    /// The epoch, from 0.
    #[getter]
    fn epoch(&self) -> u64 {
        self.running().cursor().epoch
    }

    /// Samples of the epoch that were delivered, to all ranks together.
    #[getter]
    fn samples(&self) -> u64 {
        self.running().cursor().samples
    }

    /// The names of a mix's views, by the numbers that ``part`` has in a batch; ``"code/python"`` for a view of a mix in the mix.
    #[getter]
    fn parts(&self) -> Vec<String> {
        self.running().part_names().to_vec()
    }

    /// The plan's identity: the same text for the same data, view, order and layout.
    #[getter]
    fn plan(&self) -> String {
        self.running().identity()
    }

    /// A dict. Of the loader, in this process: ``batches``, ``samples`` and ``bytes`` delivered, ``repeated``
    /// (samples among them that fill last batches), ``values`` (those in the rows of the first tensor: tokens, steps of series) and
    /// ``positions`` (values and padding), ``padding_share`` (the part of positions that is padding), ``waited_secs`` (how long the
    /// program waited for batches), ``threads``. Batches of records have no positions. Of audio codes these three count frames, and
    /// ``text_values``, ``text_positions`` and ``text_padding_share`` the bytes of their texts; 0 for other data.
    ///
    /// ``rank``: for which rank the loader reads: ``rank``, ``world_size``, and ``by``, what says so: ``"rank, world_size"`` (the
    /// arguments), ``"group"``, ``"torch.distributed"``, ``"jax.distributed"``, the variables that were believed, or ``"no launcher"``.
    ///
    /// Of ``map=``, all threads of this process together: ``map_calls``; ``map_secs``, wall time inside the function, and
    /// ``map_cpu_secs``, processor time; ``map_lock_secs``, how long threads waited for the interpreter lock before calls.
    ///
    /// Of the stores behind the URLs of its data, since the data was opened in this process, 0 for local files:
    /// ``requests`` sent, ``received_bytes``, ``read_bytes`` (what reads gave, from the cache too), ``amplification`` (the first
    /// divided by the second), ``cache_hits`` and ``cache_misses`` (reads that found all their bytes here, and that waited for the store), ``store_waited_secs`` (how long those waited, all threads together), ``retries`` and
    /// ``hedged`` (requests sent again after a failure, and beside a late one). All that read the same opened data are counted
    /// together; a mix adds up its stores.
    ///
    /// Of a mix also ``parts``: name → ``samples`` of this epoch that were delivered to all ranks, and ``epochs``, how many times its
    /// samples that is. Known from the place of the run, so resuming keeps them.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").records(12).loader(batch_size=1, num_threads=0)
    /// >>> batch = next(loader)
    /// >>> stats = loader.stats()
    /// >>> stats["batches"], stats["samples"], stats["values"], stats["positions"], stats["threads"]
    /// (1, 1, 10, 12, 0)
    /// >>> stats["rank"]
    /// {'rank': 0, 'world_size': 1, 'by': 'no launcher'}
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = self.running().stats(py)?;
        let stats = json::plain(py, &all)?;
        stats.set_item("padding_share", all.padding_share())?;
        stats.set_item("amplification", all.stores.amplification())?;
        let Found { shard, by } = self.running().rank(py)?;
        let rank = PyDict::new(py);
        rank.set_item("rank", shard.rank())?;
        rank.set_item("world_size", shard.world_size())?;
        rank.set_item("by", by)?;
        stats.set_item("rank", rank)?;
        stats.set_item("text_padding_share", all.text_padding_share())?;
        match self.running().mapped() {
            Some(mapped) => mapped.spent().say(&stats)?,
            None => Spent::default().say(&stats)?,
        }
        let of_parts = self.running().part_samples();
        if !of_parts.is_empty() {
            let parts = PyDict::new(py);
            for (name, samples, epochs) in of_parts {
                let part = PyDict::new(py);
                part.set_item("samples", samples)?;
                part.set_item("epochs", epochs)?;
                parts.set_item(name, part)?;
            }
            stats.set_item("parts", parts)?;
        }
        Ok(stats)
    }

    /// What was delivered and where the run is, as a flat dict of floats for a logger: ``data/samples``, ``data/values``,
    /// ``data/epoch``, ``data/padding_share``, ``data/waited_seconds`` and others, of this process.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=2)
    /// >>> batch = next(loader)
    /// >>> metrics = loader.metrics()
    /// >>> metrics["data/samples"], metrics["data/values"], metrics["data/epoch"], metrics["data/padding_share"]
    /// (2.0, 6.0, 0.0, 0.0)
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = windrow::metrics(&self.running().stats(py)?, self.running().cursor());
        let dict = PyDict::new(py);
        all.into_iter().try_for_each(|(name, number)| dict.set_item(name, number))?;
        Ok(dict)
    }

    /// Metrics in the text format that Prometheus collects, labelled with the rank.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> loader = wr.open(path, dtype="uint16").pack(3).loader(batch_size=2, rank=0, world_size=1)
    /// >>> batch = next(loader)
    /// >>> [line for line in loader.prometheus().splitlines() if line.startswith("windrow_samples")]
    /// ['windrow_samples_total{rank="0"} 2']
    fn prometheus(&self, py: Python<'_>) -> PyResult<String> {
        let rank = self.running().plan(py)?.1.shard.rank();
        Ok(windrow::prometheus(&self.running().stats(py)?, self.running().cursor(), rank))
    }

    /// How well the order mixes, from the order alone: a dict, of a mix one for each part by its name.
    ///
    /// ``rows`` of a batch of all ranks; ``block_size`` and ``blocks``, those of the order or else runs of samples of 8 MiB;
    /// ``effective_blocks``: how many blocks of equal weight would give a batch as much variety; ``excess_variance``: by what the
    /// variance of a batch's mean is multiplied for a property that a block's samples share, 1 for a global shuffle;
    /// ``reach``: samples over which a block is spread; ``neighbours_apart``: the mean distance of neighbours, 1 for a global
    /// shuffle. Counted over 64 batches of the first epoch. With ``max_tokens`` also ``padding_share``, the part of all positions that is
    /// padding, and ``padding_share_at_random``, what that would be in batches of as many random rows.
    ///
    /// With ``balance=`` and several ranks also ``waiting``, a dict, from the lengths of documents: by what the dearest rank costs more than
    /// the mean, over 64 steps, where rows come in order (``before``) and as they are dealt (``after``); ``ranks``, and for each of them
    /// how long it waits, as a part of what a rank costs (``ranks_before``, ``ranks_after``).
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(8001, dtype=np.uint16).tofile(path)
    /// >>> view = wr.open(path, dtype="uint16").pack(8)
    /// >>> mixing = wr.Loader(view, global_batch_size=32, shuffle=wr.Blocks(size=10)).mixing()
    /// >>> mixing["blocks"], mixing["reach"]
    /// (100, 240)
    fn mixing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let builder = self.running().builder(py)?;
        let mut found = py.detach(|| builder.mixing()).or_raise(py)?;
        if builder.part_names().is_empty() {
            return json::plain(py, &found.pop());
        }
        let parts = PyDict::new(py);
        for (name, mixing) in builder.part_names().iter().zip(&found) {
            parts.set_item(name, json::plain(py, mixing)?)?;
        }
        Ok(parts.into_any())
    }

    /// The plan as a JSON dict: what ``windrow trace`` and ``windrow.trace`` take.
    ///
    /// Raises:
    ///     ConfigError: records are scaled by a function, which JSON cannot hold.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> recipe = wr.open(path, dtype="uint16").pack(3).loader(batch_size=1, seed=7).recipe()
    /// >>> recipe["seed"], recipe["parts"][0]["view"]
    /// (7, {'pack': {'length': 3}})
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::plain(py, &self.running().builder(py)?.recipe().or_raise(py)?)
    }
}

given! {
    struct Given<'py> {
        batch_size: Option<Count>,
        global_batch_size: Option<Count>,
        max_tokens: Option<Count>,
        multiple: Count,
        pool: Option<Count>,
        lengths: Option<Bound<'py, PyAny>>,
        shuffle: Bound<'py, PyAny>,
        seed: Count,
        drop_last: bool,
        rank: Option<Count>,
        world_size: Option<Count>,
        epochs: Option<Count>,
        group: Option<Py<PyAny>>,
        context: Option<Bound<'py, PyAny>>,
        whole: bool,
        last: Option<String>,
        skip: Option<Vec<(Count, Count)>>,
        exclude: Option<Bound<'py, PyAny>>,
        num_threads: Option<Count>,
        prefetch: Count,
        framework: String,
        pin_memory: bool,
        dtype: Option<AnyDType>,
        collate: Option<Py<PyAny>>,
        map: Option<Bound<'py, PyAny>>,
        map_name: Option<String>,
        names: Option<Mapping<'py>>,
        dtypes: Option<Mapping<'py>>,
        balance: Option<Bound<'py, PyAny>>,
        accumulate: Count,
    }
}

/// A loader of a view or mixture.
#[pyfunction]
pub(crate) fn _loader(
    py: Python<'_>,
    view: &Bound<'_, PyAny>,
    given: &Bound<'_, PyDict>,
) -> PyResult<Loader> {
    let given = Given::of(given)?;
    let builder = builder_of(py, view, given.dtype, given.exclude.as_ref())?;
    let builder = match (given.batch_size, given.global_batch_size, given.max_tokens) {
        (Some(rows), None, None) => builder.batch_size(rows.0),
        (None, Some(rows), None) => builder.global_batch_size(rows.0),
        (None, None, Some(tokens)) => builder.max_tokens(tokens.0),
        (None, None, None) => return Err(one_of(py, "batch_size or global_batch_size: none is given")),
        (Some(_), Some(_), _) => return Err(one_of(py, "batch_size or global_batch_size: both are given")),
        _ => return Err(one_of(py, "a batch size and max_tokens: both are given")),
    };
    let builder = if given.multiple.0 == 1 { builder } else { builder.multiple(given.multiple.0) };
    let builder = given.pool.map_or(builder.clone(), |rows| builder.pool(rows.0));
    let builder = match &given.lengths {
        Some(lengths) => builder.lengths(lengths::given(lengths)?),
        None => builder,
    };
    let last = last_batch(given.drop_last, given.last.as_deref()).or_raise(py)?;
    let skip: Vec<(u64, u64)> = given.skip.iter().flatten().map(|(from, to)| (from.0, to.0)).collect();
    let order = shuffle(&given.shuffle, builder.part_names())?;
    let ranks = Ranks::new(py, given.rank, given.world_size, given.group)?;
    let builder = builder
        .shuffle(order)
        .seed(given.seed.0)
        .last(last)
        .skip(&skip)
        .epochs(given.epochs.map(|e| e.0))
        .num_threads(given.num_threads.map(Count::size))
        .prefetch(given.prefetch.size())
        .map_name(given.map_name.as_deref())
        .balance(given.balance.as_ref().map(balance).transpose()?)
        .accumulate(given.accumulate.0);
    let builder = match &given.context {
        Some(_) if given.map.is_some() => {
            let error = Error::config("map= and context= are given: a function would get a part of each row");
            return Err(raise(py, &error.field("context").hint("leave one of them out")));
        }
        Some(given) => builder.context(context(given)?),
        None => builder,
    };
    let functions = [("map", given.map.is_some()), ("collate", given.collate.is_some())];
    let function = functions.into_iter().find_map(|(name, is_given)| is_given.then_some(name));
    let builder = outputs::of(py, builder, [&given.names, &given.dtypes], function)?;
    if let (None, Some(name)) = (&given.map, &given.map_name) {
        let error = Error::config(format!("map_name={name:?} names no function"));
        return Err(raise(py, &error.field("map_name").hint("give map= too")));
    }
    let framework = match Framework::named(py, &given.framework)? {
        framework if given.pin_memory => framework.pinned(py)?,
        framework => framework,
    };
    let collate = given.collate;
    if let Some(collate) = collate.as_ref().map(|c| c.bind(py)).filter(|c| !c.is_callable()) {
        return Err(PyTypeError::new_err(format!("collate is a function, not {}", class_of(collate)?)));
    }
    let mapped = given.map.map(|function| Mapped::new(function, collate.is_some())).transpose()?;
    let running = Running::new(py, builder, ranks, mapped)?;
    Ok(Loader { delivery: Arc::new(Delivery { running, framework, collate }), whole: given.whole })
}

fn one_of(py: Python<'_>, found: &str) -> PyErr {
    let error = Error::config(found).hint(
        "batch_size counts the rows of each rank, global_batch_size those of all ranks together; max_tokens, rows times the longest, \
         counts all ranks too",
    );
    raise(py, &error)
}

fn builder_of(
    py: Python<'_>,
    view: &Bound<'_, PyAny>,
    dtype: Option<AnyDType>,
    exclude: Option<&Bound<'_, PyAny>>,
) -> PyResult<LoaderBuilder> {
    if let Ok(view) = view.cast::<View>() {
        let samples = view.get().samples();
        let samples = match exclude {
            None => samples.clone(),
            Some(given) => exclude::of_view(py, samples, given)?,
        };
        return match dtype {
            None => Ok(samples.loader()),
            Some(dtype) => Ok(py.detach(|| samples.with_dtype(dtype.0)).or_raise(py)?.loader()),
        };
    }
    if let Ok(mixed) = view.cast::<Mix>() {
        let mixture = mixed.get().mixture();
        let mixture = match exclude {
            None => mixture.clone(),
            Some(given) => exclude::of_mix(py, mixture, given)?,
        };
        let Some(dtype) = dtype else { return Ok(mixture.loader()) };
        let again = py.detach(|| mixture.with_dtype(dtype.0));
        return Ok(again.or_raise(py)?.loader());
    }
    let class = class_of(view)?;
    Err(PyTypeError::new_err(format!(
        "a Loader takes a View or a Mix, not {class}; cut a data set first, as ds.pack(1024)"
    )))
}

// A state is a flat dict of texts and whole numbers, as torch's checkpoints give them too: numbers as tensors of one value.
// What else it holds, Python's json writes, which takes a millisecond to import.
fn json_text(dict: &Bound<'_, PyDict>) -> PyResult<String> {
    let py = dict.py();
    let plain = PyDict::new(py);
    let mut map = serde_json::Map::new();
    for (key, value) in dict {
        let value = if value.is_exact_instance_of::<PyInt>() || !value.hasattr("item")? {
            value
        } else {
            value.call_method0("item")?
        };
        if let Ok(text) = value.cast::<PyString>() {
            map.insert(key.extract()?, text.to_str()?.into());
        } else if let (true, Ok(number)) = (value.is_exact_instance_of::<PyInt>(), value.extract::<u64>()) {
            map.insert(key.extract()?, number.into());
        }
        plain.set_item(key, value)?;
    }
    if map.len() == plain.len() {
        Ok(serde_json::Value::from(map).to_string())
    } else {
        py.import("json")?.call_method1("dumps", (plain,))?.extract()
    }
}
