//! Documents of token ids from Python into raw token files and flat-tokens.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use windrow::format::write::WriteOptions;
use windrow::prepare::Writer;
use windrow::source::{Extras, Schema};
use windrow::{DType, Error};
use windrow_core::{Decode, Element, Values};

use crate::dtype::AnyDType;
use crate::error::{OrRaise, raise};
use crate::json;
use crate::near::none_left;
use crate::options::{Count, Id};
use crate::own_options::OwnOptions;

/// Writes documents of token ids as one headerless row of ids, ``out``, and its manifest; both appear complete or not at all.
///
/// Documents are written as they come, one at a time in memory; an error or Ctrl-C leaves nothing behind.
///
/// Args:
///     out: the file to write, such as ``tokens.bin``.
///     documents: an iterable of ids ``[T]`` (lists, arrays, tensors); an array of ids ``[N, T]`` is N documents.
///     dtype: dtype of a stored id: uint8, uint16, uint32, int32 or int64.
///     eos: an id put after every document, also after one that ends with it already. ``open(out, eos=…)`` cuts there.
///     vocab_size: ids must be below this. The manifest keeps it, so that opening does not check again.
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
#[pyo3(signature = (out, documents, *, dtype=None, eos=None, vocab_size=None, overwrite=false, durable=true, **unknown),
       text_signature = "(out, documents, *, dtype='uint32', eos=None, vocab_size=None, overwrite=False, durable=True)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn write_tokens<'py>(
    py: Python<'py>,
    out: PathBuf,
    documents: &Bound<'py, PyAny>,
    dtype: Option<AnyDType>,
    eos: Option<Id>,
    vocab_size: Option<Count>,
    overwrite: bool,
    durable: bool,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "write_tokens", unknown)?;
    let dtype = dtype.map_or(DType::U32, |d| d.0);
    let format = windrow::writer("tokens", &OwnOptions::default().given()).or_raise(py)?;
    let options = WriteOptions {
        dtype: Some(dtype),
        eos: eos.map(|id| id.named(py, "eos")).transpose()?,
        vocab_size: vocab_size.map(|v| v.0),
        overwrite,
        durable,
        ..WriteOptions::default()
    };
    let mut writer =
        Writer::create(&out, &Schema::numbers(Element::little(dtype)), format.as_ref(), &options)
            .or_raise(py)?;
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

/// Writes token sequences as flat-tokens: a zarr group of ``encoded_tokens``, ``seq_starts`` and ``max_token_id``.
///
/// Sequences are written as they come, and become visible together at the end; an error or Ctrl-C changes nothing.
///
/// Args:
///     out: the folder of one split, ``corpus.zarr/train``.
///     sequences: an iterable of sequences of ids ``[T]``, each in 0 to 2**31 - 1: lists, arrays, tensors, a ``Dataset``.
///     zarr_format: 2 as seqax writes it (blosc: lz4, bitshuffle), or 3 (zstd, crc32c).
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
///     ConfigError: a sequence that is no ids ``[T]``, naming the record; ``append`` with ``overwrite``, or with
///         ``zarr_format=3`` behind version 2.
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
#[pyo3(signature = (out, sequences, *, zarr_format=Count(2), tokens_chunk_size=Count(1 << 22),
                    seq_starts_chunk_size=Count(1 << 20), chunks_per_shard=None, append=false, overwrite=false,
                    durable=true, **unknown),
       text_signature = "(out, sequences, *, zarr_format=2, tokens_chunk_size=4194304, seq_starts_chunk_size=1048576, chunks_per_shard=None, append=False, overwrite=False, durable=True)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn write_flat_tokens<'py>(
    py: Python<'py>,
    out: PathBuf,
    sequences: &Bound<'py, PyAny>,
    zarr_format: Count,
    tokens_chunk_size: Count,
    seq_starts_chunk_size: Count,
    chunks_per_shard: Option<Count>,
    append: bool,
    overwrite: bool,
    durable: bool,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "write_flat_tokens", unknown)?;
    let own = OwnOptions {
        zarr_format: Some(zarr_format),
        tokens_chunk_size: Some(tokens_chunk_size),
        seq_starts_chunk_size: Some(seq_starts_chunk_size),
        chunks_per_shard,
        ..OwnOptions::default()
    };
    let format = windrow::writer("flat-tokens", &own.given()).or_raise(py)?;
    let options = WriteOptions { append, overwrite, durable, ..WriteOptions::default() };
    let schema = Schema::numbers(Element::little(DType::U32));
    let mut writer = py.detach(|| Writer::create(&out, &schema, format.as_ref(), &options)).or_raise(py)?;
    let as_array = py.import("numpy")?.getattr("asarray")?;
    for (number, item) in sequences.try_iter()?.enumerate() {
        let (array, _) = ids(&as_array, &item?, number)?;
        let is_empty = array.len()? == 0;
        if !is_empty && (array.call_method0("min")?.lt(0)? || array.call_method0("max")?.gt(u32::MAX)?) {
            let error = Error::config("an id below 0 or beyond 32 bits; flat-tokens hold 0 to 2^31 - 1");
            return Err(raise(py, &error.record(number as u64)));
        }
        let bytes = array.call_method1("astype", ("<u4",))?.call_method0("tobytes")?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        let values = Values { bytes, element: schema.element, channels: 1, decode: Decode::Plain };
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
