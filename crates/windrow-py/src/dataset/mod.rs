//! An opened data set: records by number, and the views that cut them.

mod by_time;
pub(crate) mod open;
pub(crate) mod scaler;
pub(crate) mod select;

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use windrow::{Error, Scaler};
use windrow_core::store::whole;
use windrow_core::{Decode, Span, Values};

use crate::dataset::scaler::cut;
use crate::python::array::value_array;
use crate::python::dtype::AnyDType;
use crate::python::error::{OrRaise, raise};
use crate::python::framework::watch_worker;
use crate::python::index::{Each, Index};
use crate::python::interrupt::check;
use crate::python::json;
use crate::python::json_strings::Stop;
use crate::python::near;
use crate::python::near::none_left;
use crate::python::options::Count;
use crate::python::paths;
use crate::python::pickled::fingerprint;
use crate::python::shown;
use crate::python::waiting::{wait_for, wait_while};
use crate::python::{in_memory, row};
use crate::view::{View, options};

/// Records on disk, by number.
///
/// ``ds[i]`` is a read-only numpy array ``[T]`` or ``[T, C]`` in the stored dtype, or the parsed value where records are
/// JSON; a dict of arrays where arrays run beside the tokens. ``i`` counts from either end; a slice, list or 1-D array of
/// numbers gives a list. Made by ``windrow.open``.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
/// >>> ds = wr.open(folder)
/// >>> len(ds), ds[-1]
/// (2, {'text': 'two'})
#[pyclass(frozen, module = "windrow", name = "Dataset")]
pub(crate) struct Dataset {
    data: windrow::Dataset,
    // Taken for the length of a parse; a second taker starts with an empty one.
    workspace: Mutex<json::Workspace>,
}

impl Dataset {
    /// Around an opened one.
    pub(crate) fn new(data: windrow::Dataset) -> Dataset {
        Dataset { data, workspace: Mutex::default() }
    }

    /// The opened one.
    pub(crate) fn data(&self) -> &windrow::Dataset {
        &self.data
    }

    fn record<'py>(&self, py: Python<'py>, record: u64) -> PyResult<Bound<'py, PyAny>> {
        let schema = self.data.source().schema();
        if self.data.is_json() {
            return self.json(py, record);
        }
        if self.data.is_rows() {
            return row::value(
                py,
                py.detach(|| self.data.source().value(record, None))
                    .map_err(|e| self.data.numbered(e))
                    .or_raise(py)?,
            );
        }
        let has_channels = schema.channels.is_some();
        let source = self.data.source();
        let mut scratch = Vec::new();
        // The length may be read from where the values are.
        let (span, values) = py
            .detach(|| {
                let span = Span { record, start: 0, len: source.length(record)? };
                source.read(span, &mut scratch).map(|values| (span, values))
            })
            .map_err(|e| self.data.numbered(e))
            .or_raise(py)?;
        let dtype = if schema.own_dtypes { values.element.dtype } else { schema.element.dtype };
        let tokens = value_array(py, &values, dtype, has_channels)?;
        if schema.stored_tracks().next().is_none() {
            return Ok(tokens);
        }
        let dict = PyDict::new(py);
        dict.set_item(schema.values_name, tokens)?;
        for (number, track) in schema.stored_tracks() {
            let mut scratch = Vec::new();
            let values = py.detach(|| source.read_track(number, span, &mut scratch));
            let values = values.map_err(|e| self.data.numbered(e)).or_raise(py)?;
            dict.set_item(&track.name, value_array(py, &values, track.element.dtype, false)?)?;
        }
        Ok(dict.into_any())
    }

    // The numbers of a record in the dtype that it is stored in; de-normalised ones are numbers of the data set's dtype.
    fn stored<'py>(&self, py: Python<'py>, record: u64) -> PyResult<Bound<'py, PyAny>> {
        let source = self.data.source();
        let schema = source.schema();
        let mut scratch = Vec::new();
        let values = py.detach(|| source.read_whole(record, &mut scratch));
        let values = values.map_err(|e| self.data.numbered(e)).or_raise(py)?;
        let (values, dtype) = match values.decode {
            Decode::Plain | Decode::Single => {
                (Values { decode: Decode::Plain, ..values }, values.element.dtype)
            }
            _ => (values, schema.element.dtype),
        };
        value_array(py, &values, dtype, schema.channels.is_some())
    }

    fn json<'py>(&self, py: Python<'py>, record: u64) -> PyResult<Bound<'py, PyAny>> {
        let source = self.data.source();
        let mut scratch = Vec::new();
        let values = py.detach(|| source.read_whole(record, &mut scratch));
        let values = values.map_err(|e| self.data.numbered(e)).or_raise(py)?;
        let parsed = match self.workspace.try_lock() {
            Ok(mut workspace) => json::parse(py, values.bytes, &mut workspace),
            Err(_) => json::parse(py, values.bytes, &mut json::Workspace::default()),
        };
        parsed.map_err(|stop| match stop {
            Stop::Python(error) => error,
            Stop::Text(at, what) => {
                let mut error = Error::corrupt(format!("not JSON: {what}"))
                    .record(self.data.number(record))
                    .hint("every line must hold one JSON value; NaN and Infinity are not JSON");
                let span = Span { record, start: 0, len: values.bytes.len() as u64 };
                if let Some(place) = source.locate(span).ok().and_then(|places| places.into_iter().next()) {
                    error = error.at(place.file).byte(place.start + at as u64);
                }
                raise(py, &error)
            }
        })
    }

    // What `one` gives for the record that a key names, or a list of it for several.
    fn each<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        one: impl Fn(&Dataset, Python<'py>, u64) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        watch_worker(py)?;
        match Index::read(key, "record", self.data.len())? {
            Index::One(record) => whole(|| one(self, py, record)),
            Index::Many(records) => {
                let list = PyList::empty(py);
                for record in records {
                    check(py)?;
                    list.append(whole(|| one(self, py, record))?)?;
                }
                Ok(list.into_any())
            }
        }
    }

    // What a record is, as `int64 [T, 2]`.
    fn kind(&self) -> String {
        let schema = self.data.source().schema();
        if self.data.is_rows() {
            if schema.is_value() {
                return schema.columns[0].holds.clone();
            }
            let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
            return format!("rows of {}", names.join(", "));
        }
        match (self.data.is_json(), schema.channels) {
            (true, _) => "JSON".to_string(),
            (false, None) => format!("{} [T]", schema.element.dtype),
            (false, Some(channels)) => format!("{} [T, {channels}]", schema.element.dtype),
        }
    }
}

#[pymethods]
impl Dataset {
    fn __len__(&self) -> usize {
        usize::try_from(self.data.len()).unwrap_or(usize::MAX)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, key, Dataset::record)
    }

    /// As ``ds[key]``, for records of numbers: each in the dtype that it has by itself where it is stored.
    fn _stored<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.each(py, key, Dataset::stored)
    }

    /// The view of this name with these options, as the methods of ``windrow.dataset`` give them.
    fn _view(
        &self,
        py: Python<'_>,
        view: &str,
        given: &Bound<'_, PyDict>,
        dtype: Option<AnyDType>,
        seed: Count,
    ) -> PyResult<View> {
        let recipe = options::recipe(py, view, given)?;
        let function = given.get_item("scaler")?.filter(|scaler| scaler.is_callable()).map(Bound::unbind);
        let dtype = dtype.map(|dtype| dtype.0);
        let samples = if *recipe.scaler() == Scaler::None {
            let data = self.data.clone();
            wait_for(py, move || data.view(recipe, dtype))?
        } else {
            cut(py, &self.data, recipe, dtype, function.as_ref())?
        };
        View::new(py, samples, seed.0, function)
    }

    fn __iter__(this: &Bound<'_, Self>) -> Each {
        Each::of(this.as_any(), this.get().data.len())
    }

    fn __repr__(&self) -> String {
        let path = shown::paths(self.data.paths());
        format!(
            "Dataset({path}, format={:?}, {} records of {})",
            self.data.source().format(),
            shown::count(self.data.len()),
            self.kind()
        )
    }

    fn _repr_html_(&self) -> String {
        let files = self.data.source().files();
        let bytes = files.iter().map(|file| file.size).sum();
        shown::table(
            "windrow.Dataset",
            &[
                ("path", self.data.paths().to_string()),
                ("format", self.data.source().format().to_string()),
                ("records", format!("{} of {}", shown::count(self.data.len()), self.kind())),
                (
                    "files",
                    format!("{} of {} bytes together", shown::count(files.len() as u64), shown::count(bytes)),
                ),
            ],
        )
    }

    fn __getattr__(this: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        Err(near::no_attribute(this.as_any(), name))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let native = py.import("windrow._native")?;
        let options = serde_json::to_string(self.data.options()).unwrap_or_default();
        let data = fingerprint(py, self.data.source())?;
        let kept = select::kept(py, self.data.options())?;
        Ok(match in_memory::pickled(py, &self.data) {
            Some((arrays, beside)) => {
                (native.getattr("_in_memory")?, (arrays, beside, options, data, kept).into_pyobject(py)?)
            }
            None => {
                let paths = paths::Given::of(self.data.paths());
                (native.getattr("_reopen")?, (paths, options, data, kept).into_pyobject(py)?)
            }
        })
    }

    /// A data set of chosen records, in the order that is given; nothing is read.
    ///
    /// Args:
    ///     which: record numbers (a list, an array or a range; negative ones count from the end), a mask of ``len(ds)`` values, or a slice.
    ///         A mask and a slice keep the order of the records.
    ///
    /// Returns:
    ///     A data set. ``sel[i]`` is the i-th chosen record. Errors, ``trace``, ``find``, ``coverage``, ``exclude`` and the field ``item``
    ///     call records by the numbers that they have in the first data set, which ``sel.numbers`` lists. A chosen record takes 4 bytes of
    ///     memory, 8 where there are more than 2**32 records; a slice takes none.
    ///
    /// Raises:
    ///     OutOfRangeError: a record that is not there.
    ///     ConfigError: a record that is chosen twice, a mask of another length, fractions.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "pages.jsonl"
    /// >>> _ = path.write_text("".join('{"text": "%s", "score": %g}\n' % page for page in [("a", 0.9), ("b", 0.2), ("c", 0.5)]))
    /// >>> ds = wr.open(path)
    /// >>> score = np.array([page["score"] for page in ds])
    /// >>> curriculum = ds.select(np.argsort(score))
    /// >>> [page["text"] for page in curriculum], curriculum.numbers.tolist()
    /// (['b', 'c', 'a'], [1, 2, 0])
    /// >>> len(ds.select(score > 0.4)), ds.select(slice(1, None)).select([-1]).numbers.tolist()
    /// (2, [2])
    fn select(&self, py: Python<'_>, which: &Bound<'_, PyAny>) -> PyResult<Dataset> {
        Ok(Dataset::new(select::select(py, &self.data, which)?))
    }

    /// The records for which ``column op value`` holds, in their order.
    ///
    /// The column is read once, by threads and without the interpreter's lock, and which records match is kept in the cache, 4 bytes for
    /// each. Of formats with columns (Parquet, Arrow) only that column is read; of JSON Lines the whole file.
    ///
    /// Args:
    ///     column: a column, a key of JSON records, or a key of ``ds.extras``.
    ///     op: ``"=="``, ``"!="``, ``"<"``, ``"<="``, ``">"`` or ``">="``.
    ///     value: a number or a text. Whole numbers and fractions are compared without rounding, texts by code points. A missing value
    ///         never matches, NaN matches only ``"!="``.
    ///
    /// Returns:
    ///     A data set, as ``select`` gives it. For more than one comparison call it again, or select by a mask.
    ///
    /// Raises:
    ///     ConfigError: no such column, with those that there are; a text that would be compared with a number, with the record;
    ///         another ``op``.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "pages.jsonl"
    /// >>> _ = path.write_text("".join('{"text": "%s", "score": %g}\n' % page for page in [("a", 0.9), ("b", 0.2), ("c", 0.8)]))
    /// >>> good = wr.open(path).where("score", ">=", 0.8)
    /// >>> [page["text"] for page in good], good.where("text", "!=", "a").numbers.tolist()
    /// (['a', 'c'], [2])
    #[pyo3(name = "where")]
    fn filter(
        &self,
        py: Python<'_>,
        column: String,
        op: &str,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Dataset> {
        let condition = select::condition(column, op, value)?;
        let data = self.data.clone();
        let found = wait_while(py, move |is_wanted| data.filter(condition, &|| !is_wanted()))?;
        Ok(Dataset::new(found))
    }

    /// The numbers that the records have in the data set that they were chosen from: an array, uint32 up to 2**32 records there, else
    /// uint64. Of a data set in which none were chosen, ``range(len(ds))``.
    #[getter]
    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        select::numbers(py, &self.data)
    }

    /// Two data sets: ``(train, validation)``, by whole records, so that no value is on both sides.
    ///
    /// Which records validate depends on ``seed`` and their number alone; each part keeps the order.
    ///
    /// Args:
    ///     validation: the fraction of all records, at least one of them.
    ///     seed: seed of the choice.
    ///
    /// Raises:
    ///     ConfigError: fewer than two records, or a fraction that is not between 0 and 1.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    /// >>> _ = path.write_text("[[1, 2], [3, 4], [5, 6], [7, 8]]")
    /// >>> train, validation = wr.open(path).split(0.25)
    /// >>> len(train), len(validation)
    /// (3, 1)
    #[pyo3(signature = (validation, *, seed=Count(0), **unknown), text_signature = "($self, validation, *, seed=0)")]
    fn split(
        &self,
        py: Python<'_>,
        validation: f64,
        seed: Count,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Dataset, Dataset)> {
        none_left(py, "Dataset.split", unknown)?;
        let (train, rest) = py.detach(|| self.data.split(validation, seed.0)).or_raise(py)?;
        Ok((Dataset::new(train), Dataset::new(rest)))
    }

    /// Data sets whose records are parts of every series, one after the other in time: by fractions, at times, or by last values.
    ///
    /// Part k of a series of T values ends at ``floor(T × (sum of the fractions up to it))``; what is left over is in none.
    /// With ``at`` or ``last`` there is one part more than there are times or numbers: the first has all values before.
    /// Scalers scale every part by the statistics of the first one, so nothing is known of what comes after it.
    ///
    /// Args:
    ///     fractions: above 0, together 1 or less.
    ///     at: a time or a list of ascending ones, as text, ``datetime``, ``datetime64`` or ``Timestamp``: values from it on are in the
    ///         next part. A value is at a time by the ``start`` and ``freq`` beside its record (``ds.extras(i)``). A series that is on one
    ///         side of a time has no values on the other.
    ///     last: how many values the last part has, or a list of the numbers of the last parts: ``last=[24, 48]`` gives all but the last
    ///         72 values, the next 24, and the last 48. Of a series that is shorter, later parts have their values first.
    ///     freq: for ``at``, the frequency in pandas's words of records that have none, such as ``"h"``, ``"15min"``, ``"MS"``.
    ///     context: values by which the parts after the first begin earlier, so that their windows have a context:
    ///         ``context_length`` of the windows, for forecasts of every value of a part.
    ///
    /// Raises:
    ///     ConfigError: other fractions, times or numbers, records that are not numbers or, with ``at``, lack ``start`` or a frequency; a
    ///         part that is split again.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    /// >>> _ = path.write_text("[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]")
    /// >>> train, validation, test = wr.open(path).split_by_time(0.7, 0.1, 0.2, context=2)
    /// >>> train[0].tolist(), validation[0].tolist(), test[0].tolist()
    /// ([0, 1, 2, 3, 4, 5, 6], [5, 6, 7], [6, 7, 8, 9])
    /// >>> [part[0].tolist() for part in wr.open(path).split_by_time(last=3)]
    /// [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9]]
    #[pyo3(
        signature = (*fractions, at=None, last=None, freq=None, context=Count(0)),
        text_signature = "($self, *fractions, at=None, last=None, freq=None, context=0)"
    )]
    fn split_by_time<'py>(
        &self,
        py: Python<'py>,
        fractions: &Bound<'py, PyTuple>,
        at: Option<&Bound<'py, PyAny>>,
        last: Option<&Bound<'py, PyAny>>,
        freq: Option<String>,
        context: Count,
    ) -> PyResult<Bound<'py, PyTuple>> {
        by_time::only_one(fractions, [("at", at.is_some()), ("last", last.is_some())])?;
        let (data, context, freq) = (&self.data, context.0, freq.as_deref());
        let parts = if let Some(at) = at {
            let times = by_time::times(at)?;
            py.detach(|| data.split_by_time_at(&times, freq, context))
        } else if let Some(freq) = freq {
            let error = Error::config(format!("freq={freq:?} of a split that is not at times"));
            Err(error.field("freq").hint("give at=, or leave freq out"))
        } else if let Some(last) = last {
            let numbers = by_time::numbers(last)?;
            py.detach(|| data.split_by_time_last(&numbers, context))
        } else {
            let fractions: Vec<f64> = fractions.extract()?;
            py.detach(|| data.split_by_time(&fractions, context))
        };
        let parts = parts.or_raise(py)?;
        PyTuple::new(py, parts.into_iter().map(Dataset::new).collect::<Vec<_>>())
    }

    /// Where it lies: an absolute path, or a list of them where a list was opened; an empty list of what is in memory.
    #[getter]
    fn path(&self) -> paths::Given {
        paths::Given::of(self.data.paths())
    }

    /// Name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.data.source().format()
    }

    /// What is beside the numbers of record ``i``: prompt, other JSON keys; ``{}`` when nothing does.
    ///
    /// Raises:
    ///     OutOfRangeError, CorruptError
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.jsonl"
    /// >>> _ = path.write_text('{"sequence": [1, 2, 3], "id": "a"}\n{"sequence": [4, 5], "id": "b"}\n')
    /// >>> wr.open(path).extras(1)
    /// {'id': 'b'}
    fn extras<'py>(&self, py: Python<'py>, i: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match Index::read(i, "record", self.data.len())? {
            Index::One(record) => row::dict(py, py.detach(|| self.data.extras(record)).or_raise(py)?),
            Index::Many(_) => Err(pyo3::exceptions::PyTypeError::new_err("extras() takes one record number")),
        }
    }

    /// The bytes of record ``i`` as they lie on disk.
    ///
    /// Raises:
    ///     OutOfRangeError, CorruptError
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint16).tofile(path)
    /// >>> wr.open(path, dtype="uint16").bytes(0)[:4]
    /// b'\x00\x00\x01\x00'
    fn bytes<'py>(
        &self,
        py: Python<'py>,
        i: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        match Index::read(i, "record", self.data.len())? {
            Index::One(record) => {
                let bytes = py.detach(|| self.data.bytes(record)).or_raise(py)?;
                Ok(pyo3::types::PyBytes::new(py, &bytes))
            }
            Index::Many(_) => Err(pyo3::exceptions::PyTypeError::new_err("bytes() takes one record number")),
        }
    }

    /// A dict: format, records, values, dtype, channels, length_min, length_mean, length_max, bytes, files, extras (keys that
    /// are beside the numbers), tracks (arrays beside the tokens), mask_columns (what says which
    /// tokens are learned), vocab_size, eos, tokenizer. What is not known is None.
    ///
    /// Raises:
    ///     CorruptError: an index is wrong.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.jsonl"
    /// >>> _ = path.write_text('{"sequence": [1, 2, 3], "id": "a"}\n{"sequence": [4, 5], "id": "b"}\n')
    /// >>> info = wr.open(path).info()
    /// >>> info["format"], info["records"], info["values"], info["dtype"], info["length_max"], info["extras"]
    /// ('series-jsonl', 2, 5, 'int64', 3, ['id'])
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let data = self.data.clone();
        let info = wait_for(py, move || data.info())?;
        json::plain(py, &info)
    }

    /// Values in record ``i``: ``T`` of ``[T]`` or ``[T, C]``. Reads none of them.
    ///
    /// Raises:
    ///     OutOfRangeError, CorruptError
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    /// >>> _ = path.write_text("[[1, 2, 3], [4, 5]]")
    /// >>> wr.open(path).length(0)
    /// 3
    fn length(&self, py: Python<'_>, i: &Bound<'_, PyAny>) -> PyResult<u64> {
        match Index::read(i, "record", self.data.len())? {
            Index::One(record) => py.detach(|| self.data.length(record)).or_raise(py),
            Index::Many(_) => Err(pyo3::exceptions::PyTypeError::new_err("length() takes one record number")),
        }
    }
}
