//! A line per record, `{"sequence": […], …extras}`, or the object that a row is; and the manifest of them.

use std::fmt::Write;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde_json::Value;
use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, no_records, not_json,
};
use windrow_core::manifest::Manifest;
use windrow_core::output::{Growing, write_manifest_beside};
use windrow_core::values::copy_values;
use windrow_core::{Buffer, DType, Decode, Element, Error, Result, Row, Values};

use super::{SeriesJsonLines, json};
use crate::json_lines::NAME;

const SEQUENCE: &str = "sequence";

/// A line per record.
pub(super) struct WriteLines;

impl WriteFormat for WriteLines {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            holds_rows: true,
            keeps_metadata: true,
            // A digit, a comma and a space.
            bytes_per_number: Some(3),
            ..WriteInfo::of(SeriesJsonLines.name(), Target::File(&[".jsonl", ".ndjson"]))
        }
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        Ok(Box::new(Writer {
            work: begin.work.to_path_buf(),
            name: begin.name.to_string(),
            file: Growing::create(begin.work.join(begin.name))?,
            dtype: begin.dtype,
            channels: begin.channels,
            are_rows: begin.are_rows,
            records: 0,
            fsync: begin.fsync,
            line: String::new(),
        }))
    }
}

struct Writer {
    work: PathBuf,
    name: String,
    file: Growing,
    dtype: DType,
    channels: Option<usize>,
    are_rows: bool,
    records: u64,
    fsync: bool,
    line: String,
}

impl RecordWriter for Writer {
    fn takes_parts(&self) -> bool {
        false
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        self.records += 1;
        let line = &mut self.line;
        line.clear();
        line.push_str("{\"sequence\": ");
        numbers(record, self.dtype, self.channels, line)?;
        for (key, value) in record.extras.iter() {
            if key == SEQUENCE {
                return Err(Error::config(format!("a record has {key:?} beside its numbers"))
                    .record(record.number)
                    .field(key));
            }
            // Writing to a string cannot fail.
            let _ = write!(line, ", {}: {}", Value::from(key), record.json(key, value)?);
        }
        line.push_str("}\n");
        self.file.write(line.as_bytes())
    }

    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        self.records += 1;
        self.line.clear();
        json::row(row, &mut self.line).map_err(|e| e.record(number))?;
        self.line.push('\n');
        self.file.write(self.line.as_bytes())
    }

    fn add_json(&mut self, number: u64, text: &str) -> Result<()> {
        serde_json::from_str::<IgnoredAny>(text).map_err(|e| not_json(number).caused_by(e))?;
        self.records += 1;
        self.line.clear();
        // Between its words only: a line break within a text is escaped.
        self.line.extend(text.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
        self.line.push('\n');
        self.file.write(self.line.as_bytes())
    }

    fn finish(self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        if self.records == 0 {
            return Err(no_records());
        }
        if self.are_rows {
            manifest.format = NAME.to_string();
        }
        let bytes = self.file.size();
        let file = self.file.finish(self.fsync)?;
        let manifest = Manifest { records: Some(self.records), ..manifest };
        let manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}

fn numbers(record: &Stored<'_>, dtype: DType, channels: Option<usize>, line: &mut String) -> Result<()> {
    // Whole numbers and float64 keep all their digits; narrower floats are written with as few as name them.
    let wide = match dtype {
        DType::U64 => DType::U64,
        dtype if dtype.is_integer() => DType::I64,
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let count = record.bytes.len() / dtype.size();
    let mut out = Buffer::zeroed(count * wide.size());
    let values =
        Values { bytes: record.bytes, element: Element::little(dtype), channels: 1, decode: Decode::Plain };
    copy_values(&values, 0, out.bytes_mut(), wide)?;
    match wide {
        DType::U64 => {
            let numbers = bytemuck::cast_slice::<_, u64>(out.bytes());
            if let Some(number) = numbers.iter().find(|x| i64::try_from(**x).is_err()) {
                return Err(Error::config(format!("{number} is beyond int64, as which JSON is read"))
                    .record(record.number)
                    .hint("npy, npz and shards hold uint64"));
            }
            list(numbers, channels, line, |x, l| write!(l, "{x}"))
        }
        DType::I64 => {
            list(bytemuck::cast_slice::<_, i64>(out.bytes()), channels, line, |x, l| write!(l, "{x}"))
        }
        DType::F64 => list(bytemuck::cast_slice::<_, f64>(out.bytes()), channels, line, |x, l| {
            float(*x, format_args!("{x:?}"), l)
        }),
        _ => list(bytemuck::cast_slice::<_, f32>(out.bytes()), channels, line, |x, l| {
            float(f64::from(*x), format_args!("{x:?}"), l)
        }),
    }
    Ok(())
}

// JSON has no words for these; those are Python's, which readers of series know.
fn float(x: f64, digits: std::fmt::Arguments<'_>, line: &mut String) -> std::fmt::Result {
    match x {
        x if x.is_nan() => line.write_str("NaN"),
        f64::INFINITY => line.write_str("Infinity"),
        f64::NEG_INFINITY => line.write_str("-Infinity"),
        _ => line.write_fmt(digits),
    }
}

fn list<T>(
    numbers: &[T],
    channels: Option<usize>,
    line: &mut String,
    word: impl Fn(&T, &mut String) -> std::fmt::Result,
) {
    let row = |numbers: &[T], line: &mut String| {
        line.push('[');
        for (i, x) in numbers.iter().enumerate() {
            line.push_str(if i == 0 { "" } else { ", " });
            // Writing to a string cannot fail.
            let _ = word(x, line);
        }
        line.push(']');
    };
    let Some(channels) = channels else { return row(numbers, line) };
    line.push('[');
    for (i, step) in numbers.chunks(channels.max(1)).enumerate() {
        line.push_str(if i == 0 { "" } else { ", " });
        row(step, line);
    }
    line.push(']');
}
