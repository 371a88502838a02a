//! Preparing data from Python: index, tokenise, verify, dummy tokens.

pub(crate) mod callback;
pub(crate) mod convert;
pub(crate) mod given;
pub(crate) mod own_options;
pub(crate) mod prep;
pub(crate) mod record;
pub(crate) mod remainder;
pub(crate) mod text;
pub(crate) mod texts;
pub(crate) mod write;

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use windrow::prepare::{self, Encode, IndexOptions, Report, TokenizeOptions};
use windrow::text::Tokenizer;
use windrow::{
    ChatEncoder, Error, Kind, MaskedEncoder, Paths, TextEncoder, formats as all_formats, loss_mask,
    not_of_chat,
};

use crate::prepare::callback::{Ids, LineEncoder, Masks, Watcher};
use crate::prepare::given::gives_mask;
use crate::prepare::remainder::remainder_of;
use crate::prepare::texts::Wanted;
use crate::python::dtype::{AnyDType, numpy_ready};
use crate::python::error::{OrRaise, is_end, raise};
use crate::python::interrupt::Attempt;
use crate::python::json;
use crate::python::near::none_left;
use crate::python::options::{Count, Id, choice};
use crate::python::paths::AnyPaths;
use crate::python::said::{class_of, text_of};
use crate::python::store_options::{StoreOptions, stores};
use crate::python::waiting::wait_for;

/// Indexes every line of the JSONL files below a folder, so that each is a record.
///
/// Args:
///     path: the folder, or its URL; ``*.jsonl`` at any depth, plain, ``.gz`` or ``.zst``.
///     index_folder: name of the folder for the index, below ``path``.
///     overwrite: replace an index of other inputs.
///     checksum: keep a hash of every data file.
///     allow_empty: no JSONL file at all, or only empty ones, give an empty index.
///     progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
///     store_options, timeout: of URLs, as for ``open``.
///     **options: those that the format has of its own, as for ``write``. With ``to="forager"`` ``samples_folder``, ``postfix``,
///         ``index_folder``: names of folders and files, ``tokenized-samples`` twice, and ``index``; with it and with ``"tokens"``
///         ``block_sums=False``: keep no sum of every 4 KiB, for ``open(verify="always")``; the others always have them.
///
/// Returns:
///     A dict: unchanged, output, files, records, input_bytes, ….
///
/// Raises:
///     NotFoundError: no folder, or no JSONL file in it.
///     UnsupportedError: a table of Delta Lake, Iceberg or Hudi, whose log says which files are live.
///     ExistsError: an index of other inputs, and no ``overwrite``.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
/// >>> wr.index(folder)["records"]
/// 2
#[pyfunction]
#[pyo3(signature = (path, *, index_folder="index", overwrite=false, checksum=false, allow_empty=false, progress=None, store_options=None, timeout=None, **unknown), text_signature = "(path, *, index_folder='index', overwrite=False, checksum=False, allow_empty=False, progress=None, store_options=None, timeout=None)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn index<'py>(
    py: Python<'py>,
    path: PathBuf,
    index_folder: &str,
    overwrite: bool,
    checksum: bool,
    allow_empty: bool,
    progress: Option<Py<PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
    unknown: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    none_left(py, "index", unknown)?;
    let stores = stores(py, store_options, timeout)?;
    let options = IndexOptions {
        index_folder: index_folder.to_string(),
        overwrite,
        checksum,
        allow_empty,
        ..IndexOptions::default()
    };
    let watcher = Watcher::new(py, progress)?;
    let report = py.detach(|| prepare::index_with(&path, &options, &stores, &watcher));
    json::plain(py, &watcher.finish(py, report)?)
}

/// Turns text into token IDs on disk: that of JSON Lines, of a column of Parquet, Arrow, WebDataset and others, or of an iterable.
///
/// The output appears complete or not at all; a run that was stopped continues where it was when it is called again. Of an
/// iterable that continues by number: the items that are done are taken again, compared by their hash, and not tokenised again.
///
/// Args:
///     inputs: a path or URL, or several: JSONL files, or folders that hold some, ``.gz`` and ``.zst`` too; or files and folders of
///         rows, as ``open`` reads them: Parquet, Arrow, what ``datasets`` saved, WebDataset. A str, a PathLike, and a list or
///         tuple of them are paths. Any other iterable gives the texts, as str or as dicts with ``text_field``: a generator,
///         ``iter(texts)``, a ``Dataset`` or ``IterableDataset`` of ``datasets``, a column of pandas or polars. Its items are taken on the
///         calling thread while others tokenise.
///     out: the folder to write, or its URL.
///     tokenizer: a ``Tokenizer``, a name or path as it takes one, or a function from text to a list of IDs, or to a tuple of IDs
///         and a loss mask: 1 for each token that is learned, 0 for the others.
///     to: ``"forager"`` samples with a byte-offset index; ``"tokens"`` one stream without a header, ``"llmc"`` one with
///         llm.c's; and with a record per document, ``out`` being a folder that appears as a whole: ``"flat-tokens"`` in zarr,
///         ``out`` a split (``corpus.zarr/train``), ``"megatron"`` (``tokens.bin``, ``tokens.idx``), ``"shards"``
///         (``meta.json``), ``"datatrove"`` (``.ds`` with its index).
///     sample_size: tokens per sample, documents packed one after the other; None makes each document a record.
///     eos: the ID that ends a document: ``"auto"`` the tokenizer's own, an ID, a token's name, None or ``"none"``.
///         ``"append"`` is ``"auto"`` with ``append_eos``.
///     text_field: key of the text in a line, or the column of rows: ``"meta.text"`` is the key ``text`` in the column
///         ``meta``, or in a dict there. Of WebDataset a suffix: ``"txt"``, or ``"json.text"``.
///     mask_field: key of a loss mask beside the text, or its column: a list with 1 or True for each token that is learned, else 0 or
///         False. ``text_field`` holds a list of token IDs then, or a text of the same number of tokens.
///     text_function: a function from a line's bytes to its text, instead; not for rows and iterables.
///     split: of folders that hold several splits, the one to read: ``"train"``; of files, patterns and lists those whose
///         names say it; ``"all"`` joins them.
///     dtype: dtype of a stored id; None takes the smaller of uint16 and uint32 that holds the vocabulary (int32 for
///         Megatron; flat-tokens are uint32, IDs up to 2**31 - 1).
///     vocab_size: IDs of a function are below this.
///     append_eos: end documents with ``eos`` where each is a record, too.
///     remainder: ``"drop"`` or ``"pad"`` the tokens at the end that fill no sample.
///     pad_value: with ``remainder="pad"``, the ID to pad with; None takes ``eos``, and is an error where there is none.
///     special_tokens: special tokens that are in the text become their IDs.
///     chat: each record (a line, a row, or a dict of an iterable) is a conversation: the chat template makes its text, nothing is added, and a loss mask beside the
///         tokens says what is learned: what an assistant says. Each conversation is a record, or part of samples of ``sample_size``.
///     messages_field: with ``chat``, key of the messages, by default ``messages``, else ``conversations``: a list of dicts with
///         ``role`` and ``content``, or ``from`` and ``value`` (ShareGPT).
///     chat_template: with ``chat``, a file with a Jinja template, or ``chatml``, ``gemma``, ``llama3``, ``zephyr``; by default the one
///         beside the tokenizer.json.
///     chat_date: with ``chat``, the day for templates that ask for it, ``"2026-01-31"``; by default today.
///     overwrite: replace an existing output.
///     threads: encoding threads; a Python function always runs alone.
///     allow_empty: no input at all, or only empty ones, give an empty output.
///     durable: bring everything to the disk before it becomes visible.
///     progress: ``True`` draws a bar; a function is called now and then with a dict of done_bytes, total_bytes, records.
///     store_options, timeout: of URLs, as for ``open``.
///
/// Returns:
///     A dict: unchanged, output, files, records, documents, tokens, dropped_tokens, ….
///
/// Raises:
///     CorruptError: a line, row or item without that text; names file, record, and byte or column.
///     StaleError: an iterable gives other items than a run that was stopped; the same call then begins anew.
///     ConfigError: an ID that does not fit the dtype; an ``eos`` that the tokenizer has not; a column that is not there.
///     ExistsError: another output is there, and no ``overwrite``.
///     UnsupportedError: a chat template that does not show what is learned; says which record.
///
/// >>> import windrow as wr, tempfile, pathlib
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
/// >>> wr.tokenize(folder / "a.jsonl", folder / "tokens", tokenizer="bytes", sample_size=4)["records"]
/// 2
/// >>> wr.open(folder / "tokens")[1].tolist()
/// [116, 119, 111, 256]
/// >>> wr.tokenize((text for text in ["ab", "cde"]), folder / "again", tokenizer="bytes")["tokens"]
/// 5
#[pyfunction]
#[pyo3(signature = (inputs, out, *, tokenizer, to="forager", sample_size=None, eos=Eos::Auto, text_field="text", mask_field=None, text_function=None, split=None, dtype=None, vocab_size=None, append_eos=false, remainder="drop", pad_value=None, special_tokens=false, chat=false, messages_field=None, chat_template=None, chat_date=None, overwrite=false, threads=None, allow_empty=false, durable=true, progress=None, store_options=None, timeout=None, **options),
       text_signature = "(inputs, out, *, tokenizer, to='forager', sample_size=None, eos='auto', text_field='text', mask_field=None, text_function=None, split=None, dtype=None, vocab_size=None, append_eos=False, remainder='drop', pad_value=None, special_tokens=False, chat=False, messages_field=None, chat_template=None, chat_date=None, overwrite=False, threads=None, allow_empty=False, durable=True, progress=None, store_options=None, timeout=None, **options)")]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of a Python function")]
pub(crate) fn tokenize<'py>(
    py: Python<'py>,
    inputs: &Bound<'py, PyAny>,
    out: PathBuf,
    tokenizer: &Bound<'py, PyAny>,
    to: &str,
    sample_size: Option<Count>,
    eos: Eos,
    text_field: &str,
    mask_field: Option<String>,
    text_function: Option<Py<PyAny>>,
    split: Option<String>,
    dtype: Option<AnyDType>,
    vocab_size: Option<Count>,
    append_eos: bool,
    remainder: &str,
    pad_value: Option<Id>,
    special_tokens: bool,
    chat: bool,
    messages_field: Option<String>,
    chat_template: Option<PathBuf>,
    chat_date: Option<String>,
    overwrite: bool,
    threads: Option<Count>,
    allow_empty: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let to = own_options::writer(py, "tokenize", to, options)?;
    let stores = stores(py, store_options, timeout)?;
    let wanted = match (chat, &mask_field) {
        (true, _) => Wanted::Json(ChatEncoder::fields(messages_field.as_deref())),
        (false, Some(mask_field)) => Wanted::Json(MaskedEncoder::fields(text_field, mask_field)),
        (false, None) => Wanted::Text(text_field.to_string()),
    };
    let mut inputs = texts::Inputs::of(inputs, wanted)?;
    let of_chat = |is_given: bool| is_given && !chat;
    const NO_CHAT: &str = "the records are not conversations: pass chat=True";
    refuse_unused(
        py,
        &[
            ("messages_field", of_chat(messages_field.is_some()), NO_CHAT),
            ("chat_template", of_chat(chat_template.is_some()), NO_CHAT),
            ("chat_date", of_chat(chat_date.is_some()), NO_CHAT),
        ],
    )?;
    let options = TokenizeOptions {
        sample_size: sample_size.map(|s| s.0),
        dtype: dtype.map(|d| d.0),
        overwrite,
        durable,
        threads: threads.map(Count::size),
        allow_empty,
        split,
        ..TokenizeOptions::new(to)
    };
    let pads = choice::<Rest>(py, "remainder", remainder, &["drop", "pad"])? == Rest::Pad;
    let pad_value = pad_value.map(|id| id.named(py, "pad_value")).transpose()?;
    let work = Work { stores, out, watcher: Watcher::new(py, progress)? };
    let are_texts = matches!(inputs, texts::Inputs::Texts(_));
    if chat {
        refuse_of_text(
            py,
            &[
                ("eos", !matches!(eos, Eos::Auto | Eos::Nothing)),
                ("append_eos", append_eos),
                ("text_field", text_field != "text"),
                ("mask_field", mask_field.is_some()),
                ("text_function", text_function.is_some()),
                ("special_tokens", special_tokens),
                ("vocab_size", vocab_size.is_some()),
            ],
        )?;
        let encoder = chat_encoder(py, tokenizer, messages_field, chat_template, chat_date)?;
        let remainder = remainder_of(pads, pad_value, encoder.eos()).or_raise(py)?;
        let options = ChatEncoder::options(TokenizeOptions { remainder, ..options });
        let report = work.run(py, &mut inputs, &encoder, &options);
        return work.finish(py, report);
    }
    let ids = ids_of(py, tokenizer, text_field, special_tokens)?;
    let is_function = matches!(ids, Ids::Function(_));
    refuse_unused(
        py,
        &[
            (
                "vocab_size",
                !is_function && vocab_size.is_some(),
                "the tokenizer says its own: it is for a function",
            ),
            ("special_tokens", is_function && special_tokens, "a function says itself what is special"),
            (
                "mask_field",
                is_function && mask_field.is_some(),
                "a function gives the mask itself: a tuple (ids, mask)",
            ),
            (
                "text_function",
                mask_field.is_some() && text_function.is_some(),
                "mask_field names a field of the line",
            ),
            (
                "text_field",
                text_function.is_some() && text_field != "text",
                "text_function takes the text from the line",
            ),
            ("text_function", text_function.is_some() && are_texts, "an iterable gives texts, not lines"),
        ],
    )?;
    let append_eos = append_eos || matches!(eos, Eos::Append);
    let eos = eos.resolve(py, &ids)?;
    let remainder = remainder_of(pads, pad_value, eos).or_raise(py)?;
    let options = TokenizeOptions { eos, append_eos, remainder, ..options };
    if let (Ids::Tokenizer(encoder), Some(mask_field)) = (&ids, mask_field) {
        let encoder = MaskedEncoder::new(encoder.clone(), text_field, &mask_field).or_raise(py)?;
        let report = work.run(py, &mut inputs, &encoder, &MaskedEncoder::options(options));
        return work.finish(py, report);
    }
    let encoder = LineEncoder {
        described: ids.described(py, text_field, text_function.as_ref())?,
        ids,
        field: text_field.to_string(),
        text: text_function,
        vocab_size: vocab_size.map(|v| v.0),
        eos,
        masks: Masks::expected(false),
    };
    work.by_function(py, &mut inputs, encoder, &options, is_function.then_some(tokenizer))
}

// Where a tokenisation writes, and who watches it.
struct Work {
    stores: windrow::format::Options,
    out: PathBuf,
    watcher: Watcher,
}

impl Work {
    fn run(
        &self,
        py: Python<'_>,
        inputs: &mut texts::Inputs,
        encoder: &dyn Encode,
        options: &TokenizeOptions,
    ) -> windrow::Result<Report> {
        let Work { stores, out, watcher } = self;
        py.detach(|| match inputs {
            texts::Inputs::Paths(paths) => Paths::list(paths.iter())
                .inputs(stores, options.split.as_deref())
                .and_then(|inputs| prepare::tokenize_with(&inputs, out, encoder, options, stores, watcher))
                .map_err(|e| texts::or_texts(e, paths)),
            texts::Inputs::Texts(texts) => {
                prepare::tokenize_texts(texts, out, encoder, options, stores, watcher)
            }
        })
    }

    fn finish<'py>(self, py: Python<'py>, report: windrow::Result<Report>) -> PyResult<Bound<'py, PyAny>> {
        json::plain(py, &self.watcher.finish(py, report)?)
    }

    // What a function of the user's gives for the first text says whether it gives masks, where that can be had without reading.
    fn by_function<'py>(
        self,
        py: Python<'py>,
        inputs: &mut texts::Inputs,
        mut encoder: LineEncoder,
        options: &TokenizeOptions,
        function: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let first = match inputs {
            texts::Inputs::Texts(texts) if function.is_some() => texts.peek(),
            _ => None,
        };
        let has_masks = function.map_or(Ok(false), |function| gives_mask(function, first))?;
        let are_texts = matches!(inputs, texts::Inputs::Texts(_));
        let mut tokenize = |has_masks: bool| {
            encoder.masks = Masks::expected(has_masks);
            let tracks = if has_masks { vec![loss_mask::track()] } else { Vec::new() };
            let report = self.run(py, inputs, &encoder, &TokenizeOptions { tracks, ..options.clone() });
            (report, encoder.masks.is_other())
        };
        let (mut report, is_other) = tokenize(has_masks);
        // A short text need not be answered as the texts are; nor is what is there an output without masks, then.
        let is_there = report.as_ref().is_err_and(|e| e.kind() == Kind::Exists);
        if function.is_some() && !are_texts && (is_other || is_there) {
            let (again, _) = tokenize(!has_masks);
            if is_other || again.as_ref().map_or_else(|e| is_end(py, e), |_| true) {
                report = again;
            }
        }
        self.finish(py, report)
    }
}

fn chat_encoder(
    py: Python<'_>,
    tokenizer: &Bound<'_, PyAny>,
    messages_field: Option<String>,
    template: Option<PathBuf>,
    date: Option<String>,
) -> PyResult<ChatEncoder> {
    let Some(loaded) = loaded(py, tokenizer)? else {
        return Err(PyTypeError::new_err("with chat=True, tokenizer is a Tokenizer, a name or a path"));
    };
    let template = template.map(|template| template.to_string_lossy().into_owned());
    py.detach(|| ChatEncoder::new(loaded, messages_field.as_deref(), template.as_deref(), date.as_deref()))
        .or_raise(py)
}

// Refuses the first option of texts that is given for conversations.
fn refuse_of_text(py: Python<'_>, options: &[(&'static str, bool)]) -> PyResult<()> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(raise(py, &not_of_chat(option))),
        None => Ok(()),
    }
}

// Refuses the first option that would have no effect.
fn refuse_unused(py: Python<'_>, options: &[(&str, bool, &str)]) -> PyResult<()> {
    match options.iter().find(|(_, is_unused, _)| *is_unused) {
        Some((option, _, why)) => {
            Err(raise(py, &Error::config(format!("{option} is set, but {why}")).field(*option)))
        }
        None => Ok(()),
    }
}

// A tokenizer of windrow's, by itself, its name or its path.
fn loaded(py: Python<'_>, tokenizer: &Bound<'_, PyAny>) -> PyResult<Option<Tokenizer>> {
    if let Ok(given) = tokenizer.cast::<crate::prepare::text::Tokenizer>() {
        return Ok(Some(given.get().loaded()));
    }
    let Some(name) = tokenizer.extract::<PathBuf>().attempt(py)? else { return Ok(None) };
    py.detach(|| Tokenizer::load(&name.to_string_lossy())).or_raise(py).map(Some)
}

fn ids_of(py: Python<'_>, tokenizer: &Bound<'_, PyAny>, field: &str, special: bool) -> PyResult<Ids> {
    if let Some(loaded) = loaded(py, tokenizer)? {
        let encoder = TextEncoder::new(loaded, field, "none").or_raise(py)?;
        return Ok(Ids::Tokenizer(encoder.special_tokens(special)));
    }
    if !tokenizer.is_callable() {
        let class = class_of(tokenizer)?;
        return Err(PyTypeError::new_err(format!(
            "tokenizer is a Tokenizer, a name, a path, or a function from text to token IDs, not {class}"
        )));
    }
    Ok(Ids::Function(tokenizer.clone().unbind()))
}

// What happens to the tokens at the end, in the words of users.
#[derive(serde::Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Rest {
    Drop,
    Pad,
}

/// A path, or several.
pub(crate) struct Inputs(pub(crate) Vec<PathBuf>);

impl<'py> FromPyObject<'_, 'py> for Inputs {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<PathBuf>().attempt(given.py())? {
            Some(path) => Ok(Inputs(vec![path])),
            None => given.try_iter()?.map(|path| path?.extract()).collect::<PyResult<_>>().map(Inputs),
        }
    }
}

/// What ends a document, as users say it.
pub(crate) enum Eos {
    /// The tokenizer's own, where it has one.
    Auto,
    /// The tokenizer's own, also after documents that are a record each.
    Append,
    /// None.
    Nothing,
    /// This id.
    Id(Id),
    /// The token of this name.
    Named(String),
}

impl<'py> FromPyObject<'_, 'py> for Eos {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Eos::Nothing);
        }
        if let Ok(text) = given.cast::<PyString>() {
            return Ok(match text_of(&text).as_str() {
                "auto" => Eos::Auto,
                "append" => Eos::Append,
                "none" => Eos::Nothing,
                name => Eos::Named(name.to_string()),
            });
        }
        Ok(Eos::Id(given.extract()?))
    }
}

impl Eos {
    fn resolve(self, py: Python<'_>, ids: &Ids) -> PyResult<Option<i64>> {
        let spec = match self {
            Eos::Nothing => return Ok(None),
            Eos::Id(id) => match id.named(py, "eos")? {
                // Refused with the other options: as a text it could name a token.
                id if id < 0 => return Ok(Some(id)),
                id => id.to_string(),
            },
            Eos::Auto => "auto".to_string(),
            Eos::Append => "append".to_string(),
            Eos::Named(name) => name,
        };
        match ids {
            Ids::Tokenizer(encoder) => {
                // What is appended where is for the task to know.
                let spec = if spec == "append" { "auto" } else { &spec };
                Ok(encoder.tokenizer().resolve_eos(spec).or_raise(py)?.map(i64::from))
            }
            Ids::Function(_) => match spec.parse() {
                Ok(id) => Ok(Some(id)),
                Err(_) => Err(raise(
                    py,
                    &Error::config(format!("eos={spec:?} with a Python function as tokenizer"))
                        .hint("pass the token ID, or None; append_eos=True ends each record with it"),
                )),
            },
        }
    }
}

/// Checks every claim that is made about a data set, or about every one below a folder: sizes, hashes, counts, offsets.
///
/// Args:
///     path: a file or folder, a pattern or a list, as for ``open``.
///     store_options, timeout: of URLs, as for ``open``.
///
/// Returns:
///     A dict: problems (a list of dicts of file, what, expected, found), files (a dict of each data file to its state: checked, by a
///     checksum that ``by`` names; read, without a checksum to compare; bad), how many of each (checked_files, read_files, bad_files),
///     checked_bytes, checked_records, and notes.
///
/// Raises:
///     NotFoundError: nothing there.
///     UnrecognisedError: what is there is no data.
///
/// >>> import windrow as wr, numpy as np, tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "ids.bin"
/// >>> _ = wr.write(path, [[1, 2, 3]], to="tokens", dtype="uint16")
/// >>> wr.verify(path)["files"]
/// {'ids.bin': {'state': 'checked', 'by': 'xxh3'}}
/// >>> np.array([1, 2, 4], np.uint16).tofile(path)
/// >>> [problem["what"] for problem in wr.verify(path)["problems"]]
/// ['xxh3']
#[pyfunction]
#[pyo3(signature = (path, *, store_options=None, timeout=None))]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    path: AnyPaths,
    store_options: Option<StoreOptions>,
    timeout: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let stores = stores(py, store_options, timeout)?;
    let watcher = Watcher::new(py, None)?;
    let options = prepare::VerifyOptions::default();
    let findings = py.detach(|| path.0.verify_with(&options, &stores, &watcher));
    json::plain(py, &watcher.finish(py, findings)?)
}

/// Random token IDs ``[num_tokens]``, uint32, below ``vocab_size``: the same for the same seed.
///
/// Raises:
///     ConfigError: a vocabulary of 0.
///     OutOfMemoryError: more tokens than there is memory for.
///
/// >>> import windrow as wr
/// >>> wr.create_dummy_data(100, 5).dtype, wr.create_dummy_data(100, 5).shape
/// (dtype('uint32'), (5,))
#[pyfunction]
#[pyo3(signature = (vocab_size, num_tokens, seed=Count(0)), text_signature = "(vocab_size, num_tokens, seed=0)")]
pub(crate) fn create_dummy_data(
    py: Python<'_>,
    vocab_size: Count,
    num_tokens: Count,
    seed: Count,
) -> PyResult<Bound<'_, PyArray1<u32>>> {
    if num_tokens.0 > MOST_DUMMY {
        let error = Error::memory(format!("{} tokens", num_tokens.0))
            .hint("write them to a file with `windrow dummy`");
        return Err(raise(py, &error));
    }
    let tokens = wait_for(py, move || prepare::dummy_tokens(vocab_size.0, num_tokens.size(), seed.0))?;
    numpy_ready(py)?;
    Ok(tokens.into_pyarray(py))
}

// A quarter of a terabyte: more is a slip of the finger.
const MOST_DUMMY: u64 = 1 << 36;

/// Runs the program ``windrow`` on these arguments, the first of which is its name, and gives its exit code.
#[pyfunction]
pub(crate) fn _main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> i32 {
    py.detach(|| windrow_cli::main_from(arguments))
}

/// The formats that ``open`` reads: a list of dicts of name, title, layout, records, written_by, holds (``tokens``,
/// ``series``, ``codes``, ``rows``), and the options of ``open`` and of writing that not every format has.
///
/// >>> import windrow as wr
/// >>> "tokens" in [format["name"] for format in wr.formats()]
/// True
#[pyfunction]
pub(crate) fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let rows: Vec<_> = all_formats()
        .iter()
        .map(|format| {
            let info = format.info();
            let holds: Vec<_> = info.holds.iter().map(|holds| holds.name()).collect();
            serde_json::json!({
                "name": info.name,
                "title": info.title,
                "layout": info.layout,
                "records": info.records,
                "written_by": info.written_by,
                "holds": holds,
                "open_options": info.open_options,
                "write_options": windrow::write_options(info.name),
            })
        })
        .collect();
    json::plain(py, &rows)
}
