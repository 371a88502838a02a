//! `windrow.tokenize`: by a tokenizer of windrow's as the command does it, or by functions of the user's own.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use windrow::prep::{TOKENIZING, Tokenizing};
use windrow::prepare::{self, Encode, Report, TokenizeOptions};
use windrow::text::Tokenizer;
use windrow::{ChatEncoder, Error, Kind, MaskedEncoder, Paths, TextEncoder, loss_mask, not_of_chat};

use crate::prepare::callback::{Ids, LineEncoder, Masks, Watcher};
use crate::prepare::given::gives_mask;
use crate::prepare::texts::Wanted;
use crate::prepare::{own_options, texts};
use crate::python::error::{OrRaise, is_end, raise};
use crate::python::given::{argument, given, stores};
use crate::python::interrupt::Attempt;
use crate::python::json;
use crate::python::options::{Count, Id};
use crate::python::rows;
use crate::python::said::{class_of, text_of};

given! {
    struct Given<'py> {
        inputs: Bound<'py, PyAny>,
        out: PathBuf,
        tokenizer: Bound<'py, PyAny>,
        text_function: Option<Py<PyAny>>,
        vocab_size: Option<Count>,
        overwrite: bool,
        num_threads: Option<Count>,
        allow_empty: bool,
        fsync: bool,
    }
}

/// Turns text into token IDs on disk; the report as a dict.
#[pyfunction]
pub(crate) fn _tokenize<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let how = how(given)?;
    let (stores, watcher) = (stores(given)?, Watcher::of(given)?);
    let given = Given::of(given)?;
    let wanted = match (&how.chat, &how.mask_field) {
        (Some(chat), _) => Wanted::Json(ChatEncoder::fields(chat.messages_field.as_deref())),
        (None, Some(mask_field)) => Wanted::Json(MaskedEncoder::fields(&how.text_field, mask_field)),
        (None, None) => Wanted::Text(how.text_field.clone()),
    };
    let mut inputs = texts::Inputs::of(&given.inputs, wanted)?;
    let are_texts = matches!(inputs, texts::Inputs::Texts(_));
    let options = TokenizeOptions {
        overwrite: given.overwrite,
        fsync: given.fsync,
        num_threads: given.num_threads.map(Count::size),
        allow_empty: given.allow_empty,
        ..how.options().or_raise(py)?
    };
    let work = Work { stores, out: given.out, watcher };
    let loaded = loaded(py, &given.tokenizer)?;
    if how.chat.is_some() {
        let of_text =
            [("text_function", given.text_function.is_some()), ("vocab_size", given.vocab_size.is_some())];
        if let Some((option, _)) = of_text.iter().find(|(_, is_given)| *is_given) {
            return Err(raise(py, &not_of_chat(option)));
        }
        if loaded.is_none() {
            return Err(PyTypeError::new_err("with chat=True, tokenizer is a Tokenizer, a name or a path"));
        }
    } else {
        check(
            py,
            &how,
            &given.tokenizer,
            loaded.is_none(),
            are_texts,
            given.text_function.is_some(),
            given.vocab_size,
        )?;
    }
    let (ids, eos) = match loaded {
        Some(loaded) if given.text_function.is_none() => {
            let made = py.detach(|| how.make_by(loaded, options));
            let (encoder, options) = made.or_raise(py)?;
            let report = work.run(py, &mut inputs, encoder.as_ref(), &options);
            return work.finish(py, report);
        }
        Some(loaded) => {
            let encoder = TextEncoder::new(loaded, &how.text_field, &how.eos).or_raise(py)?;
            let eos = encoder.eos();
            (Ids::Tokenizer(encoder.special_tokens(how.special_tokens)), eos)
        }
        None => (Ids::Function(given.tokenizer.clone().unbind()), eos_of_function(&how).or_raise(py)?),
    };
    let options = TokenizeOptions { eos, remainder: how.remainder(eos).or_raise(py)?, ..options };
    let is_function = matches!(ids, Ids::Function(_));
    let encoder = LineEncoder {
        described: ids.described(py, &how.text_field, given.text_function.as_ref())?,
        ids,
        field: how.text_field.clone(),
        text: given.text_function,
        vocab_size: given.vocab_size.map(|v| v.0),
        eos,
        masks: Masks::expected(false),
    };
    work.by_function(py, &mut inputs, encoder, &options, is_function.then_some(&given.tokenizer))
}

// The options in words that the command has too.
fn how(given: &Bound<'_, PyDict>) -> PyResult<Tokenizing> {
    let py = given.py();
    let named = TOKENIZING.iter().filter(|row| !["tokenizer", "eos"].contains(&row.name));
    let mut options = rows::all(named, given)?;
    options.insert("eos".to_string(), eos(given)?.into());
    let to: String = argument(given, "to")?;
    let own = own_options::given(given)?;
    own_options::writer(given, "tokenize", &to, &own)?;
    Tokenizing::of(options.into_iter().chain(own).collect()).or_raise(py)
}

// What ends a document, as the command has it.
fn eos(given: &Bound<'_, PyDict>) -> PyResult<String> {
    let eos: Bound<'_, PyAny> = argument(given, "eos")?;
    if eos.is_none() {
        return Ok("none".to_string());
    }
    if let Ok(text) = eos.cast::<PyString>() {
        return Ok(text_of(text));
    }
    argument::<Id>(given, "eos")?.named(given.py(), "eos").map(|id| id.to_string())
}

// A function knows no tokens by name.
fn eos_of_function(how: &Tokenizing) -> windrow::Result<Option<i64>> {
    if how.eos == "none" {
        return Ok(None);
    }
    how.eos.parse().map(Some).map_err(|_| {
        Error::config(format!("eos={:?} with a Python function as tokenizer", how.eos))
            .field("eos")
            .hint("pass the token ID, or None; append_eos=True ends each record with it")
    })
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

// Refuses the first option that would have no effect.
fn check(
    py: Python<'_>,
    how: &Tokenizing,
    tokenizer: &Bound<'_, PyAny>,
    is_function: bool,
    are_texts: bool,
    has_function: bool,
    vocab_size: Option<Count>,
) -> PyResult<()> {
    if is_function && !tokenizer.is_callable() {
        let class = class_of(tokenizer)?;
        return Err(PyTypeError::new_err(format!(
            "tokenizer is a Tokenizer, a name, a path, or a function from text to token IDs, not {class}"
        )));
    }
    let has_field = how.text_field != Tokenizing::default().text_field;
    let unused = [
        (
            "vocab_size",
            !is_function && vocab_size.is_some(),
            "the tokenizer says its own: it is for a function",
        ),
        ("special_tokens", is_function && how.special_tokens, "a function says itself what is special"),
        (
            "mask_field",
            is_function && how.mask_field.is_some(),
            "a function gives the mask itself: a tuple (ids, mask)",
        ),
        ("text_function", how.mask_field.is_some() && has_function, "mask_field names a field of the line"),
        ("text_field", has_function && has_field, "text_function takes the text from the line"),
        ("text_function", has_function && are_texts, "an iterable gives texts, not lines"),
    ];
    match unused.iter().find(|(_, is_unused, _)| *is_unused) {
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
