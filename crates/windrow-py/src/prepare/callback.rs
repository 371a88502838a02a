//! Python functions that a task calls: tokenizers of the user's own, and whoever watches its progress.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};
use windrow::prepare::{Encode, Encoded, LinePlace, Progress, Takes, Watch, text_of};
use windrow::{Error, Result, TextEncoder, loss_mask};

use crate::prepare::given::{Given, answers, from_python};
use crate::python::error::OrRaise;
use crate::python::function::described;
use crate::python::given::argument;
use crate::python::interrupt::check;
use crate::python::said::class_of;

/// Where IDs come from.
pub(crate) enum Ids {
    /// A tokenizer of windrow's.
    Tokenizer(TextEncoder),
    /// A Python function from text to IDs.
    Function(Py<PyAny>),
}

impl Ids {
    /// What distinguishes them from others: of a text at `field`, or that a function takes from a line.
    ///
    /// # Errors
    /// What is raised to end the program.
    pub(crate) fn described(
        &self,
        py: Python<'_>,
        field: &str,
        text: Option<&Py<PyAny>>,
    ) -> PyResult<String> {
        let from = match text {
            None => format!("field={field}"),
            Some(function) => format!("text_function={}", described(function.bind(py), false)?),
        };
        Ok(match self {
            Ids::Tokenizer(encoder) if text.is_none() => encoder.describe(),
            Ids::Tokenizer(encoder) => format!("{} {from}", encoder.describe()),
            Ids::Function(function) => {
                let function = function.bind(py);
                format!("function={} answers={} {from}", described(function, false)?, answers(function)?)
            }
        })
    }
}

/// A line's text and its IDs, either of them from Python; then all lines come in order, one after the other.
pub(crate) struct LineEncoder {
    /// What distinguishes it from others.
    pub(crate) described: String,
    /// Where IDs come from.
    pub(crate) ids: Ids,
    /// Key of the text in a JSON line, or its column.
    pub(crate) field: String,
    /// A Python function from a line's bytes to its text, instead of the field.
    pub(crate) text: Option<Py<PyAny>>,
    /// Ids are below this, where the caller says so.
    pub(crate) vocab_size: Option<u64>,
    /// The ID that ends a document.
    pub(crate) eos: Option<i64>,
    /// Whether the function gives a mask with each text.
    pub(crate) masks: Masks,
}

/// Whether a function gives a loss mask with each text: what the first text says holds for all.
pub(crate) struct Masks {
    expected: bool,
    is_first: AtomicBool,
    is_other: AtomicBool,
}

impl Masks {
    /// Expects one with each text, or none with any.
    pub(crate) fn expected(expected: bool) -> Masks {
        Masks { expected, is_first: AtomicBool::new(true), is_other: AtomicBool::new(false) }
    }

    /// Whether the first text was not as expected.
    pub(crate) fn is_other(&self) -> bool {
        self.is_other.load(Ordering::Relaxed)
    }

    // Whether this text is as expected.
    fn check(&self, has_mask: bool) -> Result<()> {
        let is_first = self.is_first.swap(false, Ordering::Relaxed);
        if has_mask == self.expected {
            return Ok(());
        }
        self.is_other.store(is_first, Ordering::Relaxed);
        let what = if has_mask {
            "the tokenizer gave a mask with this text, and none with the texts before"
        } else {
            "the tokenizer gave no mask with this text, but one with the texts before"
        };
        Err(Error::config(what).hint(
            "give a mask with every text, (ids, [1] * len(ids)) where all of it is learned, or with none",
        ))
    }
}

impl LineEncoder {
    fn text_by_python(&self, function: &Py<PyAny>, line: &[u8]) -> Result<String> {
        Python::attach(|py| {
            let text = function.bind(py).call1((PyBytes::new(py, line),));
            text.and_then(|text| text.extract::<String>()).map_err(from_python)
        })
    }

    fn ids_of(&self, text: &str, ids: &mut windrow::prepare::Ids, tracks: &mut [Vec<u8>]) -> Result<()> {
        let function = match &self.ids {
            Ids::Tokenizer(encoder) => return encoder.encode_text(text, ids),
            Ids::Function(function) => function,
        };
        let given = Python::attach(|py| Given::of(function.bind(py), text))?;
        self.masks.check(given.learned.is_some())?;
        ids.extend(given.ids);
        for track in tracks {
            track.extend(given.learned.iter().flatten().map(|is_learned| loss_mask::stored(*is_learned)));
        }
        Ok(())
    }
}

impl Encode for LineEncoder {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        let Encoded { ids, tracks, room } = out;
        match &self.text {
            None => self.ids_of(&text_of(line, &self.field, place, room)?, ids, tracks),
            Some(function) => self.ids_of(&self.text_by_python(function, line)?, ids, tracks),
        }
    }

    fn takes(&self) -> Option<Takes<'_>> {
        self.text.is_none().then_some(Takes::Text(&self.field))
    }

    fn encode_text(&self, text: &str, out: &mut Encoded) -> Result<()> {
        self.ids_of(text, &mut out.ids, &mut out.tracks)
    }

    fn parallel(&self) -> bool {
        self.text.is_none() && matches!(self.ids, Ids::Tokenizer(_))
    }

    fn lock(&self) -> Option<windrow::dev::manifest::TokenizerLock> {
        match &self.ids {
            Ids::Tokenizer(encoder) => encoder.lock(),
            Ids::Function(_) => None,
        }
    }

    fn describe(&self) -> String {
        self.described.clone()
    }

    fn vocab_size(&self) -> Option<u64> {
        match &self.ids {
            Ids::Tokenizer(encoder) => encoder.vocab_size(),
            Ids::Function(_) => self.vocab_size,
        }
    }

    fn eos(&self) -> Option<i64> {
        self.eos
    }
}

/// What `progress` names: a function, `True` for the bar that this function of `windrow.progress` makes, `False` or `None` for
/// nobody. And whether it is that bar, which is closed at the end.
pub(crate) fn watched_by(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    bar: &str,
) -> PyResult<(Option<Py<PyAny>>, bool)> {
    let asked = progress.as_ref().and_then(|given| given.bind(py).cast::<PyBool>().ok()).map(|b| b.is_true());
    let function = match (asked, progress) {
        (Some(true), _) => Some(py.import("windrow.progress")?.call_method0(bar)?.unbind()),
        (Some(false), _) | (None, None) => None,
        (None, Some(function)) if function.bind(py).is_callable() => Some(function),
        (None, Some(other)) => {
            let class = class_of(other.bind(py))?;
            return Err(PyTypeError::new_err(format!("progress is a function, True or False, not {class}")));
        }
    };
    Ok((function, asked == Some(true)))
}

/// Looks for Ctrl-C, and reports to a Python function how far a task is.
pub(crate) struct Watcher {
    progress: Option<Py<PyAny>>,
    // What `progress=True` asked for.
    is_own_bar: bool,
    state: Mutex<Looking>,
}

struct Looking {
    looked: Instant,
    reported: Option<Instant>,
    // What Python raised; the task ends for it.
    raised: Option<PyErr>,
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Between two calls of a function that watches.
pub(crate) const BETWEEN_CALLS: Duration = Duration::from_millis(100);

impl Watcher {
    /// Tells what the argument `progress` of a function says.
    pub(crate) fn of(given: &Bound<'_, PyDict>) -> PyResult<Watcher> {
        Watcher::new(given.py(), argument(given, "progress")?)
    }

    /// Tells `progress` ten times a second and at the end: a function, `True` for a bar, `False` or `None` for nobody.
    pub(crate) fn new(py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Watcher> {
        let (progress, is_own_bar) = watched_by(py, progress, "bar")?;
        let state = Mutex::new(Looking { looked: Instant::now(), reported: None, raised: None });
        Ok(Watcher { progress, is_own_bar, state })
    }

    /// What the task gave, or what Python raised meanwhile.
    pub(crate) fn finish<T>(self, py: Python<'_>, result: Result<T>) -> PyResult<T> {
        if let (true, Some(bar)) = (self.is_own_bar, &self.progress) {
            bar.call_method0(py, "close")?;
        }
        let raised = self.state.into_inner().ok().and_then(|state| state.raised);
        match raised {
            Some(error) => Err(error),
            None => result.or_raise(py),
        }
    }

    fn note(&self, outcome: PyResult<()>) {
        if let (Err(error), Ok(mut state)) = (outcome, self.state.lock()) {
            state.raised.get_or_insert(error);
        }
    }
}

impl Watch for Watcher {
    fn progress(&self, now: Progress) {
        let Some(function) = &self.progress else { return };
        // Where no end is known there is none yet.
        let at_the_end = now.total_bytes > 0 && now.done_bytes >= now.total_bytes;
        let due = self.state.lock().is_ok_and(|mut state| {
            let due = at_the_end || state.reported.is_none_or(|reported| reported.elapsed() >= BETWEEN_CALLS);
            if due {
                state.reported = Some(Instant::now());
            }
            due && state.raised.is_none()
        });
        if due {
            self.note(Python::attach(|py| {
                let dict = PyDict::new(py);
                dict.set_item("done_bytes", now.done_bytes)?;
                dict.set_item("total_bytes", now.total_bytes)?;
                dict.set_item("records", now.records)?;
                function.bind(py).call1((dict,)).map(|_| ())
            }));
        }
    }

    fn cancelled(&self) -> bool {
        let due = self.state.lock().is_ok_and(|mut state| {
            let due = state.looked.elapsed() >= BETWEEN_LOOKS;
            if due {
                state.looked = Instant::now();
            }
            due
        });
        if due {
            self.note(Python::attach(check));
        }
        self.state.lock().is_ok_and(|state| state.raised.is_some())
    }
}
