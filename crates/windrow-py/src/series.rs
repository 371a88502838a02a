//! Records of numbers from Python into shards, and from one layout into another.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use windrow::format::write::WriteOptions;
use windrow::prepare::{self, Writer};
use windrow::source::{Extras, Schema};
use windrow::{DType, Error};
use windrow_core::{Decode, Element, Values};

use crate::callback::Watcher;
use crate::dtype::{AnyDType, descr};
use crate::error::{OrRaise, raise};
use crate::json;
use crate::near::none_left;
use crate::options::{Count, Id};
use crate::own_options::OwnOptions;

/// Writes sequences as shards: ``data-<i>-of-<n>.bin`` and ``meta.json``, as Time-MoE's converter does.
///
/// Sequences are written as they come, one at a time in memory, and become visible together at the end; an error or
/// Ctrl-C leaves nothing behind.
///
/// Args:
///     out: the folder to write.
///     sequences: an iterable of sequences ``[T]``, or ``[T, C]`` with C channels in all of them (lists, arrays, tensors), or of
///         dicts with ``sequence``; what else such a dict holds is kept beside it, and ``ds.extras(i)`` gives it back.
///     dtype: dtype of a stored number.
///     max_shard_bytes: most bytes of a shard.
///     normalize: store ``(x - mean) / std`` as float32, and mean and std of each sequence beside it; reading undoes it.
///     overwrite: replace shards that are there.
///     durable: bring everything to the disk before it becomes visible.
///
/// Returns:
///     A dict: output, files, records, output_bytes, ….
///
/// Raises:
///     ExistsError: something is there, and no ``overwrite``; or it is no folder of shards.
///     ConfigError: a sequence that is not ``[T]`` or ``[T, C]``, or not shaped as those before it, or a number that does not
///         fit the dtype; names the record.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> out = pathlib.Path(tempfile.mkdtemp()) / "shards"
/// >>> wr.write_shards(out, ([float(i), i + 0.5] for i in range(3)))["records"]
/// 3
/// >>> sorted(path.name for path in out.iterdir())
/// ['data-1-of-1.bin', 'meta.json', 'windrow.sums']
#[pyfunction]
#[pyo3(signature = (out, sequences, *, dtype=None, max_shard_bytes=Count(5 << 30), normalize=false, overwrite=false,
                    durable=true, **unknown),
       text_signature = "(out, sequences, *, dtype='float32', max_shard_bytes=5368709120, normalize=False, overwrite=False, durable=True)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn write_shards<'py>(
    py: Python<'py>,
    out: PathBuf,
    sequences: &Bound<'py, PyAny>,
    dtype: Option<AnyDType>,
    max_shard_bytes: Count,
    normalize: bool,
    overwrite: bool,
    durable: bool,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "write_shards", unknown)?;
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    let own = OwnOptions { max_shard_bytes: Some(max_shard_bytes), normalize, ..OwnOptions::default() };
    let format = windrow::writer("shards", &own.given()).or_raise(py)?;
    let options = WriteOptions { dtype: Some(dtype), overwrite, durable, ..WriteOptions::default() };
    // Mean and deviation are those of the numbers that are given, with all their digits.
    let given = if normalize { DType::F64 } else { dtype };
    let element = Element::little(given);
    let stored = descr(py, given)?;
    let create = |channels| {
        let schema = Schema { channels, ..Schema::numbers(element) };
        Writer::create(&out, &schema, format.as_ref(), &options).or_raise(py)
    };
    // Made with the first sequence, which says whether they are [T] or [T, C].
    let mut begun: Option<(Writer, Option<usize>)> = None;
    for (number, item) in sequences.try_iter()?.enumerate() {
        let item = item?;
        let (sequence, extras) = parts(&item, number)?;
        let array = as_stored(&sequence, given, &stored, number)?;
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        let channels = match shape[..] {
            [_] => None,
            [_, channels] if channels > 0 => Some(channels),
            _ => {
                let error = Error::config(format!(
                    "a sequence of shape {shape:?}; shards hold sequences [T] or [T, C]"
                ));
                return Err(raise(py, &error.record(number as u64)));
            }
        };
        let (writer, expected) = match &mut begun {
            Some(begun) => begun,
            None => begun.insert((create(channels)?, channels)),
        };
        if *expected != channels {
            let expected = expected.map_or("[T]".to_string(), |channels| format!("[T, {channels}]"));
            let error = Error::config(format!("a sequence of shape {shape:?} among sequences {expected}"));
            return Err(raise(
                py,
                &error.record(number as u64).hint("all sequences of a data set have the same channels"),
            ));
        }
        let bytes = array.call_method0("tobytes")?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        let values = Values { bytes, element, channels: channels.unwrap_or(1), decode: Decode::Plain };
        py.detach(|| writer.add(&values, &extras)).or_raise(py)?;
        py.check_signals()?;
    }
    let writer = match begun {
        Some((writer, _)) => writer,
        None => create(None)?,
    };
    let report = py.detach(|| writer.finish()).or_raise(py)?;
    json::plain(py, &report)
}

/// The numbers as an array of `dtype`; numpy alone would cut fractions off, wrap and round whole numbers and make infinity
/// of large ones without a word.
fn as_stored<'py>(
    sequence: &Bound<'py, PyAny>,
    dtype: DType,
    stored: &Bound<'py, PyAny>,
    number: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = sequence.py();
    let numpy = py.import("numpy")?;
    let given = numpy.call_method1("asarray", (sequence,))?;
    let kind: String = given.getattr("dtype")?.getattr("kind")?.extract()?;
    if "cOSUmM".contains(&kind) {
        let dtype = given.getattr("dtype")?.str()?;
        let error = Error::config(format!("a sequence of {dtype}; expected numbers"))
            .record(number as u64)
            .hint("complex numbers are two channels; times, texts and None are no numbers");
        return Err(raise(py, &error));
    }
    if numpy.getattr("ma")?.call_method1("is_masked", (sequence,))?.is_truthy()? {
        let error = Error::config("a sequence of which numbers are masked")
            .record(number as u64)
            .hint("fill them: sequence.filled(…)");
        return Err(raise(py, &error));
    }
    let array = numpy.call_method1("ascontiguousarray", (&given, stored))?;
    let is_infinite = |numbers: &Bound<'py, PyAny>| numpy.call_method1("isinf", (numbers,));
    let fits = if dtype.is_integer() {
        numpy.call_method1("array_equal", (&array, &given))?.is_truthy()?
    } else if "biu".contains(&kind) {
        let wide = array.call_method1("astype", ("float64",))?;
        let initial = PyDict::new(py);
        initial.set_item("initial", 0)?;
        let most = numpy.call_method1("abs", (&wide,))?.call_method("max", (), Some(&initial))?;
        if most.extract::<f64>()? < (1u64 << 53) as f64 {
            numpy.call_method1("array_equal", (&wide, &given))?.is_truthy()?
        } else {
            // Python compares a float with a whole number exactly, numpy rounds it first.
            wide.call_method0("tolist")?.eq(given.call_method0("tolist")?)?
        }
    } else if is_infinite(&array)?.call_method0("any")?.is_truthy()? {
        let given = numpy.call_method1("asarray", (&given, "float64"))?;
        numpy.call_method1("array_equal", (is_infinite(&array)?, is_infinite(&given)?))?.is_truthy()?
    } else {
        true
    };
    if fits {
        return Ok(array);
    }
    let error = Error::config(format!("a number of the sequence does not fit {dtype}"))
        .record(number as u64)
        .hint("choose a wider dtype; a fraction needs a float");
    Err(raise(py, &error))
}

fn parts<'py>(item: &Bound<'py, PyAny>, number: usize) -> PyResult<(Bound<'py, PyAny>, Extras)> {
    let py = item.py();
    let Ok(dict) = item.cast::<PyDict>() else { return Ok((item.clone(), Extras::new())) };
    let Some(sequence) = dict.get_item("sequence")? else {
        let error = Error::config("a dict without \"sequence\"").record(number as u64).field("sequence");
        return Err(raise(py, &error));
    };
    let rest = dict.copy()?;
    rest.del_item("sequence")?;
    let text: String = py.import("json")?.call_method1("dumps", (rest,))?.extract()?;
    let extras = serde_json::from_str(&text).map_err(|e| {
        let error = Error::config("what stands beside a sequence is no JSON").record(number as u64);
        raise(py, &error.caused_by(e))
    })?;
    Ok((sequence, extras))
}

/// Writes all records of a data set in another layout; it appears complete or not at all.
///
/// Args:
///     path: what to read: anything that ``open`` opens as numbers.
///     out: the folder (shards, forager, codes, flat-tokens) or file to write; of Megatron what both names begin with.
///     to: ``"shards"``, ``"npy"`` (records of one length), ``"npz"``, ``"jsonl"``, ``"tokens"`` (one headerless row of ids),
///         ``"forager"`` (a folder of samples with a byte-offset index), ``"megatron"`` (``out.bin`` and ``out.idx``), ``"codes"`` (a folder of torch tensors ``[T, C]`` with prompts) or
///         ``"flat-tokens"`` (zarr).
///     dtype: dtype of a written number; None takes that of the input (int32 for uint32 ids in Megatron's layout).
///     max_shard_bytes, normalize: as ``write_shards``; None is its default.
///     zarr_format, tokens_chunk_size, seq_starts_chunk_size, chunks_per_shard: as ``write_flat_tokens``.
///     overwrite: replace an existing output.
///     durable: bring everything to the disk before it becomes visible.
///     progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
///     format, open_dtype, open_eos: ``format``, ``dtype`` and ``eos`` as ``open`` takes them.
///
/// Returns:
///     A dict: output, files, records, output_bytes, ….
///
/// Raises:
///     ExistsError: something is there, and no ``overwrite``.
///     ConfigError: the layout cannot hold these records, a number does not fit, or an option of another layout is set; the
///         message says why.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> np.arange(6, dtype=np.uint16).tofile(folder / "tokens.bin")
/// >>> wr.convert(folder / "tokens.bin", folder / "t.jsonl", to="jsonl", format="tokens", open_dtype="uint16")["records"]
/// 1
/// >>> (folder / "t.jsonl").read_text()
/// '{"sequence": [0, 1, 2, 3, 4, 5]}\n'
#[pyfunction]
#[pyo3(signature = (path, out, *, to, dtype=None, max_shard_bytes=None, normalize=false, zarr_format=None,
                    tokens_chunk_size=None, seq_starts_chunk_size=None, chunks_per_shard=None,
                    overwrite=false, durable=true, progress=None, format=None, open_dtype=None, open_eos=None, **unknown),
       text_signature = "(path, out, *, to, dtype=None, max_shard_bytes=None, normalize=False, zarr_format=None, tokens_chunk_size=None, seq_starts_chunk_size=None, chunks_per_shard=None, overwrite=False, durable=True, progress=None, format=None, open_dtype=None, open_eos=None)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    path: PathBuf,
    out: PathBuf,
    to: &str,
    dtype: Option<AnyDType>,
    max_shard_bytes: Option<Count>,
    normalize: bool,
    zarr_format: Option<Count>,
    tokens_chunk_size: Option<Count>,
    seq_starts_chunk_size: Option<Count>,
    chunks_per_shard: Option<Count>,
    overwrite: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    format: Option<String>,
    open_dtype: Option<AnyDType>,
    open_eos: Option<Id>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "convert", unknown)?;
    let own = OwnOptions {
        max_shard_bytes,
        normalize,
        zarr_format,
        tokens_chunk_size,
        seq_starts_chunk_size,
        chunks_per_shard,
        ..OwnOptions::default()
    };
    let target = windrow::writer(to, &own.given()).or_raise(py)?;
    let opening = windrow::format::Options {
        format,
        dtype: open_dtype.map(|d| d.0),
        eos: open_eos.map(|id| id.named(py, "open_eos")).transpose()?,
        ..Default::default()
    };
    let watcher = Watcher::new(py, progress)?;
    let report = py.detach(|| {
        let data = windrow::open_with(&path, &opening)?;
        let options = WriteOptions {
            dtype: dtype.map(|d| d.0),
            of: data.manifest().cloned().map(Arc::new),
            overwrite,
            durable,
            ..WriteOptions::default()
        };
        prepare::convert(data.source().as_ref(), &out, target.as_ref(), &options, &watcher)
    });
    json::plain(py, &watcher.finish(py, report)?)
}
