//! `windrow.open`, and how a pickle opens its data set again.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use windrow::Error;
use windrow::format::{Options, Verify};

use crate::dataset::Dataset;
use crate::python::dtype::AnyDType;
use crate::python::error::raise;
use crate::python::in_memory;
use crate::python::interrupt::Attempt;
use crate::python::near::none_left;
use crate::python::options::{Count, Id, MaskColumn, Names, choice};
use crate::python::paths::AnyPaths;
use crate::python::pickled::check;
use crate::python::store_options::{StoreOptions, seconds};
use crate::python::waiting::wait_for;

/// Opens files or folders of training data; the format is recognised by content.
///
/// Args:
///     path: a file or folder, or its ``file://`` URL; a pattern that stands for several, opened as one data set: a glob
///         (``"data/*.parquet"``, ``"data/**/*.jsonl"``), whose files come in natural order, or braces (``"x-{000..127}.tar"``,
///         ``"{a,b}.bin"``), which keep their order; or a list of all these, in its order. Each file or folder is opened by
///         itself, and all have to be of one format, dtype and shape. A name that is there as it is written is no pattern.
///     format: the name of a format, to force it; see ``windrow.formats()``.
///     dtype: dtype of a stored number, where the files do not say: a name of numpy's, ``np.dtype`` or type.
///     vocab_size: IDs must be below this; checked once over all of them, unless the manifest knows it.
///     eos: of raw token files, the ID that ends each document: documents are records then, each with its EOS token as the
///         last value. Ends are looked for once and kept in the cache.
///     split: opens the folder of that name below ``path``; without one, what its name says is of that split, such as
///         ``validation/``, ``val.bin`` or ``c4-validation.00000-of-00008.json.gz``. A folder where names say several, or one
///         of some files only, has to be told which; ``"all"`` joins them.
///     columns: only these keys of JSON records, or columns of a format that has some: ``ds[i]`` is a dict of them. Of CSV
///         the channels of its series, in this order.
///     mask_column: what of the columns beside token IDs says which tokens are learned: a name, a list of names, which are
///         joined by *and*, or ``None`` for no mask. ``"auto"`` finds ``loss_mask``, ``loss``, ``assistant_masks``,
///         ``completion_mask`` and ``labels``. A mask is 0 and 1 (learned); labels are -100 (not learned) or the token beside
///         them, not shifted. Of ``attention_mask`` a 0 is an error when the record is read, unless it is named here. Views
///         have ``loss_masks`` of it; ``info()["mask_columns"]`` says what was found.
///     payload: what a record of bytes holds (TFRecord, ArrayRecord, Bagz): ``"bytes"``, ``"text"``, ``"json"`` or
///         ``"example"``; if not given ``"example"`` where the first record is a tf.train.Example, else ``"bytes"``.
///     column: the key that holds the series, of JSON, JSON Lines, YAML and pickles whose records are objects, or a column of
///         CSV; the other keys are extras. If not given it is ``sequence``, or the only key of the first record that holds numbers (of JSON Lines
///         only GluonTS's ``target``, or a list with fractions).
///     axis: ``"time"`` makes one series of an array ``[T, C]`` (``.npy``, ``.npz``, JSON, YAML, pickles); if not given, its
///         rows are T series of C values.
///     index_folder: name of the index folder, if it is not ``index``.
///     tokenizer: the tokenizer that must have made the tokens: a ``Tokenizer``, a name, a path or a hash; another one is
///         a ``MismatchError``.
///     allow_outside: accept files that an index names outside its base folder.
///     trust: accept data whose size or time differs from what the manifest says, and read as IDs what looks like the
///         file of another program.
///     cache_limit: bytes that all of the cache may take, what is expanded (``.gz``, ``.zst``), converted (JSON, YAML, pickles,
///         CSV, ``.tsf``) and fetched together; if not given ``WINDROW_CACHE_LIMIT``, else half of what is free on its disk and
///         what it holds, and of that one file 1,000 times its size where it is compressed, 16 times where it is converted, and
///         64 MiB. Of URLs, 0 keeps what is fetched in memory.
///     memory_limit: bytes of decoded chunks that an opened zarr store keeps in memory, all its threads together; 256 MiB
///         if not given.
///     cache: of URLs, the folder in which what is fetched is kept, if it is not the usual cache.
///     store_options: of URLs, what their store's own tools call them: ``endpoint_url``, ``region``, ``anon``,
///         ``access_key_id``, and for ``http``, ``headers``, a dict. They go before the environment and stay out of recipes.
///     timeout: of URLs, seconds that a read may take, all its attempts together; 300 if not given.
///     read_ahead: of URLs, bytes that are fetched ahead and held in memory; 256 MiB if not given.
///     fill_missing: read missing chunks of a zarr array as zeros instead of refusing them.
///     io: ``"mmap"``, or ``"pread"`` for files that others may truncate; those of network mounts are never mapped.
///     verify: ``"always"`` compares each block of 4 KiB with its block checksum, whenever it is read; data without them is
///         refused. ``None``: sizes, headers and indices are checked when it is opened.
///
/// Raises:
///     NotFoundError, UnrecognisedError: nothing there, or nothing known.
///     CorruptError, StaleError: a claim in the files does not hold.
///     MismatchError: several paths whose records cannot be one data set; it names two of them.
///     ConfigError: options that do not fit; an empty list, or a path that is in it twice. When records are read: labels that
///         are not the tokens beside them, and padding.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "prices.npy"
/// >>> np.save(path, np.arange(21).reshape(7, 3))
/// >>> len(wr.open(path)), wr.open(path, axis="time")[0].shape
/// (7, (7, 3))
/// >>> path = path.with_name("tokens.bin")
/// >>> np.arange(10, dtype=np.uint16).tofile(path)
/// >>> ds = wr.open(path, format="tokens", dtype="uint16")
/// >>> len(ds), ds[0][:3].tolist()
/// (1, [0, 1, 2])
/// >>> [document.tolist() for document in wr.open(path, dtype="uint16", eos=4)]
/// [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
/// >>> for i in range(12):
/// ...     np.save(path.with_name(f"x-{i}.npy"), np.full((2, 3), i))
/// >>> [series[0].item() for series in wr.open(path.with_name("x-*.npy"))][-3:]
/// [10, 11, 11]
/// >>> len(wr.open(path.with_name("x-{0..9}.npy"))), len(wr.open([path.with_name("x-3.npy"), path.with_name("x-1?.npy")]))
/// (20, 6)
#[pyfunction]
#[pyo3(signature = (path, *, format=None, dtype=None, vocab_size=None, eos=None, split=None, column=None, columns=None, mask_column=MaskColumn::Auto, payload=None, axis=None, index_folder=None, tokenizer=None, allow_outside=false, trust=false, cache_limit=None, memory_limit=None, cache=None, store_options=None, timeout=None, read_ahead=None, fill_missing=false, io="mmap", verify=None, **unknown), text_signature = "(path, *, format=None, dtype=None, vocab_size=None, eos=None, split=None, column=None, columns=None, mask_column='auto', payload=None, axis=None, index_folder=None, tokenizer=None, allow_outside=False, trust=False, cache_limit=None, memory_limit=None, cache=None, store_options=None, timeout=None, read_ahead=None, fill_missing=False, io='mmap', verify=None)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn open(
    py: Python<'_>,
    path: AnyPaths,
    format: Option<String>,
    dtype: Option<AnyDType>,
    vocab_size: Option<Count>,
    eos: Option<Id>,
    split: Option<String>,
    column: Option<String>,
    columns: Option<Names>,
    mask_column: MaskColumn,
    payload: Option<&str>,
    axis: Option<&str>,
    index_folder: Option<String>,
    tokenizer: Option<Bound<'_, PyAny>>,
    allow_outside: bool,
    trust: bool,
    cache_limit: Option<Count>,
    memory_limit: Option<Count>,
    cache: Option<PathBuf>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
    read_ahead: Option<Count>,
    fill_missing: bool,
    io: &str,
    verify: Option<&str>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Dataset> {
    none_left(py, "open", unknown)?;
    let options = Options {
        format,
        dtype: dtype.map(|d| d.0),
        vocab_size: vocab_size.map(|v| v.0),
        eos: eos.map(|id| id.named(py, "eos")).transpose()?,
        column,
        columns: columns.map(|names| names.0),
        mask_column: mask_column.names(),
        payload: payload
            .map(|payload| choice(py, "payload", payload, &["bytes", "text", "json", "example"]))
            .transpose()?,
        axis: axis.map(|axis| choice(py, "axis", axis, &["time"])).transpose()?,
        index_folder,
        tokenizer: tokenizer.map(|t| tokenizer_name(&t)).transpose()?,
        allow_outside,
        trust,
        cache_limit: cache_limit.map(|limit| limit.0),
        memory_limit: memory_limit.map(|limit| limit.0),
        cache,
        store_options: store_options.map(|given| given.0).unwrap_or_default(),
        timeout: timeout.map(|given| seconds(py, "timeout", given)).transpose()?,
        read_ahead: read_ahead.map(|bytes| bytes.0),
        io: choice(py, "io", io, &["mmap", "pread"])?,
        verify: verify.map_or(Ok(Verify::AtOpening), |when| choice(py, "verify", when, &["always"]))?,
        part: split,
        allow_empty: false,
        fill_missing,
        split: None,
        exclude: Vec::new(),
        period: None,
    };
    let paths = path.absolute();
    Ok(Dataset::new(wait_for(py, move || paths.open(&options))?))
}

/// Opens a pickled data set again.
#[pyfunction]
pub(crate) fn _reopen(py: Python<'_>, path: AnyPaths, options: &str, data: u64) -> PyResult<Dataset> {
    let options: Options = serde_json::from_str(options)
        .map_err(|e| raise(py, &Error::corrupt("this is not a pickled data set").caused_by(e)))?;
    let opened = {
        let paths = path.0.clone();
        wait_for(py, move || paths.open(&options))?
    };
    check(py, opened.source(), data, &path.0)?;
    Ok(Dataset::new(opened))
}

/// Arrays in memory as records, and a dict beside each: of a frame, or of a pickle that held them.
#[pyfunction]
#[pyo3(signature = (arrays, beside, options="{}", data=None))]
pub(crate) fn _in_memory(
    py: Python<'_>,
    arrays: Bound<'_, PyList>,
    beside: Bound<'_, PyList>,
    options: &str,
    data: Option<u64>,
) -> PyResult<Dataset> {
    let options: Options = serde_json::from_str(options)
        .map_err(|e| raise(py, &Error::corrupt("this is not a pickled data set").caused_by(e)))?;
    let opened = in_memory::opened(py, &arrays, &beside, &options)?;
    if let Some(expected) = data {
        check(py, opened.source(), expected, opened.paths())?;
    }
    Ok(Dataset::new(opened))
}

// What the face understands: a hash, a name or a path.
fn tokenizer_name(given: &Bound<'_, PyAny>) -> PyResult<String> {
    match given.getattr("hash").attempt(given.py())? {
        Some(hash) if !hash.is_callable() => hash.extract(),
        _ => Ok(given.extract::<std::path::PathBuf>()?.to_string_lossy().into_owned()),
    }
}
