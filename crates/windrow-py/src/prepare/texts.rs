//! Texts from a Python iterable: taken on the thread that asks for them, some at a time, each checked.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFrozenSet, PyIterator, PyList, PySet, PyString, PyTuple};
use windrow::prepare::Fields;
use windrow::{Error, Kind, Result};

use crate::python::interrupt::{Attempt, ends_program};
use crate::python::mapping::is_mapping;
use crate::python::row;
use crate::python::said::{class_of, said};

/// Bytes that are taken while Python is held, about, and for how long.
const MOST_BYTES: usize = 256 << 10;
const MOST_HELD: Duration = Duration::from_millis(100);

/// What is taken of a dict.
pub(crate) enum Wanted {
    /// The text in this key. An item may be the text itself.
    Text(String),
    /// The JSON of these.
    Json(Fields),
}

/// What is tokenised.
pub(crate) enum Inputs {
    /// A path, or a list or tuple of them.
    Paths(Vec<PathBuf>),
    /// Any other iterable.
    Texts(Texts),
}

impl Inputs {
    /// What was given. `wanted` is what is taken of a dict.
    ///
    /// # Errors
    /// `TypeError` for what is neither, and for what would give something else than its texts, or those in no order.
    pub(crate) fn of(given: &Bound<'_, PyAny>, wanted: Wanted) -> PyResult<Inputs> {
        let py = given.py();
        if let Some(path) = given.extract::<PathBuf>().attempt(py)? {
            return Ok(Inputs::Paths(vec![path]));
        }
        if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
            let path = |(number, item): (usize, PyResult<Bound<'_, PyAny>>)| {
                let item = item?;
                item.extract::<PathBuf>().attempt(py)?.ok_or_else(|| {
                    let class = class(&item);
                    PyTypeError::new_err(format!(
                        "inputs[{number}] is {class}; a list is of paths: {AS_ITERATOR}"
                    ))
                })
            };
            return given.try_iter()?.enumerate().map(path).collect::<PyResult<_>>().map(Inputs::Paths);
        }
        let class = class(given);
        let refused = |why: &str| Err(PyTypeError::new_err(format!("inputs is {class}{why}")));
        if given.is_instance_of::<PyBytes>() || given.is_instance_of::<PyByteArray>() {
            return refused("; a path is text, and so is each item of an iterable");
        }
        if given.is_instance_of::<PySet>() || given.is_instance_of::<PyFrozenSet>() {
            return refused(", which has no order; give iter(sorted(texts))");
        }
        if is_mapping(given)? {
            return refused(", which gives its keys; give one of its values");
        }
        if class.ends_with("Frame") {
            return refused(", which gives its columns; give the one with the text, such as frame[\"text\"]");
        }
        match given.try_iter() {
            Ok(items) => Ok(Inputs::Texts(Texts {
                items: items.unbind(),
                wanted,
                // Arrow, which is behind them, has each key in each row.
                keeps_nulls: !is_of_datasets(given),
                ready: VecDeque::new(),
                failed: None,
                taken: 0,
                is_over: false,
            })),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                refused("; expected a path, a list of paths, or an iterable of texts or dicts")
            }
            Err(error) => Err(error),
        }
    }
}

const AS_ITERATOR: &str = "texts are given as a generator or iter(list)";

/// An error about paths, which may be texts by mistake.
pub(crate) fn or_texts(error: Error, paths: &[PathBuf]) -> Error {
    let is_missing = |path: &PathBuf| !path.to_string_lossy().contains("://") && !path.exists();
    if !matches!(error.kind(), Kind::NotFound | Kind::Io) || !paths.iter().any(is_missing) {
        return error;
    }
    let hint = match error.hint_text() {
        Some(hint) => format!("{hint}; {AS_ITERATOR}"),
        None => AS_ITERATOR.to_string(),
    };
    error.hint(hint)
}

/// The texts of an iterable, in its order.
pub(crate) struct Texts {
    items: Py<PyIterator>,
    wanted: Wanted,
    keeps_nulls: bool,
    /// Texts that were taken and not asked for yet.
    ready: VecDeque<Result<String>>,
    /// What ended them.
    failed: Option<Error>,
    taken: u64,
    is_over: bool,
}

impl Iterator for Texts {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        self.peek();
        match self.ready.pop_front() {
            Some(text) => Some(text),
            None => self.failed.take().map(Err),
        }
    }
}

impl Texts {
    /// The text that comes next, where there is one.
    pub(crate) fn peek(&mut self) -> Option<&str> {
        if self.ready.is_empty() && !self.is_over {
            Python::attach(|py| self.take_some(py));
        }
        self.ready.front().and_then(|text| text.as_deref().ok())
    }

    fn take_some(&mut self, py: Python<'_>) {
        let mut items = self.items.bind(py).clone();
        let (mut bytes, began) = (0, Instant::now());
        while bytes < MOST_BYTES && (self.ready.is_empty() || began.elapsed() < MOST_HELD) {
            let Some(item) = items.next() else {
                self.is_over = true;
                return;
            };
            match item.map_err(|e| raised(py, e)).and_then(|item| self.text(&item)) {
                Ok(text) => {
                    // Empty ones take room too.
                    bytes += text.len() + size_of::<String>();
                    self.ready.push_back(Ok(text));
                    self.taken += 1;
                }
                // Whoever takes them may leave it out: others follow.
                Err(error) if error.kind() == Kind::Corrupt => {
                    self.ready.push_back(Err(error));
                    self.taken += 1;
                    return;
                }
                Err(error) => {
                    (self.failed, self.is_over) = (Some(error), true);
                    return;
                }
            }
        }
    }

    // The text of the next item.
    fn text(&self, item: &Bound<'_, PyAny>) -> Result<String> {
        let py = item.py();
        let corrupt = |what: String| Error::corrupt(what).record(self.taken);
        let of_text = |text: &Bound<'_, PyString>| {
            let is_half = |_| corrupt("the text holds a lone surrogate, which has no UTF-8".to_string());
            text.to_str().map(str::to_string).map_err(is_half).map_err(|e| {
                e.hint("text.encode(\"utf-8\", \"replace\").decode() replaces it; so does reading with errors=\"replace\"")
            })
        };
        let field = match &self.wanted {
            Wanted::Text(field) => field,
            Wanted::Json(fields) => return self.json(item, fields).map_err(|e| e.record(self.taken)),
        };
        if let Ok(text) = item.cast::<PyString>() {
            return of_text(text);
        }
        if !is_mapping(item).map_err(|e| raised(py, e))? {
            let error =
                corrupt(format!("the item is {}; expected text, or a dict with {field:?}", class(item)));
            let path = item.extract::<PathBuf>().attempt(py).map_err(|e| raised(py, e))?;
            return Err(match path {
                Some(_) => error.hint("paths are given as a list: inputs=list(paths)"),
                None if item.is_none() => error.hint(NO_TEXT),
                None => error,
            });
        }
        let found = inside(item, field).map_err(|e| raised(py, e))?;
        let Some(found) = found else {
            let error = corrupt(format!("no {field:?} in the dict")).field(field.as_str());
            return Err(error.hint(format!("it has {}; choose one with text_field", keys(item)?)));
        };
        let Ok(text) = found.cast::<PyString>() else {
            let error = corrupt(format!("{field:?} holds {}; expected text", class(&found)));
            let error = error.field(field.as_str());
            return Err(if found.is_none() { error.hint(NO_TEXT) } else { error });
        };
        of_text(text).map_err(|e| e.field(field.as_str()))
    }

    // The JSON of some of the next item.
    fn json(&self, item: &Bound<'_, PyAny>, fields: &Fields) -> Result<String> {
        let py = item.py();
        let names = || fields.any_of.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ");
        if !is_mapping(item).map_err(|e| raised(py, e))? {
            return Err(Error::corrupt(format!(
                "the item is {}; expected a dict with {}",
                class(item),
                names()
            )));
        }
        let is_there = |path: &String| inside(item, path).map(|found| found.is_some());
        let found = fields.any_of.iter().map(is_there).collect::<PyResult<Vec<_>>>();
        if !found.map_err(|e| raised(py, e))?.contains(&true) {
            let error = Error::corrupt(format!("no {} in the dict", names())).field(fields.any_of[0].clone());
            return Err(error.hint(format!("it has {}; choose one with {}", keys(item)?, fields.option)));
        }
        fields.json(self.keeps_nulls, |path| {
            let Some(found) = inside(item, path).map_err(|e| raised(py, e))? else { return Ok(None) };
            row::value_of(&found).map(Some).map_err(|e| {
                if ends_program(py, &e) {
                    raised(py, e)
                } else {
                    Error::corrupt(format!("{path:?} cannot be JSON: {}", e.value(py))).field(path)
                }
            })
        })
    }
}

const NO_TEXT: &str = "leave such items out, or give an empty text";

// The first keys of a dict, for hints.
fn keys(mapping: &Bound<'_, PyAny>) -> Result<String> {
    let first = || {
        mapping
            .call_method0("keys")?
            .try_iter()?
            .take(10)
            .map(|key| said(&key?))
            .collect::<PyResult<Vec<_>>>()
    };
    let names = first().attempt(mapping.py()).map_err(|e| raised(mapping.py(), e))?;
    Ok(names.unwrap_or_default().join(", "))
}

// Whether it is a data set of `datasets`.
fn is_of_datasets(given: &Bound<'_, PyAny>) -> bool {
    let module = given.get_type().getattr("__module__").and_then(|module| module.extract::<String>());
    module.is_ok_and(|module| module.split('.').next() == Some("datasets"))
}

// What is at a path of keys: keys may have dots themselves.
fn inside<'py>(of: &Bound<'py, PyAny>, path: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(found) = member(of, path)? {
        return Ok(Some(found));
    }
    for (dot, _) in path.rmatch_indices('.') {
        if let Some(inner) = member(of, &path[..dot])?
            && is_mapping(&inner)?
            && let Some(found) = inside(&inner, &path[dot + 1..])?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn member<'py>(of: &Bound<'py, PyAny>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match of.cast::<PyDict>() {
        Ok(dict) => dict.get_item(key),
        Err(_) if of.contains(key)? => of.get_item(key).map(Some),
        Err(_) => Ok(None),
    }
}

/// An exception of the iterable as the cause of an error: it leaves windrow as it came. What is meant to end the program does so at once.
fn raised(py: Python<'_>, error: PyErr) -> Error {
    let kind = if ends_program(py, &error) { Kind::Interrupted } else { Kind::Config };
    Error::new(kind, "the iterable failed").caused_by(error)
}

fn class(of: &Bound<'_, PyAny>) -> String {
    class_of(of).unwrap_or_else(|_| "an object".to_string())
}
