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
use crate::python::given::{given, stores};
use crate::python::json;
use crate::python::options::{Count, Id};
use crate::python::row;
use crate::python::said::class_of;

given! {
    struct Given<'py> {
        out: PathBuf,
        records: Bound<'py, PyAny>,
        to: String,
        dtype: Option<AnyDType>,
        eos: Option<Id>,
        vocab_size: Option<Count>,
        append: bool,
        overwrite: bool,
        fsync: bool,
    }
}

/// Writes records; the report as a dict.
#[pyfunction]
pub(crate) fn _write<'py>(py: Python<'py>, given: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let (stores, watcher) = (stores(given)?, Watcher::of(given)?);
    let (own, asked) = (own_options::given(given)?, Given::of(given)?);
    let format = own_options::writer(given, "write", &asked.to, &own)?;
    let Given { out, records, to, .. } = asked;
    let asked = WriteOptions {
        dtype: asked.dtype.map(|d| d.0),
        eos: asked.eos.map(|id| id.named(py, "eos")).transpose()?,
        vocab_size: asked.vocab_size.map(|v| v.0),
        append: asked.append,
        overwrite: asked.overwrite,
        // No records are asked for by an empty list as well.
        allow_empty: true,
        fsync: asked.fsync,
        ..WriteOptions::default()
    };
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
