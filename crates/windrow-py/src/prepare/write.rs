//! Records from Python into one output, in any format that is written.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use windrow::dev::source::{Extras, Schema, Track};
use windrow::format::{WriteFormat, WriteOptions};
use windrow::prepare::{self, Progress, Watch, Writer};
use windrow::{DType, Error, Kind};
use windrow_core::format::masks_beside;
use windrow_core::{Decode, Element, Values};

use crate::dataset::Dataset;
use crate::prepare::callback::Watcher;
use crate::prepare::convert::all_records;
use crate::prepare::own_options;
use crate::prepare::record::Record;
use crate::python::dtype::AnyDType;
use crate::python::error::{OrRaise, raise};
use crate::python::json;
use crate::python::options::{Count, Id};
use crate::python::row;
use crate::python::said::class_of;
use crate::python::store_options::{StoreOptions, stores};

/// Writes records of numbers in a format of training data.
///
/// Records are written as they come, one at a time in memory, and become visible together at the end; an error or Ctrl-C
/// leaves nothing behind.
///
/// Args:
///     out: the folder (shards, forager, codes, flat-tokens: of one split, ``corpus.zarr/train``) or file to write; of Megatron
///         what both names begin with. Or its URL: then it is made below the cache folder first, and seen when all is sent.
///     records: an iterable of records ``[T]``, or ``[T, C]`` with C channels in all of them (lists, arrays, tensors), or of
///         dicts with ``sequence``. What else such a dict holds is metadata, which shards, jsonl, codes and the formats of
///         rows keep and ``ds.extras(i)`` gives back. In a format of rows (arrow, parquet, mds, litdata, webdataset,
///         tfrecord, array_record, bagz) also dicts without it, which are rows of named columns. An array ``[N, T]`` is N records; a
///         ``Dataset`` is written as by ``convert``.
///     to: ``"shards"``, ``"npy"`` (records of one length), ``"npz"``, ``"jsonl"``, ``"tokens"`` (one headerless row of token
///         IDs), ``"forager"`` (a folder of samples with a byte-offset index), ``"megatron"`` (``out.bin`` and ``out.idx``),
///         ``"codes"`` (a folder of torch tensors ``[T, C]`` with prompts), ``"flat-tokens"`` (zarr), ``"arrow"`` or
///         ``"parquet"`` (a file of rows, or of a column of lists), or another that docs/formats.md says is written.
///     dtype: dtype of a stored number. None takes that of the first record: an array's own; of a list float32, int64 for
///         whole numbers, and uint32 in formats of token IDs (int32 in Megatron's). It is never guessed from how large the
///         numbers are: ``dtype="uint16"`` halves a small vocabulary's file. Codes are int16, flat-tokens always uint32.
///     eos: a token ID put after every record, also after one that ends with it already. ``open(out, eos=…)`` cuts a token
///         file there.
///     vocab_size: token IDs must be below this. The manifest keeps it, so that opening does not check again.
///     append: continue behind the records that are there, stored as they are; nothing there is fine. flat-tokens only.
///     overwrite: replace an existing output of this format.
///     durable: bring everything to the disk before it becomes visible.
///     progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes (0 where the
///         end is not known), records.
///     options: the format's own. Shards: ``max_shard_bytes`` (5 GiB), and ``normalize``, which stores ``(x - mean) / std`` as
///         float32 and mean and std of each record beside it; reading undoes it. flat-tokens: ``zarr_format`` 2 as seqax
///         writes it (blosc: lz4, bitshuffle) or 3 (zstd, crc32c), ``tokens_chunk_size`` (4,194,304),
///         ``seq_starts_chunk_size`` (1,048,576), and with ``zarr_format=3`` ``chunks_per_shard``, which puts that many chunks
///         into a file. Arrow and Parquet: ``to_column`` (``"tokens"``), the column of the numbers; Parquet: ``compression``
///         (``"zstd"``, ``"zstd:9"``, ``"snappy"``, ``"none"``).
///     store_options, timeout: of URLs, as for ``open``.
///
/// Returns:
///     A dict: output, files, records, tokens (of token IDs), output_bytes, ….
///
/// Raises:
///     ExistsError: something is there, and neither ``overwrite`` nor ``append``; or it is not of this format.
///     ConfigError: a record that is not ``[T]`` or ``[T, C]``, or not shaped as those before it; a number that does not fit
///         the dtype or the vocabulary; names the record (``.record``) and the value. An option of another format.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> wr.write(folder / "shards", ([float(i), i + 0.5] for i in range(3)), to="shards")["records"]
/// 3
/// >>> sorted(path.name for path in (folder / "shards").iterdir())
/// ['data-1-of-1.bin', 'meta.json', 'windrow.sums']
/// >>> wr.write(folder / "tokens.bin", [[5, 6], [7]], to="tokens", dtype="uint16", eos=0)["tokens"]
/// 5
/// >>> [document.tolist() for document in wr.open(folder / "tokens.bin", eos=0)]
/// [[5, 6, 0], [7, 0]]
/// >>> train = folder / "corpus.zarr" / "train"
/// >>> _ = wr.write(train, [[1, 2], [3, 4, 5]], to="flat-tokens", zarr_format=3)
/// >>> wr.write(train, [[6, 7, 8]], to="flat-tokens", append=True)["records"]
/// 1
/// >>> [ids.tolist() for ids in wr.open(folder / "corpus.zarr", split="train")]
/// [[1, 2], [3, 4, 5], [6, 7, 8]]
#[pyfunction]
#[pyo3(signature = (out, records, *, to, dtype=None, eos=None, vocab_size=None, append=false, overwrite=false, durable=true,
                    progress=None, store_options=None, timeout=None, **options),
       text_signature = "(out, records, *, to, dtype=None, eos=None, vocab_size=None, append=False, overwrite=False, durable=True, progress=None, store_options=None, timeout=None, **options)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn write<'py>(
    py: Python<'py>,
    out: PathBuf,
    records: &Bound<'py, PyAny>,
    to: &str,
    dtype: Option<AnyDType>,
    eos: Option<Id>,
    vocab_size: Option<Count>,
    append: bool,
    overwrite: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = own_options::writer(py, "write", to, options)?;
    let stores = stores(py, store_options, timeout)?;
    let asked = WriteOptions {
        dtype: dtype.map(|d| d.0),
        eos: eos.map(|id| id.named(py, "eos")).transpose()?,
        vocab_size: vocab_size.map(|v| v.0),
        append,
        overwrite,
        // No records are asked for by an empty list as well.
        allow_empty: true,
        durable,
        ..WriteOptions::default()
    };
    let watcher = Watcher::new(py, progress)?;
    if let Ok(data) = records.cast::<Dataset>() {
        let data = data.get().data().clone();
        return all_records(py, || Ok(data), &out, format.as_ref(), asked, &stores, watcher);
    }
    if records.is_instance_of::<PyString>() || records.hasattr("__fspath__")? {
        let path: PathBuf = records.extract()?;
        let error = Error::config("the records are a path").field("records");
        let hint = format!("wr.convert({:?}, out, to={to:?}) writes those of a data set", path.display());
        return Err(raise(py, &error.hint(hint)));
    }
    let place = py.detach(|| prepare::Output::of_records(&out, format.as_ref(), &asked, &stores));
    let place = place.or_raise(py)?;
    let mut output = Output {
        place: &place,
        format: format.as_ref(),
        asked,
        begun: None,
        channels: None,
        early: Vec::new(),
    };
    let mut items = records.try_iter()?.peekable();
    if let Some(Ok(first)) = items.peek()
        && format.info().holds_rows
        && first.cast::<PyDict>().is_ok_and(|row| !row.contains("sequence").unwrap_or(true))
    {
        let writer = Writer::create(place.path(), &Schema::rows(Vec::new()), format.as_ref(), &output.asked);
        let writer = writer.map_err(|e| place.named(e)).or_raise(py)?;
        return rows(py, items, writer, place, watcher);
    }
    let mut done_bytes = 0;
    for (number, item) in (0..).zip(items) {
        done_bytes += output.add(py, &mut Record::read(&item?, number)?)?;
        watcher.progress(Progress { done_bytes, total_bytes: 0, records: number + 1 });
        if watcher.cancelled() {
            return watcher.finish(py, Err(Error::new(Kind::Interrupted, "interrupted")));
        }
    }
    let writer = output.complete(py)?;
    let report = py.detach(|| place.finish(writer.finish(), &watcher));
    if let Ok(report) = &report {
        watcher.progress(Progress { done_bytes, total_bytes: done_bytes, records: report.records });
    }
    json::plain(py, &watcher.finish(py, report)?)
}

// Writes rows of named columns; the report as a dict.
fn rows<'py>(
    py: Python<'py>,
    items: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    mut writer: Writer,
    place: prepare::Output,
    watcher: Watcher,
) -> PyResult<Bound<'py, PyAny>> {
    for (number, item) in (0..).zip(items) {
        let item = item?;
        let Ok(dict) = item.cast::<PyDict>() else {
            let class = class_of(&item)?;
            let error = Error::config(format!("a record of the type {class} among rows, which are dicts"));
            return Err(raise(py, &error.record(number)));
        };
        let row = row::of(dict)?;
        py.detach(|| writer.add_row(&row)).or_raise(py)?;
        watcher.progress(Progress { done_bytes: 0, total_bytes: 0, records: number + 1 });
        if watcher.cancelled() {
            return watcher.finish(py, Err(Error::new(Kind::Interrupted, "interrupted")));
        }
    }
    let report = py.detach(|| place.finish(writer.finish(), &watcher));
    json::plain(py, &watcher.finish(py, report)?)
}

/// Where records go. It begins with the first of them that says what numbers they are.
struct Output<'a> {
    place: &'a prepare::Output,
    format: &'a dyn WriteFormat,
    asked: WriteOptions,
    begun: Option<Begun>,
    /// Channels of all records, known from the first.
    channels: Option<Option<usize>>,
    /// Metadata of the empty lists before it began.
    early: Vec<Extras>,
}

struct Begun {
    writer: Writer,
    /// dtype of a stored number.
    stored: DType,
}

impl Output<'_> {
    /// Writes the next record; how many bytes it was.
    fn add(&mut self, py: Python<'_>, record: &mut Record<'_>) -> PyResult<u64> {
        let expected = *self.channels.get_or_insert(record.channels);
        if expected != record.channels {
            let shape = |channels: Option<usize>| channels.map_or("[T]".to_string(), |c| format!("[T, {c}]"));
            let error = Error::config(format!(
                "a record {} among records {}",
                shape(record.channels),
                shape(expected)
            ));
            return Err(raise(
                py,
                &error.record(record.number).hint("all records of a data set have the same channels"),
            ));
        }
        record.check_bool(py, self.format)?;
        if self.begun.is_none() {
            let Some(dtype) = record.usual_dtype(self.format) else {
                self.early.push(std::mem::take(&mut record.extras));
                return Ok(0);
            };
            record.check(py, self.format, self.stored(py, dtype)?)?;
            self.begun = Some(self.begin(py, dtype, &record.extras)?);
        }
        let Some(Begun { writer, stored }) = &mut self.begun else { return Ok(0) };
        record.check(py, self.format, *stored)?;
        record.add_to(py, writer, self.format.info().handed_dtype.unwrap_or(*stored))
    }

    /// The writer, of no records, too.
    fn complete(mut self, py: Python<'_>) -> PyResult<Writer> {
        let usual = if self.format.info().holds_ids() { DType::U32 } else { DType::F32 };
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => self.begin(py, usual, &Extras::new())?,
        };
        Ok(begun.writer)
    }

    // `extras` is beside the first record that has numbers.
    fn begin(&mut self, py: Python<'_>, dtype: DType, extras: &Extras) -> PyResult<Begun> {
        let stored = self.stored(py, dtype)?;
        let element = Element::little(dtype);
        let channels = self.channels.flatten();
        let masks = if dtype.is_integer() && channels.is_none() { masks_beside(extras) } else { Vec::new() };
        let tracks =
            Some(Track::made_of(masks)).filter(|track| !track.made_of.is_empty()).into_iter().collect();
        let schema = Schema { channels, tracks, ..Schema::numbers(element) };
        let nothing = Values { bytes: &[], element, channels: channels.unwrap_or(1), decode: Decode::Plain };
        let early = std::mem::take(&mut self.early);
        let (place, format, asked) = (self.place, self.format, &self.asked);
        let writer = py.detach(|| {
            let mut writer =
                Writer::create(place.path(), &schema, format, asked).map_err(|e| place.named(e))?;
            early.iter().try_for_each(|extras| writer.add(&nothing, extras))?;
            Ok(writer)
        });
        Ok(Begun { writer: writer.or_raise(py)?, stored })
    }

    // dtype of a stored number, where the first record asks for `dtype`.
    fn stored(&self, py: Python<'_>, dtype: DType) -> PyResult<DType> {
        Ok(match self.format.stored_dtype(dtype, self.asked.dtype).or_raise(py)? {
            DType::Bool => DType::U8,
            stored => stored,
        })
    }
}
