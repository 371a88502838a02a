//! An opened data set: records by number, and the views that cut them.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use windrow::{DocumentsLayout, Error, Labels, Scope, ViewRecipe};
use windrow_core::store::whole;
use windrow_core::{Decode, Span, Values};

use crate::array::value_array;
use crate::codes::{CodesOptions, Given};
use crate::dtype::AnyDType;
use crate::error::{OrRaise, raise};
use crate::framework::watch_worker;
use crate::in_memory;
use crate::index::{Each, Index};
use crate::interrupt::check;
use crate::json;
use crate::json_strings::Stop;
use crate::near;
use crate::near::none_left;
use crate::options::{Count, Id, Names, choice, scope_of};
use crate::paths;
use crate::pickled::fingerprint;
use crate::row;
use crate::scaler::{Scaler, cut, read_fit};
use crate::shown;
use crate::view::View;
use crate::waiting::wait_for;

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
            return row::value(py, py.detach(|| self.data.source().value(record, None)).or_raise(py)?);
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
            let values = py.detach(|| source.read_track(number, span, &mut scratch)).or_raise(py)?;
            dict.set_item(&track.name, value_array(py, &values, track.element.dtype, false)?)?;
        }
        Ok(dict.into_any())
    }

    // The numbers of a record in the dtype that it is stored in; de-normalised ones are numbers of the data set's dtype.
    fn stored<'py>(&self, py: Python<'py>, record: u64) -> PyResult<Bound<'py, PyAny>> {
        let source = self.data.source();
        let schema = source.schema();
        let mut scratch = Vec::new();
        let values = py.detach(|| source.read_whole(record, &mut scratch)).or_raise(py)?;
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
        let values = py.detach(|| source.read_whole(record, &mut scratch)).or_raise(py)?;
        let parsed = match self.workspace.try_lock() {
            Ok(mut workspace) => json::parse(py, values.bytes, &mut workspace),
            Err(_) => json::parse(py, values.bytes, &mut json::Workspace::default()),
        };
        parsed.map_err(|stop| match stop {
            Stop::Python(error) => error,
            Stop::Text(at, what) => {
                let mut error = Error::corrupt(format!("not JSON: {what}"))
                    .record(record)
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

    fn view(&self, py: Python<'_>, recipe: ViewRecipe, dtype: Option<AnyDType>, seed: u64) -> PyResult<View> {
        let data = self.data.clone();
        let samples = wait_for(py, move || data.view(recipe, dtype.map(|d| d.0)))?;
        View::new(py, samples, seed, None)
    }

    fn scaled(
        &self,
        py: Python<'_>,
        recipe: ViewRecipe,
        dtype: Option<AnyDType>,
        function: Option<Py<PyAny>>,
    ) -> PyResult<View> {
        let samples = cut(py, &self.data, recipe, dtype.map(|d| d.0), function.as_ref())?;
        View::new(py, samples, 0, function)
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
        Ok(match in_memory::pickled(py, &self.data) {
            Some((arrays, beside)) => {
                (native.getattr("_in_memory")?, (arrays, beside, options, data).into_pyobject(py)?)
            }
            None => {
                let paths = paths::Given::of(self.data.paths());
                (native.getattr("_reopen")?, (paths, options, data).into_pyobject(py)?)
            }
        })
    }

    /// Two data sets: ``(train, validation)``, by whole records, so that no value is on both sides.
    ///
    /// Which records validate depends on ``seed`` and their number alone; each part keeps the order.
    ///
    /// Args:
    ///     validation: the fraction of all records, at least one of them.
    ///     seed: keys the choice.
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

    /// One data set for each fraction: of every series the first, the next, … values.
    ///
    /// Part k of a series of T values ends at ``floor(T × (sum of the fractions up to it))``; what is left over is in none.
    /// Scalers scale every part by the statistics of the first one, so nothing is known of what comes after it.
    ///
    /// Args:
    ///     fractions: above 0, together 1 or less.
    ///     context: values by which the parts after the first begin earlier, so that their windows have a context:
    ///         ``context_length`` of the windows, for forecasts of every value of a part.
    ///
    /// Raises:
    ///     ConfigError: other fractions, records that are not numbers, a part that is split again.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    /// >>> _ = path.write_text("[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]")
    /// >>> train, validation, test = wr.open(path).split_by_time(0.7, 0.1, 0.2, context=2)
    /// >>> train[0].tolist(), validation[0].tolist(), test[0].tolist()
    /// ([0, 1, 2, 3, 4, 5, 6], [5, 6, 7], [6, 7, 8, 9])
    #[pyo3(signature = (*fractions, context=Count(0)), text_signature = "($self, *fractions, context=0)")]
    fn split_by_time<'py>(
        &self,
        py: Python<'py>,
        fractions: Vec<f64>,
        context: Count,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let parts = py.detach(|| self.data.split_by_time(&fractions, context.0)).or_raise(py)?;
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

    /// Sliding windows of ``context_length + prediction_length`` inputs, ``stride`` apart (None: their width).
    ///
    /// A sample is ``{"input_ids", "labels", "loss_masks"}``, each ``[width]`` (the first two ``[width, C]`` for ``[T, C]``
    /// records), from width + 1 values: labels are one value later, masks int32, 1 where the label is real. Values are
    /// float32 with a scaler, else int64 or float32, unless ``dtype`` says otherwise.
    ///
    /// Args:
    ///     scaler: None for the values as they are; ``"standard"`` (or ``"zero"``) subtracts the mean and divides by the
    ///         population's standard deviation; ``"minmax"`` takes the least and greatest value to 0 and 1; ``"robust"``
    ///         subtracts the median and divides by the distance of the quartiles; ``"mean_abs"`` divides by the mean
    ///         magnitude, ``"max"`` by the largest. A spread of 0 divides by 1. Statistics of records are
    ///         computed once, now, and kept in the cache folder; a window reads its own values only. Computed in float64 and
    ///         rounded once, to ``dtype``. Or a function: it gets a whole record as array ``[T]`` or ``[T, C]`` (float64 for
    ///         series of float64 and of whole numbers of 32 or 64 bits, else float32) and gives an array of that shape,
    ///         always the same one.
    ///     tail: ``"drop"``, or ``"pad"`` for a padded window more where values would be left over.
    ///     nan: ``"propagate"`` as in arithmetic; ``"mask"`` leaves NaN and infinity out of the statistics, puts 0 where a
    ///         scaled value is not finite, and takes its label out of ``loss_masks``.
    ///     fit: the part of each record that statistics come from: two fractions
    ///         ``(0.0, 0.7)``, or a ``range`` of values. None takes the whole record, so windows are scaled by what comes
    ///         after them; of a part by ``split_by_time`` it takes the first part.
    ///     per: what shares statistics: ``"series"``, all channels of a record; ``"channel"``, each channel of a record;
    ///         ``"window"``, each channel of each window, by its first ``context_length`` values alone.
    ///     starts: ``"strided"``; ``"random"``: as many windows, each anywhere in its record, drawn anew each epoch;
    ///         ``"last"``: one for each record, that ends with it, for evaluation; it takes no ``stride``.
    ///     fields: what to lay beside the values: ``"item"`` and ``"start"`` (``[]`` int64: the record's number, and the number
    ///         in it of the window's first value), ``"loc"`` and ``"scale"`` (float64, ``[]``, or ``[C]`` with statistics per
    ///         channel or window of ``[T, C]``: what was subtracted, and divided by; ``wr.inverse`` undoes it);
    ///         ``"time_features"`` (float32 ``[width, features]``, those of GluonTS's ``time_features_from_frequency_str``, from
    ///         ``start`` and ``freq`` beside a record); by their names beside a record ``"feat_static_cat"`` (int64 ``[features]``),
    ///         ``"feat_static_real"`` (float32), ``"feat_dynamic_cat"``, ``"feat_dynamic_real"`` and ``"past_feat_dynamic_real"``
    ///         (``[width, features]``, stored as ``[features, T]``). They are at the positions of ``input_ids``, read once, now, and
    ///         held in memory.
    ///     freq: the frequency of times in pandas's words, where records do not say it: ``"h"``, ``"15min"``, ``"D"``, ``"MS"``.
    ///     loss_on: ``"all"``, or ``"prediction"`` for masks of 1 on the last ``prediction_length`` positions only.
    ///     labels: ``"next"``: the value after each input. ``"same"``: the input itself, for models that shift labels
    ///         themselves (Hugging Face's); whole numbers are -100 where the mask is 0, floats keep their values. None: no
    ///         labels. Without ``"next"`` a window is made of width values, and the mask at i says whether input i is learned.
    ///
    /// Raises:
    ///     ConfigError: JSON records, a width or stride of 0, a stride with ``starts="last"``, a padded tail without
    ///         ``starts="strided"``, an unknown name, a scaler that gives another shape, a ``fit``
    ///         that is empty or holds no value of some record, ``labels="same"`` of an unsigned dtype; ``time_features`` of
    ///         records without times, a feature that is not beside them or of another shape than the first record's.
    ///     CorruptError: a record cannot be read for its statistics.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "levels.bin"
    /// >>> np.array([1, 2, 3, 4, 5, 6, 8], np.uint16).tofile(path)
    /// >>> ds = wr.open(path, format="tokens", dtype="uint16")
    /// >>> view = ds.windows(context_length=3, prediction_length=1, stride=2, scaler="max", loss_on="prediction")
    /// >>> view[1]["input_ids"].tolist(), view[1]["labels"].tolist(), view[1]["loss_masks"].tolist()
    /// ([0.375, 0.5, 0.625, 0.75], [0.5, 0.625, 0.75, 1.0], [0, 0, 0, 1])
    /// >>> ds.windows(6, scaler="max", fit=(0.0, 0.6))[0]["input_ids"].tolist()
    /// [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
    /// >>> ds.windows(6, scaler=lambda series: series - series.min())[0]["input_ids"].tolist()
    /// [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    #[pyo3(signature = (context_length, *, prediction_length=Count(0), stride=None, scaler=None, tail="drop", nan="propagate", fit=None, per="series", starts="strided", loss_on="all", labels=Some("next"), fields=None, freq=None, dtype=None, **unknown),
           text_signature = "($self, context_length, *, prediction_length=0, stride=None, scaler=None, tail='drop', nan='propagate', fit=None, per='series', starts='strided', loss_on='all', labels='next', fields=None, freq=None, dtype=None)")]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python method")]
    fn windows(
        &self,
        py: Python<'_>,
        context_length: Count,
        prediction_length: Count,
        stride: Option<Count>,
        scaler: Option<&Bound<'_, PyAny>>,
        tail: &str,
        nan: &str,
        fit: Option<Bound<'_, PyAny>>,
        per: &str,
        starts: &str,
        loss_on: &str,
        labels: Option<&str>,
        fields: Option<Names>,
        freq: Option<String>,
        dtype: Option<AnyDType>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.windows", unknown)?;
        let scaler = Scaler::read(scaler)?;
        let recipe = ViewRecipe::Windows {
            context_length: context_length.0,
            prediction_length: prediction_length.0,
            stride: stride.map(|s| s.0),
            tail: choice(py, "tail", &tail.to_lowercase(), &["drop", "pad"])?,
            scaler: scaler.name,
            nan: choice(py, "nan", &nan.to_lowercase(), &["propagate", "mask"])?,
            fit: fit.map(|fit| read_fit(&fit)).transpose()?,
            per: choice(py, "per", &per.to_lowercase(), &["series", "channel", "window"])?,
            starts: choice(py, "starts", &starts.to_lowercase(), &["strided", "random", "last"])?,
            loss_on: choice(py, "loss_on", &loss_on.to_lowercase(), &["all", "prediction"])?,
            labels: labels_of(py, labels)?,
            fields: fields.map(|names| names.0).unwrap_or_default(),
            freq,
        };
        self.scaled(py, recipe, dtype, scaler.function)
    }

    /// Records one after the other in rows of ``length`` positions, split where a row is full: no padding but in the last row.
    ///
    /// A sample is ``input_ids``, ``labels`` (``[T]`` or ``[T, C]``), ``loss_masks``, ``segment_ids`` (``[T]`` int32; 0, 1, … per
    /// piece of a record, -1 in padding) and ``pack_bucket`` (int32: T). A record of L values gives L - 1 pairs of input
    /// and label; none crosses two records.
    ///
    /// Args:
    ///     buckets: lengths that T may have instead of ``length``: the smallest that takes the rest of the record a row starts
    ///         in. A batch is as long as its longest row.
    ///     scaler, nan, fit, per: as for ``windows``; ``per`` is ``"series"`` or ``"channel"``.
    ///     fields: those that are wanted: the others cost no time. There are ``position_ids`` (int32 ``[T]``, from 0 in each piece),
    ///         ``cu_seqlens`` (int32 ``[T + 1]``), ``max_seqlen`` (int32) and ``attention_mask`` (int64 ``[T]``), too, as ``bins`` has
    ///         them.
    ///     labels: ``"next"``: the value after each input. ``"same"``: the input itself, for models that shift labels
    ///         themselves (Hugging Face's); whole numbers are -100 where the mask is 0: padding, what a track excludes, the
    ///         first value of a record. None: no labels, and masks of 1 where the input is a value. Without ``"next"`` a
    ///         record of L values takes L positions.
    ///
    /// Raises:
    ///     ConfigError: JSON records, a length of 0, a bucket of 0 or above ``length``, ``labels="same"`` of an unsigned
    ///         dtype.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> folder = pathlib.Path(tempfile.mkdtemp())
    /// >>> np.arange(6, dtype=np.uint16).tofile(folder / "a.bin")
    /// >>> np.arange(10, 14, dtype=np.uint16).tofile(folder / "b.bin")
    /// >>> view = wr.open(folder, format="tokens", dtype="uint16").segments(4)
    /// >>> view[1]["input_ids"].tolist(), view[1]["labels"].tolist(), view[1]["segment_ids"].tolist()
    /// ([4, 10, 11, 12], [5, 11, 12, 13], [0, 1, 1, 1])
    #[pyo3(signature = (length, buckets=None, *, scaler=None, nan="propagate", fit=None, per="series", fields=None, labels=Some("next"), dtype=None, **unknown),
           text_signature = "($self, length, buckets=None, *, scaler=None, nan='propagate', fit=None, per='series', fields=None, labels='next', dtype=None)")]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python method")]
    fn segments(
        &self,
        py: Python<'_>,
        length: Count,
        buckets: Option<Vec<Count>>,
        scaler: Option<&Bound<'_, PyAny>>,
        nan: &str,
        fit: Option<Bound<'_, PyAny>>,
        per: &str,
        fields: Option<Names>,
        labels: Option<&str>,
        dtype: Option<AnyDType>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.segments", unknown)?;
        let scaler = Scaler::read(scaler)?;
        let recipe = ViewRecipe::Segments {
            length: length.0,
            buckets: buckets.unwrap_or_default().into_iter().map(|b| b.0).collect(),
            scaler: scaler.name,
            nan: choice(py, "nan", &nan.to_lowercase(), &["propagate", "mask"])?,
            fit: fit.map(|fit| read_fit(&fit)).transpose()?,
            per: choice(py, "per", &per.to_lowercase(), &["series", "channel"])?,
            fields: fields_of(py, fields)?,
            labels: labels_of(py, labels)?,
        };
        self.scaled(py, recipe, dtype, scaler.function)
    }

    /// Blocks of ``length`` inputs over the joined records, each from ``length + 1`` values, the next one ``length`` later.
    ///
    /// A sample is ``{"input_ids", "labels"}``, each ``[length]``: every value but the first is a label exactly once, up to
    /// the dropped tail (in ``coverage()``). ``eos`` is an ID to put after every record. Tokens with a ``loss_mask`` beside them
    /// give ``loss_masks`` too: 0 where the label is excluded.
    ///
    /// ``labels="same"`` gives the input itself as label, -100 where its own mask excludes it: for models that shift labels
    /// themselves, as Hugging Face's causal ones do. ``labels=None`` gives none. Both make a block of ``length`` values, none of
    /// them shared with the next, and ``loss_masks`` of the inputs.
    ///
    /// With ``documents`` a sample also has what keeps its documents apart, for attention within them: ``position_ids``
    /// ``[length]``, from 0 in each document (``positions="document"``: of a document that began in an earlier block they go
    /// on), ``segment_ids`` ``[length]``, 0, 1, …, ``cu_seqlens`` ``[length + 1]``, where documents start and the end, which is
    /// repeated, and ``max_seqlen`` ``[]``, all int32. Labels are ``ignore_index`` where they are the first token of the next
    /// document, and where a loss mask excludes them. A document is a record; with ``eos`` that token ends one wherever it
    /// is, and belongs to it. ``fields`` names those that are wanted, ``attention_mask`` (int64, 1) among them.
    /// ``wr.torch.varlen`` makes of a batch what flash attention takes.
    ///
    /// With ``shifted`` a block is made of ``length`` values and shares none: every value is a target. A sample is
    /// ``{"targets", "inputs", "is_seq_start", "segment_ids", "position_ids"}``, each ``[length]``. ``inputs`` hold the value
    /// before, or 0 in the first column and where a record starts (bool ``is_seq_start``); ``segment_ids`` count the records
    /// that have started in the row, so 0 is what continues from the row before; ``position_ids`` count from the start of each.
    /// ``fields`` names those of them that are wanted: the others cost no time.
    ///
    /// Raises:
    ///     ConfigError: JSON records, a length of 0, an ``eos`` that the stored dtype or a known vocabulary
    ///         cannot hold, a field that is none, an empty list of them, ``labels`` with ``shifted``,
    ///         ``labels="same"`` of an unsigned dtype where a mask excludes tokens, an ``ignore_index`` that the dtype
    ///         cannot hold, documents that are not token IDs.
    ///
    /// >>> import windrow as wr, numpy as np, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
    /// >>> np.arange(10, dtype=np.uint32).tofile(path)
    /// >>> view = wr.open(path, format="tokens", dtype="uint32").pack(4)
    /// >>> len(view), view[1]["input_ids"].tolist(), view[1]["labels"].tolist()
    /// (2, [4, 5, 6, 7], [5, 6, 7, 8])
    /// >>> same = wr.open(path, format="tokens", dtype="uint32").pack(4, labels="same")
    /// >>> same[1]["input_ids"].tolist(), same[1]["labels"].tolist()
    /// ([4, 5, 6, 7], [4, 5, 6, 7])
    /// >>> block = wr.open(path, format="tokens", dtype="uint32").pack(6, eos=3, documents=True)[0]
    /// >>> block["labels"].tolist(), block["position_ids"].tolist(), block["cu_seqlens"].tolist()
    /// ([1, 2, 3, -100, 5, 6], [0, 1, 2, 3, 0, 1], [0, 4, 6, 6, 6, 6, 6])
    #[pyo3(signature = (length, eos=None, *, documents=false, positions="block", ignore_index=None, shifted=false, fields=None, labels=Some("next"), dtype=None, **unknown),
           text_signature = "($self, length, eos=None, *, documents=False, positions='block', ignore_index=-100, shifted=False, fields=None, labels='next', dtype=None)")]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python method")]
    fn pack(
        &self,
        py: Python<'_>,
        length: Count,
        eos: Option<Id>,
        documents: bool,
        positions: &str,
        ignore_index: Option<Id>,
        shifted: bool,
        fields: Option<Names>,
        labels: Option<&str>,
        dtype: Option<AnyDType>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.pack", unknown)?;
        let eos = eos.map(|id| id.named(py, "eos")).transpose()?;
        let fields = fields_of(py, fields)?;
        let labels = labels_of(py, labels)?;
        let layout = DocumentsLayout {
            positions: choice(py, "positions", &positions.to_lowercase(), &["block", "document"])?,
            ignore_index: match ignore_index {
                Some(id) => id.named(py, "ignore_index")?,
                None => DocumentsLayout::default().ignore_index,
            },
        };
        if !documents && layout != DocumentsLayout::default() {
            let error = Error::config("positions and ignore_index are chosen of a pack without documents");
            return Err(raise(py, &error.hint("add documents=True, or leave them out")));
        }
        let documents = documents.then_some(layout);
        self.view(
            py,
            ViewRecipe::Pack { length: length.0, eos, shifted, documents, fields, labels },
            dtype,
            0,
        )
    }

    /// Whole records side by side in rows of ``length`` positions; ``strategy`` is ``"best_fit"`` or ``"first_fit"``.
    ///
    /// A sample is ``input_ids``, ``labels``, ``loss_masks``, ``position_ids``, ``segment_ids`` (``[length]`` each) and
    /// ``cu_seqlens``. ``fields`` names those that are wanted: the others cost no time. There are ``max_seqlen`` (int32: positions of
    /// the longest record in the row) and ``attention_mask`` (int64 ``[length]``: 1, 0 in padding), too.
    ///
    /// ``overlong`` says what becomes of a record longer than ``length``: ``"cut"`` takes its first values and warns, ``"split"``
    /// makes several pieces of it, each a segment by itself, ``"drop"`` leaves it out. ``coverage()`` counts what is never seen.
    ///
    /// ``scope`` says which records may share a row: ``"all"``, or so many consecutive ones, a number or as many as 8 MiB hold,
    /// ``"block"``. Rows that are neighbours hold neighbours then, as ``shuffle=wr.Blocks()`` needs them.
    ///
    /// ``labels="same"`` gives the input itself as label, for models that shift labels themselves (Hugging Face's): -100, and
    /// a mask of 0, in padding, where its own mask excludes it, and where a record begins, which nothing before it tells.
    /// ``labels=None`` gives none, and masks of 1 where the input is a value that is not excluded.
    ///
    /// Raises:
    ///     ConfigError: JSON records, a length or a scope of 0, a field that is none, ``labels="same"`` of an unsigned dtype.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    /// >>> _ = path.write_text("[[1, 2, 3], [4, 5]]")
    /// >>> row = wr.open(path).bins(6)[0]
    /// >>> row["input_ids"].tolist(), row["labels"].tolist(), row["loss_masks"].tolist()
    /// ([1, 2, 3, 4, 5, 0], [2, 3, 0, 5, 0, 0], [1, 1, 0, 1, 0, 0])
    /// >>> row["position_ids"].tolist(), row["segment_ids"].tolist(), row["cu_seqlens"].tolist()
    /// ([0, 1, 2, 0, 1, 0], [0, 0, 0, 1, 1, -1], [0, 3, 5])
    /// >>> wr.open(path).bins(6, labels="same")[0]["labels"].tolist()
    /// [-100, 2, 3, -100, 5, -100]
    /// >>> [row["input_ids"].tolist() for row in wr.open(path).bins(2, overlong="split", fields=["input_ids"])]
    /// [[4, 5], [1, 2], [3, 0]]
    #[pyo3(signature = (length, strategy="best_fit", *, overlong="cut", scope=None, pad_value=Id::of(0), fields=None, labels=Some("next"), dtype=None, **unknown),
           text_signature = "($self, length, strategy='best_fit', *, overlong='cut', scope='all', pad_value=0, fields=None, labels='next', dtype=None)")]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python method")]
    fn bins(
        &self,
        py: Python<'_>,
        length: Count,
        strategy: &str,
        overlong: &str,
        scope: Option<&Bound<'_, PyAny>>,
        pad_value: Id,
        fields: Option<Names>,
        labels: Option<&str>,
        dtype: Option<AnyDType>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.bins", unknown)?;
        let strategy = choice(py, "strategy", strategy, &["best_fit", "first_fit"])?;
        let pad_value = pad_value.named(py, "pad_value")?;
        let overlong = choice(py, "overlong", &overlong.to_lowercase(), &["cut", "split", "drop"])?;
        let (fields, labels) = (fields_of(py, fields)?, labels_of(py, labels)?);
        let length = length.0;
        let scope = scope.map_or(Ok(Scope::All), scope_of)?;
        let bins = ViewRecipe::Bins { length, strategy, overlong, scope, pad_value, fields, labels };
        self.view(py, bins, dtype, 0)
    }

    /// One row per record, from its first ``length + 1`` values; shorter ones are filled with ``pad_value``.
    ///
    /// A sample is ``{"input_ids", "labels", "loss_masks"}``, each ``[length]``. With ``pad="longest"`` the rows of a batch are as long
    /// as the longest of them, and no longer than ``length``; each rank's rows by themselves. ``group=32`` brings 32 rows of about
    /// the same length together, so that a batch of 32 has little padding: of every 50 groups in random order the rows are sorted
    /// by length, and the groups come in random order again. Give the rows of a batch over all ranks. Such a view is shuffled, and
    /// no part of a mix; it keeps 4 bytes for each record.
    ///
    /// ``labels="same"`` gives the input itself as label, for models that shift labels themselves (Hugging Face's): -100, and
    /// a mask of 0, in padding and where its own mask excludes it. ``labels=None`` gives none. Both take ``length`` values of a
    /// record, and their masks are those of the inputs.
    ///
    /// Raises:
    ///     ConfigError: JSON records, a length of 0, ``labels="same"`` of an unsigned dtype.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    /// >>> _ = path.write_text("[[1, 2, 3], [4, 5]]")
    /// >>> row = wr.open(path).records(3, pad_value=9)[1]
    /// >>> row["input_ids"].tolist(), row["labels"].tolist(), row["loss_masks"].tolist()
    /// ([4, 5, 9], [5, 9, 9], [1, 0, 0])
    /// >>> wr.open(path).records(3, labels="same")[1]["labels"].tolist()
    /// [4, 5, -100]
    /// >>> wr.open(path).records(512, pad="longest").batch([0, 1])["input_ids"].tolist()
    /// [[1, 2], [4, 5]]
    #[pyo3(signature = (length, pad_value=Id::of(0), *, pad="length", group=None, labels=Some("next"), dtype=None, **unknown),
           text_signature = "($self, length, pad_value=0, *, pad='length', group=None, labels='next', dtype=None)")]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python method")]
    fn records(
        &self,
        py: Python<'_>,
        length: Count,
        pad_value: Id,
        pad: &str,
        group: Option<Count>,
        labels: Option<&str>,
        dtype: Option<AnyDType>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.records", unknown)?;
        let pad_value = pad_value.named(py, "pad_value")?;
        let labels = labels_of(py, labels)?;
        let pad = choice(py, "pad", &pad.to_lowercase(), &["length", "longest"])?;
        self.view(
            py,
            ViewRecipe::Records { length: length.0, pad_value, pad, group: group.map(|g| g.0), labels },
            dtype,
            0,
        )
    }

    /// Up to ``length`` values of each record, from a random place (``mode="random"``) or its start (``"start"``).
    ///
    /// A sample is ``{"values": [length] or [length, C], "lengths": []}``; shorter records are padded with 0. ``seed`` keys the
    /// places of ``view[i]``; a loader draws by its own seed, anew each epoch.
    ///
    /// Raises:
    ///     ConfigError: JSON records, a length of 0.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "series.json"
    /// >>> _ = path.write_text("[[1, 2, 3], [4, 5]]")
    /// >>> row = wr.open(path).crop(4, mode="start")[1]
    /// >>> row["values"].tolist(), int(row["lengths"])
    /// ([4, 5, 0, 0], 2)
    #[pyo3(signature = (length, mode="random", *, dtype=None, seed=Count(0), **unknown),
           text_signature = "($self, length, mode='random', *, dtype=None, seed=0)")]
    fn crop(
        &self,
        py: Python<'_>,
        length: Count,
        mode: &str,
        dtype: Option<AnyDType>,
        seed: Count,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.crop", unknown)?;
        let mode = choice(py, "mode", mode, &["random", "start"])?;
        self.view(py, ViewRecipe::Crop { length: length.0, mode }, dtype, seed.0)
    }

    /// Records whole, as ``ds[i]`` gives them: rows of columns, or JSON. Text, pictures and sound go through as they are stored.
    ///
    /// A batch is a list of them; ``Loader(..., collate=)`` makes tensors of it. Arrays are writable.
    ///
    /// Args:
    ///     columns: only these columns or keys, in this order; a key that a JSON record lacks is None there. The others are not
    ///         read.
    ///     stack: a batch is a dict of columns: an array ``[B, …]`` of numbers, and of arrays and lists of numbers of one shape; a
    ///         list of anything else. Records without names are the column ``"value"``. ``view[i]`` stays a record.
    ///
    /// Raises:
    ///     ConfigError: records of numbers, which ``records``, ``pack`` and others cut; a column that is not there.
    ///     MismatchError: when a batch is stacked: numbers of a column that differ in shape or dtype, as 1 and 0.5 do; names column
    ///         and record.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "pages.jsonl"
    /// >>> _ = path.write_text('{"text": "one", "label": 1}\n{"text": "two", "label": 2}\n')
    /// >>> ds = wr.open(path)
    /// >>> next(ds.rows().loader(batch_size=2, shuffle=False))
    /// [{'text': 'one', 'label': 1}, {'text': 'two', 'label': 2}]
    /// >>> next(ds.rows(["label", "text"], stack=True).loader(batch_size=2, shuffle=False))
    /// {'label': array([1, 2]), 'text': ['one', 'two']}
    #[pyo3(signature = (columns=None, *, stack=false, **unknown), text_signature = "($self, columns=None, *, stack=False)")]
    fn rows(
        &self,
        py: Python<'_>,
        columns: Option<Names>,
        stack: bool,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.rows", unknown)?;
        let columns = columns.map(|names| names.0);
        self.view(py, ViewRecipe::Rows { columns, stack }, None, 0)
    }

    /// Up to ``length`` frames of each track of audio codes ``[T, C]`` with its prompt, as a codec language model is trained:
    /// from a random place (``mode="random"``) or the start (``"start"``).
    ///
    /// A sample, where a batch has S = ``text_length``, T = its longest sample in frames, and C channels:
    ///
    /// - ``src_tokens`` ``[S]``: the prompt's UTF-8 bytes, then padding; ``src_positions`` ``[S]``: 0, 1, …
    /// - ``tgt_tokens`` ``[T + 2, C]``: BOS, the delayed codes, EOS, then padding; ``tgt_positions`` ``[T + 2]``
    /// - ``enc_self_attn_mask`` ``[1, S, S]``, ``dec_self_attn_mask`` ``[1, T + 2, T + 2]`` (causal), ``dec_cross_attn_mask``
    ///   ``[1, T + 2, S]``: bool, True where it attends
    /// - ``seq_lens`` ``[]``: frames; ``tgt_lens`` ``[]``: frames + 2
    ///
    /// Tokens are int64 unless ``dtype`` says int32 or int16; positions and lengths are int64.
    ///
    /// Args:
    ///     length: frames of a sample at most; None takes ``audio_length`` of ``config``.
    ///     config: Dia's ``config.json``, as a path or a dict: lengths, channels, special values and delays of its ``"data"``.
    ///     channels: channels of a batch; None takes those of the data. Codes of half as many are laid twice: mono as stereo.
    ///     text_length: bytes of a prompt at most (512).
    ///     delay_pattern: frames by which each channel is delayed; None: 0, 1, 2, …, for 18 channels 0 to 8 twice.
    ///     masks: ``"dense"``; ``"lengths"`` gives ``src_lens`` instead of masks, for attention by lengths; None neither.
    ///     keep_tail: keep the last codes of delayed channels, each with its own EOS after them: ``tgt_tokens`` is longer by
    ///         the longest delay.
    ///     unconditional: fraction of samples without their prompt, drawn anew each epoch.
    ///     tag_shuffle, tag_dropout, tag_limit: the prompt's comma-separated tags in random order, each left out with a
    ///         probability (never all), at most so many; drawn by seed, epoch and sample. None of them leaves prompts alone.
    ///     codebook_size: codes must be below this; ``"auto"`` is the lowest special value (1024), None checks none.
    ///     text_cut: a longer prompt is cut before a ``"character"``, or at the ``"byte"``.
    ///     seed: keys what is drawn for ``view[i]``; a loader draws by its own seed, anew each epoch.
    ///
    /// Raises:
    ///     ConfigError: records that are not codes, other channels or delays than they have, no length, a ``config`` that is not one.
    ///     NotFoundError, IoError: a ``config`` that cannot be read.
    ///     CorruptError: when a batch is laid: a code outside the codebook, a prompt that is not text.
    ///
    /// >>> import windrow as wr, tempfile, pathlib
    /// >>> path = pathlib.Path(tempfile.mkdtemp()) / "tracks.jsonl"
    /// >>> _ = path.write_text('{"sequence": [[1, 2], [3, 4]], "text": "hi"}\n')
    /// >>> view = wr.open(path, format="series-jsonl").codes(600, text_length=4, masks="lengths")
    /// >>> view[0]["src_tokens"].tolist(), view[0]["tgt_tokens"].tolist()
    /// ([104, 105, 0, 0], [[1026, 1026], [1, 1026], [3, 2], [1024, 1024]])
    #[pyo3(signature = (length=None, mode="random", *, config=None, channels=None, text_length=None, delay_pattern=None, masks=Some("dense"), keep_tail=false, unconditional=0.0, tag_shuffle=false, tag_dropout=0.0, tag_limit=None, codebook_size=Given::Word("auto".to_string()), text_cut="character", dtype=None, seed=Count(0), **unknown),
           text_signature = "($self, length=None, mode='random', *, config=None, channels=None, text_length=None, delay_pattern=None, masks='dense', keep_tail=False, unconditional=0.0, tag_shuffle=False, tag_dropout=0.0, tag_limit=None, codebook_size='auto', text_cut='character', dtype=None, seed=0)")]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python method")]
    fn codes(
        &self,
        py: Python<'_>,
        length: Option<Count>,
        mode: &str,
        config: Option<&Bound<'_, PyAny>>,
        channels: Option<Count>,
        text_length: Option<Count>,
        delay_pattern: Option<Vec<Count>>,
        masks: Option<&str>,
        keep_tail: bool,
        unconditional: f64,
        tag_shuffle: bool,
        tag_dropout: f64,
        tag_limit: Option<Count>,
        codebook_size: Given,
        text_cut: &str,
        dtype: Option<AnyDType>,
        seed: Count,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<View> {
        none_left(py, "Dataset.codes", unknown)?;
        let options = CodesOptions {
            length,
            mode,
            config,
            channels,
            text_length,
            delay_pattern,
            masks,
            keep_tail,
            unconditional,
            tag_shuffle,
            tag_dropout,
            tag_limit,
            codebook_size,
            text_cut,
        };
        self.view(py, options.recipe(py)?, dtype, seed.0)
    }
}

fn fields_of(py: Python<'_>, given: Option<Names>) -> PyResult<Vec<String>> {
    let given = given.map(|names| names.0);
    if given.as_ref().is_some_and(Vec::is_empty) {
        let error = Error::config("fields=[]: a sample of no fields").field("fields");
        return Err(raise(
            py,
            &error.hint("name those that are wanted, or leave fields out for all of them"),
        ));
    }
    Ok(given.unwrap_or_default())
}

fn labels_of(py: Python<'_>, given: Option<&str>) -> PyResult<Labels> {
    match given {
        None => Ok(Labels::None),
        Some("next") => Ok(Labels::Next),
        Some("same") => Ok(Labels::Same),
        Some(other) => {
            let error = Error::config(format!("labels={other:?}")).field("labels");
            Err(raise(
                py,
                &error.hint("one of \"next\" (the value after), \"same\" (the input itself), or None"),
            ))
        }
    }
}
