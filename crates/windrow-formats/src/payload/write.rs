//! Records of bytes into one file: rows as examples or JSON, numbers as a feature or as they are, and how they open again.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use windrow_core::format::write::{Begin, RecordWriter, Stored, TO_COLUMN_HINT, Written, no_records};
use windrow_core::format::{Options, Payload};
use windrow_core::manifest::Manifest;
use windrow_core::output::{Growing, write_manifest_beside};
use windrow_core::values::copy_values;
use windrow_core::{Array, DType, Decode, Element, Error, Result, Row, Value, Values};

use super::write_example;

/// The only column of a row that is one value, see `convert`.
const VALUE: &str = "value";
/// Options in a manifest: what a record holds, and which feature of it is its numbers.
pub(super) const PAYLOAD: &str = "payload";
pub(super) const COLUMN: &str = "column";

/// How records lie in a file.
pub(crate) trait Layout: Send {
    /// Appends a record.
    ///
    /// # Errors
    /// `Config` for what the format does not hold; `Io`.
    fn put(&mut self, record: &[u8], file: &mut Growing) -> Result<()>;

    /// Appends what is behind the last record.
    ///
    /// # Errors
    /// `Io`.
    fn end(&mut self, file: &mut Growing) -> Result<()>;
}

/// Writes records into a file of `layout`; rows become `rows`, which is [`Payload::Example`] or [`Payload::Json`], and numbers
/// the feature `column` of examples, or bytes where none is named.
///
/// # Errors
/// `Config` for records of several channels; `Io`.
pub(crate) fn begin(
    begin: &Begin<'_>,
    what: &'static str,
    rows: Payload,
    column: Option<String>,
    layout: impl Layout + 'static,
) -> Result<Box<dyn RecordWriter>> {
    if let Some(channels) = begin.channels {
        let mut error =
            Error::config(format!("{what} holds records [T], and these have {channels} channels"))
                .hint("arrow, parquet, mds, webdataset, litdata and npz hold records [T, C]");
        if let Some(column) = &column {
            error = error.field(column);
        }
        return Err(error);
    }
    Ok(Box::new(Writer {
        work: begin.work.to_path_buf(),
        name: begin.name.to_string(),
        what,
        file: Growing::create(begin.work.join(begin.name))?,
        layout,
        rows,
        column,
        payload: None,
        dtype: begin.dtype,
        records: 0,
        fsync: begin.fsync,
        warned: false,
    }))
}

/// What the manifest says of how records were written, where nothing else is asked for.
pub(super) fn as_written(manifest: &Manifest, options: &mut Options) {
    let text = |name: &str| manifest.options.get(name).and_then(Json::as_str).map(str::to_string);
    let written = text(PAYLOAD).and_then(|text| serde_json::from_value::<Payload>(json!(text)).ok());
    let is_other = options.payload.is_some() && options.payload != written;
    if is_other || options.dtype.is_some() {
        return;
    }
    options.payload = written;
    match manifest.dtype {
        _ if options.columns.is_some() || options.column.is_some() => {}
        Some(_) if text(COLUMN).is_some() => options.column = text(COLUMN),
        dtype => options.dtype = dtype,
    }
}

struct Writer<L> {
    work: PathBuf,
    name: String,
    what: &'static str,
    file: Growing,
    layout: L,
    rows: Payload,
    column: Option<String>,
    /// What records hold, known from the first.
    payload: Option<Payload>,
    dtype: DType,
    records: u64,
    fsync: bool,
    warned: bool,
}

impl<L: Layout> Writer<L> {
    fn put(&mut self, number: u64, payload: Payload, record: &[u8]) -> Result<()> {
        if *self.payload.get_or_insert(payload) != payload {
            return Err(Error::config("a record of another kind than the first")
                .record(number)
                .hint("records are all bytes, all text, or all rows"));
        }
        self.layout.put(record, &mut self.file).map_err(|e| e.record(number))?;
        self.records += 1;
        if self.fsync {
            self.file.begin_sync();
        }
        Ok(())
    }

    fn put_row(&mut self, number: u64, row: &Row) -> Result<()> {
        if row.is_empty() {
            return Err(Error::config("a row without columns").record(number));
        }
        let mut record = Vec::new();
        match self.rows {
            Payload::Example => write_example::write(row, &mut record).map_err(|e| e.record(number))?,
            _ => serde_json::to_writer(&mut record, &object(row).map_err(|e| e.record(number))?)
                .map_err(|e| Error::config("no JSON of a row").record(number).caused_by(e))?,
        }
        self.put(number, self.rows, &record)
    }
}

impl<L: Layout> RecordWriter for Writer<L> {
    fn takes_parts(&self) -> bool {
        false
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        let Some(column) = &self.column else {
            if !record.extras.is_empty() && !self.warned {
                windrow_core::warn!(
                    "{} holds the numbers alone: the metadata of records is left out",
                    self.what
                );
                self.warned = true;
            }
            return self.put(record.number, Payload::Bytes, record.bytes);
        };
        let array = record.array(self.dtype, None, record.bytes.to_vec());
        let row = record.row(column, array, TO_COLUMN_HINT)?;
        self.put_row(record.number, &row)
    }

    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        match (row.len(), row.get(VALUE)) {
            (1, Some(Value::Bytes(bytes))) => self.put(number, Payload::Bytes, bytes),
            (1, Some(Value::Text(text))) => self.put(number, Payload::Text, text.as_bytes()),
            _ => self.put_row(number, row),
        }
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        let Some(payload) = self.payload else { return Err(no_records()) };
        self.layout.end(&mut self.file)?;
        let bytes = self.file.size();
        let file = self.file.finish(self.fsync)?;
        manifest.records = Some(self.records);
        manifest.options.insert(PAYLOAD.to_string(), json!(payload));
        if let Some(column) = self.column.filter(|_| manifest.dtype.is_some()) {
            manifest.options.insert(COLUMN.to_string(), json!(column));
        }
        let manifest = write_manifest_beside(&self.work, &self.name, manifest, file, self.fsync)?;
        Ok(Written { files: 1, bytes, manifest })
    }
}

// A row as a JSON object, arrays as lists.
fn object(row: &Row) -> Result<Json> {
    let values = row.iter().map(|(name, value)| {
        let json = of_value(value).ok_or_else(|| {
            Error::config(format!("{}, which JSON does not hold", value.shown()))
                .field(name)
                .hint("leave the column out, or write another format")
        });
        Ok((name.to_string(), json?))
    });
    values.collect::<Result<serde_json::Map<_, _>>>().map(Json::Object)
}

fn of_value(value: &Value) -> Option<Json> {
    match value {
        Value::Array(array) => of_array(array),
        Value::List(values) => Some(Json::Array(values.iter().map(of_value).collect::<Option<_>>()?)),
        Value::Struct(row) => {
            let values = row.iter().map(|(name, value)| Some((name.to_string(), of_value(value)?)));
            Some(Json::Object(values.collect::<Option<_>>()?))
        }
        other => other.to_json(),
    }
}

// Numbers as nested lists; `None` for NaN and the infinities.
fn of_array(array: &Array) -> Option<Json> {
    let numbers: Option<Vec<Json>> = match array.dtype {
        DType::Bool => Some(array.bytes.iter().map(|byte| json!(*byte != 0)).collect()),
        DType::U64 => {
            Some(array.bytes.as_chunks().0.iter().map(|number| json!(u64::from_le_bytes(*number))).collect())
        }
        dtype if dtype.is_integer() => {
            let numbers = wide(array, DType::I64)?;
            Some(numbers.as_chunks().0.iter().map(|number| json!(i64::from_le_bytes(*number))).collect())
        }
        _ => {
            let number = |number: &[u8; 8]| {
                serde_json::Number::from_f64(f64::from_le_bytes(*number)).map(Json::Number)
            };
            wide(array, DType::F64)?.as_chunks().0.iter().map(number).collect()
        }
    };
    let mut values = numbers?;
    for axis in array.shape.iter().skip(1).rev() {
        // An axis of nothing has as many lists as the axes before it say: none of them is in the bytes.
        let axis = usize::try_from(*axis).ok().filter(|axis| *axis > 0)?;
        values = values.chunks(axis).map(|part| Json::Array(part.to_vec())).collect();
    }
    if array.shape.is_empty() { values.pop() } else { Some(Json::Array(values)) }
}

fn wide(array: &Array, to: DType) -> Option<Vec<u8>> {
    let element = Element::little(array.dtype);
    let values = Values { bytes: &array.bytes, element, channels: 1, decode: Decode::Plain };
    let mut out = vec![0; array.bytes.len() / array.dtype.size() * 8];
    copy_values(&values, 0, &mut out, to).ok()?;
    Some(out)
}
