//! Records of numbers and documents of ids from Python into files, and from one layout into another.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use windrow::prepare::{self, SeriesLayout, SeriesOptions, SeriesWriter};
use windrow::source::{Extras, Schema};
use windrow::zarr::{self, FlatTokensWriter, WriteOptions};
use windrow::{DType, Error};
use windrow_core::{Decode, Element, Values};

use crate::callback::Watcher;
use crate::dtype::{AnyDType, descr};
use crate::error::{OrRaise, raise};
use crate::json;
use crate::options::{Count, choice};

const LAYOUTS: [&str; 7] = ["shards", "npy", "npz", "jsonl", "tokens", "forager", "megatron"];
const FLAT_TOKENS: &str = "flat-tokens";

/// Writes token sequences as flat-tokens: a zarr group of ``encoded_tokens``, ``seq_starts`` and ``max_token_id``.
///
/// Sequences are written as they come, and become visible together at the end; an error or Ctrl-C changes nothing.
///
/// Args:
///     out: the folder of one split, ``corpus.zarr/train``.
///     sequences: an iterable of sequences of ids ``[T]``, each in 0 to 2**31 - 1: lists, arrays, tensors, a ``Dataset``.
///     zarr_format: 2 as seqax writes it (blosc: lz4, bitshuffle), or 3 (zstd).
///     tokens_chunk_size, seq_starts_chunk_size: numbers in a chunk.
///     chunks_per_shard: with ``zarr_format=3``, so many chunks make a file.
///     append: go on behind the sequences that are there, stored as they are; nothing there is fine.
///     overwrite: replace flat-tokens that are there.
///     durable: bring everything to the disk before it becomes visible.
///
/// Returns:
///     A dict: output, files, records, tokens, output_bytes, ….
///
/// Raises:
///     ExistsError: something is there, and neither ``append`` nor ``overwrite``; or it is not flat-tokens.
///     ConfigError: a sequence that is no ids ``[T]``; names the record.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> out = pathlib.Path(tempfile.mkdtemp()) / "corpus.zarr"
/// >>> wr.write_flat_tokens(out / "train", [[1, 2], [3, 4, 5]])["tokens"]
/// 5
/// >>> wr.write_flat_tokens(out / "train", [[6, 7, 8]], append=True)["records"]
/// 1
/// >>> [ids.tolist() for ids in wr.open(out, split="train")]
/// [[1, 2], [3, 4, 5], [6, 7, 8]]
#[pyfunction]
#[pyo3(signature = (out, sequences, *, zarr_format=2, tokens_chunk_size=Count(1 << 22),
                    seq_starts_chunk_size=Count(1 << 20), chunks_per_shard=None, append=false, overwrite=false,
                    durable=true),
       text_signature = "(out, sequences, *, zarr_format=2, tokens_chunk_size=4194304, seq_starts_chunk_size=1048576, chunks_per_shard=None, append=False, overwrite=False, durable=True)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn write_flat_tokens<'py>(
    py: Python<'py>,
    out: PathBuf,
    sequences: &Bound<'py, PyAny>,
    zarr_format: u8,
    tokens_chunk_size: Count,
    seq_starts_chunk_size: Count,
    chunks_per_shard: Option<Count>,
    append: bool,
    overwrite: bool,
    durable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = WriteOptions {
        zarr_format,
        tokens_chunk_size: tokens_chunk_size.0,
        seq_starts_chunk_size: seq_starts_chunk_size.0,
        chunks_per_shard: chunks_per_shard.map(|n| n.0),
        append,
        overwrite,
        durable,
    };
    let mut writer = py.detach(|| FlatTokensWriter::create(&out, &options)).or_raise(py)?;
    let as_array = py.import("numpy")?.getattr("asarray")?;
    for (number, item) in sequences.try_iter()?.enumerate() {
        let array = as_array.call1((item?,))?;
        let refused = |what: String| {
            raise(py, &Error::config(format!("{what}; flat-tokens hold ids [T]")).record(number as u64))
        };
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        // An empty list is an array of float64.
        if shape.len() != 1 || (shape != [0] && !matches!(kind.as_str(), "i" | "u")) {
            return Err(refused(format!("a sequence of shape {shape:?} and kind {kind:?}")));
        }
        if kind == "i" && shape != [0] && array.call_method0("min")?.lt(0)? {
            return Err(refused("an id below 0".to_string()));
        }
        if shape != [0] && array.call_method0("max")?.gt(u32::MAX)? {
            return Err(refused("an id beyond 32 bits".to_string()));
        }
        let bytes = array.call_method1("astype", ("<u4",))?.call_method0("tobytes")?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        let ids: Vec<u32> =
            bytes.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]])).collect();
        py.detach(|| writer.add(&ids)).or_raise(py)?;
        py.check_signals()?;
    }
    let report = py.detach(|| writer.finish()).or_raise(py)?;
    json::plain(py, &report)
}

/// Writes sequences as shards: ``data-<i>-of-<n>.bin`` and ``meta.json``, as Time-MoE's converter does.
///
/// Sequences are written as they come, one at a time in memory, and become visible together at the end; an error or
/// Ctrl-C leaves nothing behind.
///
/// Args:
///     out: the folder to write.
///     sequences: an iterable of sequences ``[T]`` (lists, arrays, tensors), or of dicts with ``sequence``; what else such a
///         dict holds is kept beside it, and ``ds.extras(i)`` gives it back.
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
///     ConfigError: a sequence that is not ``[T]``, or a number that does not fit the dtype; names the record.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> out = pathlib.Path(tempfile.mkdtemp()) / "shards"
/// >>> wr.write_shards(out, ([float(i), i + 0.5] for i in range(3)))["records"]
/// 3
/// >>> sorted(path.name for path in out.iterdir())
/// ['data-1-of-1.bin', 'meta.json']
#[pyfunction]
#[pyo3(signature = (out, sequences, *, dtype=None, max_shard_bytes=Count(5 << 30), normalize=false, overwrite=false,
                    durable=true),
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
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.map_or(DType::F32, |d| d.0);
    let options = SeriesOptions {
        dtype: Some(dtype),
        max_shard_bytes: max_shard_bytes.0,
        normalize,
        overwrite,
        durable,
        ..SeriesOptions::new(SeriesLayout::Shards)
    };
    let element = Element::little(dtype);
    let mut writer = SeriesWriter::create(&out, &Schema::numbers(element), &options).or_raise(py)?;
    let as_array = py.import("numpy")?.getattr("ascontiguousarray")?;
    let stored = descr(py, dtype)?;
    for (number, item) in sequences.try_iter()?.enumerate() {
        let item = item?;
        let (sequence, extras) = parts(&item, number)?;
        let array = as_array.call1((sequence, &stored))?;
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        if shape.len() != 1 {
            let error = Error::config(format!("a sequence of shape {shape:?}; shards hold sequences [T]"));
            return Err(raise(py, &error.record(number as u64)));
        }
        let bytes = array.call_method0("tobytes")?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        let values = Values { bytes, element, channels: 1, decode: Decode::Plain };
        py.detach(|| writer.add(&values, &extras)).or_raise(py)?;
        py.check_signals()?;
    }
    let report = py.detach(|| writer.finish()).or_raise(py)?;
    json::plain(py, &report)
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

/// Writes documents of token ids as one headerless row of ids, ``out``, and its side file; both appear complete or not at all.
///
/// Documents are written as they come, one at a time in memory; an error or Ctrl-C leaves nothing behind.
///
/// Args:
///     out: the file to write, such as ``tokens.bin``.
///     documents: an iterable of ids ``[T]`` (lists, arrays, tensors); an array of ids ``[N, T]`` is N documents.
///     dtype: dtype of a stored id: uint8, uint16, uint32, int32 or int64.
///     eos: an id put after every document, also after one that ends with it already. ``open(out, eos=…)`` cuts there.
///     vocab_size: ids must be below this. The side file keeps it, so that opening does not check again.
///     overwrite: replace a file that is there.
///     durable: bring everything to the disk before it becomes visible.
///
/// Returns:
///     A dict: output, files, records, output_bytes, ….
///
/// Raises:
///     ExistsError: something is there, and no ``overwrite``.
///     ConfigError: an id beyond the dtype or the vocabulary, or values that are no ids; names document (``.record``) and
///         position.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> out = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
/// >>> wr.write_tokens(out, [[5, 6], [7]], eos=0)["records"]
/// 2
/// >>> [document.tolist() for document in wr.open(out, eos=0)]
/// [[5, 6, 0], [7, 0]]
#[pyfunction]
#[pyo3(signature = (out, documents, *, dtype=None, eos=None, vocab_size=None, overwrite=false, durable=true),
       text_signature = "(out, documents, *, dtype='uint32', eos=None, vocab_size=None, overwrite=False, durable=True)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn write_tokens<'py>(
    py: Python<'py>,
    out: PathBuf,
    documents: &Bound<'py, PyAny>,
    dtype: Option<AnyDType>,
    eos: Option<i64>,
    vocab_size: Option<Count>,
    overwrite: bool,
    durable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.map_or(DType::U32, |d| d.0);
    let options = SeriesOptions {
        dtype: Some(dtype),
        eos,
        vocab_size: vocab_size.map(|v| v.0),
        overwrite,
        durable,
        ..SeriesOptions::new(SeriesLayout::Tokens)
    };
    let mut writer =
        SeriesWriter::create(&out, &Schema::numbers(Element::little(dtype)), &options).or_raise(py)?;
    let as_array = py.import("numpy")?.getattr("asarray")?;
    for (number, document) in documents.try_iter()?.enumerate() {
        let (array, found) = ids(&as_array, &document?, number)?;
        let bytes = array.call_method0("tobytes")?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        let values = Values { bytes, element: Element::little(found), channels: 1, decode: Decode::Plain };
        py.detach(|| writer.add(&values, &Extras::new())).or_raise(py)?;
        py.check_signals()?;
    }
    let report = py.detach(|| writer.finish()).or_raise(py)?;
    json::plain(py, &report)
}

// A document as an array of whole numbers in the machine's byte order, and their dtype.
fn ids<'py>(
    as_array: &Bound<'py, PyAny>,
    document: &Bound<'py, PyAny>,
    number: usize,
) -> PyResult<(Bound<'py, PyAny>, DType)> {
    let py = document.py();
    let array = as_array.call1((document,))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let found = array.getattr("dtype")?;
    let kind: String = found.getattr("kind")?.extract()?;
    let refused = |what: String| {
        Err(raise(py, &Error::config(what).record(number as u64).hint("a document is whole numbers [T]")))
    };
    if shape.len() != 1 {
        return refused(format!("a document of shape {shape:?}"));
    }
    // An empty list is an array of float64.
    if shape[0] == 0 {
        return Ok((array, DType::U8));
    }
    if kind != "u" && kind != "i" {
        return refused(format!("a document of {found} values"));
    }
    let native = found.call_method1("newbyteorder", ("=",))?;
    let array = array.call_method1("astype", (&native,))?;
    let dtype = native.extract::<AnyDType>()?.0;
    Ok((array, dtype))
}

/// Writes all records of a data set in another layout; it appears complete or not at all.
///
/// Args:
///     path: what to read: anything that ``open`` opens as numbers.
///     out: the folder (shards) or file to write.
///     to: ``"shards"``, ``"npy"`` (records of one length), ``"npz"``, ``"jsonl"``, ``"tokens"`` (one headerless row of ids),
///         ``"forager"`` (a folder of samples with a byte-offset index), ``"megatron"`` (``out.bin`` and ``out.idx``) or
///         ``"flat-tokens"`` (zarr; ``write_flat_tokens`` has its options).
///     dtype: dtype of a written number; None takes that of the input (int32 for uint32 ids in Megatron's layout).
///     max_shard_bytes, normalize: as ``write_shards``.
///     overwrite: replace an existing output.
///     durable: bring everything to the disk before it becomes visible.
///     progress: called now and then with a dict of done_bytes, total_bytes, records.
///     format, open_dtype, open_eos: ``format``, ``dtype`` and ``eos`` as ``open`` takes them.
///
/// Returns:
///     A dict: output, files, records, output_bytes, ….
///
/// Raises:
///     ExistsError: something is there, and no ``overwrite``.
///     ConfigError: the layout cannot hold these records, or a number does not fit; the message says why.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> np.arange(6, dtype=np.uint16).tofile(folder / "tokens.bin")
/// >>> wr.convert(folder / "tokens.bin", folder / "t.jsonl", to="jsonl", format="tokens", open_dtype="uint16")["records"]
/// 1
/// >>> (folder / "t.jsonl").read_text()
/// '{"sequence": [0, 1, 2, 3, 4, 5]}\n'
#[pyfunction]
#[pyo3(signature = (path, out, *, to, dtype=None, max_shard_bytes=Count(5 << 30), normalize=false, overwrite=false,
                    durable=true, progress=None, format=None, open_dtype=None, open_eos=None),
       text_signature = "(path, out, *, to, dtype=None, max_shard_bytes=5368709120, normalize=False, overwrite=False, durable=True, progress=None, format=None, open_dtype=None, open_eos=None)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    path: PathBuf,
    out: PathBuf,
    to: &str,
    dtype: Option<AnyDType>,
    max_shard_bytes: Count,
    normalize: bool,
    overwrite: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    format: Option<String>,
    open_dtype: Option<AnyDType>,
    open_eos: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let layout = match to {
        FLAT_TOKENS => None,
        _ => Some(choice(py, "to", to, &LAYOUTS)?),
    };
    let opening = windrow::format::Options {
        format,
        dtype: open_dtype.map(|d| d.0),
        eos: open_eos,
        ..Default::default()
    };
    let watcher = Watcher::new(progress);
    let report = py.detach(|| {
        let data = windrow::open_with(&path, &opening)?;
        let source = data.source().as_ref();
        let Some(layout) = layout else {
            let options = WriteOptions { overwrite, durable, ..WriteOptions::default() };
            return zarr::convert(source, &out, &options, &watcher);
        };
        let options = SeriesOptions {
            dtype: dtype.map(|d| d.0),
            max_shard_bytes: max_shard_bytes.0,
            normalize,
            overwrite,
            durable,
            ..SeriesOptions::new(layout)
        };
        prepare::convert(source, &out, &options, &watcher)
    });
    json::plain(py, &watcher.finish(py, report)?)
}
