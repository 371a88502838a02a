//! What a record of bytes holds, where its format does not say: bytes, text, JSON, or a tf.train.Example.

mod beside;
mod example;
mod write;
mod write_example;

use std::ops::Range;

use windrow_core::format::{Options, Payload, Probe};
use windrow_core::source::SharedSource;
use windrow_core::{Array, DType, Error, Place, Result, Row, Value};

pub(crate) use self::write::{Layout, begin};
use crate::json_value::json_value;
use windrow_core::format::columns::{self, Column, Found, Kind};
use windrow_core::format::data_files::DataFiles;

/// The name of the column that is the record itself.
const WHOLE: &str = "";

/// Records of bytes.
pub(crate) trait Blobs: Send + Sync + 'static {
    /// The name of the format.
    const FORMAT: &'static str;

    /// Their files.
    fn files(&self) -> &DataFiles;

    /// How many there are.
    fn count(&self) -> u64;

    /// The bytes of a record, expanded where it is compressed.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` with the place of the record; `Io`.
    fn blob<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]>;

    /// How many bytes [`Blobs::blob`] gives, without reading them where that is known.
    ///
    /// # Errors
    /// As [`Blobs::blob`].
    fn size(&self, record: u64) -> Result<u64>;

    /// The file of a record, its number, and the bytes of it.
    ///
    /// # Errors
    /// As [`Blobs::blob`].
    fn place(&self, record: u64) -> Result<(usize, Range<u64>)>;

    /// Asks for the bytes of a record, without waiting.
    fn prefetch(&self, record: u64) {
        if let Ok((file, place)) = self.place(record) {
            self.files().prefetch(file, place.start, place.end - place.start);
        }
    }
}

/// Opens records of bytes as what `payload=` says they hold, else as examples where the first one is one, else as bytes.
///
/// # Errors
/// `Config` for options that do not fit each other; what reading the first record says.
pub(crate) fn open<B: Blobs>(blobs: B, probe: &Probe, options: &Options) -> Result<SharedSource> {
    let mut options = options.clone();
    let beside = beside::of_each(probe, B::FORMAT, blobs.files().count(), &options)?;
    let written = probe.manifest.as_ref().filter(|written| written.format == B::FORMAT);
    if let Some(written) = written.or(beside.as_ref()) {
        write::as_written(written, &mut options);
    }
    let options = &options;
    let is_said = options.payload.is_some();
    let payload = match options.payload {
        Some(payload) => payload,
        None if options.dtype.is_some() => Payload::Bytes,
        // Of no records any column may be asked for.
        None if blobs.count() == 0 && (options.column.is_some() || options.columns.is_some()) => {
            Payload::Example
        }
        None => guessed(&blobs)?,
    };
    let records = Records::new(blobs, (payload, is_said), options).map_err(|e| e.or_at(probe.display()))?;
    columns::open(records, probe, options)
}

fn guessed(blobs: &impl Blobs) -> Result<Payload> {
    if blobs.count() == 0 {
        return Ok(Payload::Bytes);
    }
    let mut scratch = Vec::new();
    let first = blobs.blob(0, &mut scratch)?;
    if example::is_one(first).map_err(|e| at(blobs, 0, e))? {
        Ok(Payload::Example)
    } else {
        Ok(Payload::Bytes)
    }
}

// An error with the place of a record.
fn at(blobs: &impl Blobs, record: u64, error: Error) -> Error {
    match blobs.place(record) {
        Ok((file, place)) => {
            let byte = error.place().byte.map_or(place.start, |byte| place.start + byte);
            error.at(blobs.files().name(file)).record(record).byte(byte)
        }
        Err(_) => error.record(record),
    }
}

/// Records with the values that they hold.
struct Records<B> {
    blobs: B,
    payload: Payload,
    /// Whether it was declared; else the first record decides.
    is_said: bool,
    columns: Vec<Column>,
    /// Which of them are numbers, where one was asked for; the other column is then the rest of the record.
    numbers: Option<usize>,
}

impl<B: Blobs> Records<B> {
    fn new(blobs: B, (payload, is_said): (Payload, bool), options: &Options) -> Result<Records<B>> {
        let holds = match payload {
            Payload::Bytes => "bytes",
            Payload::Text => "text",
            Payload::Json => "JSON",
            Payload::Example => "tf.train.Example",
        };
        let column = |name: &str, kind| {
            let (name, holds) = (name.to_string(), holds.to_string());
            Column { name, holds, exact: String::new(), kind }
        };
        let has_names = matches!(payload, Payload::Json | Payload::Example);
        if let Some(name) = options.columns.iter().flatten().chain(&options.column).find(|_| !has_names) {
            return Err(Error::config(format!("the column {name:?} was asked for, but records are {holds}"))
                .field("payload")
                .hint("@payload=json@ or @payload=example@ has columns"));
        }
        let (columns, numbers) = match (&options.column, &options.columns, options.dtype) {
            (Some(name), ..) => {
                (vec![column(name, Kind::Array(None, None)), column(WHOLE, Kind::Value)], Some(0))
            }
            (None, Some(names), _) => (names.iter().map(|name| column(name, Kind::Value)).collect(), None),
            (None, None, Some(dtype)) if payload == Payload::Bytes => {
                (vec![column(WHOLE, Kind::Array(Some(dtype), None))], Some(0))
            }
            _ => (vec![column(WHOLE, Kind::Value)], None),
        };
        Ok(Records { blobs, payload, is_said, columns, numbers })
    }

    fn at(&self, record: u64, error: Error) -> Error {
        at(&self.blobs, record, error)
    }

    // All that a record holds.
    fn whole(&self, record: u64) -> Result<Value> {
        let mut scratch = Vec::new();
        let bytes = self.blobs.blob(record, &mut scratch)?;
        let value = match self.payload {
            Payload::Bytes => Ok(Value::Bytes(bytes.to_vec())),
            Payload::Text => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::Text(text.to_string())),
                Err(e) => Err(Error::corrupt("expected UTF-8 text").byte(e.valid_up_to() as u64)),
            },
            Payload::Json => json_value(bytes, &Place::default()),
            Payload::Example => example::parse(bytes, self.is_said).map(Value::Struct),
        };
        value.map_err(|e| self.at(record, e))
    }

    fn named(&self, record: u64) -> Result<Row> {
        match self.whole(record)? {
            Value::Struct(row) => Ok(row),
            other => Err(self.at(
                record,
                Error::corrupt(format!("expected an object with the columns, found {}", other.shown())),
            )),
        }
    }

    // The array that `column=` names.
    fn numbers_of(&self, record: u64) -> Result<Array> {
        let name = &self.columns[0].name;
        let mut row = self.named(record)?;
        let wrong = |what: String| self.at(record, Error::corrupt(what)).field(name.clone());
        match row.remove(name) {
            Some(Value::Array(array)) => Ok(array),
            Some(Value::List(values)) => array_of_list(&values).ok_or_else(|| {
                wrong("expected a list of numbers".to_string()).hint("@columns@ gives rows with any values")
            }),
            Some(other) => Err(wrong(format!("expected numbers, found {}", other.shown()))),
            None => Err(wrong(format!("expected the column {name:?}, found none"))
                .hint(format!("columns: {}", row.names().collect::<Vec<_>>().join(", ")))),
        }
    }
}

/// A list of numbers as an array: int64 when all are whole, else float64.
pub(crate) fn array_of_list(values: &[Value]) -> Option<Array> {
    let whole: Option<Vec<i64>> = values.iter().map(Value::as_i64).collect();
    let (dtype, bytes): (DType, Vec<u8>) = match whole {
        Some(whole) => (DType::I64, whole.iter().flat_map(|number| number.to_le_bytes()).collect()),
        None => {
            let floats: Option<Vec<f64>> = values
                .iter()
                .map(|value| match value {
                    Value::F64(number) => Some(*number),
                    Value::Null => Some(f64::NAN),
                    other => other.as_i64().map(|number| number as f64),
                })
                .collect();
            (DType::F64, floats?.iter().flat_map(|number| number.to_le_bytes()).collect())
        }
    };
    Some(Array { dtype, shape: vec![values.len() as u64], bytes })
}

impl<B: Blobs> columns::Samples for Records<B> {
    fn format(&self) -> &'static str {
        B::FORMAT
    }

    fn count(&self) -> u64 {
        self.blobs.count()
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn have_own_names(&self) -> bool {
        matches!(self.payload, Payload::Json | Payload::Example)
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        self.check(sample)?;
        // The metadata beside numbers: all that the record holds besides.
        if self.numbers == Some(0) && columns != [0] {
            if columns.is_empty() {
                return Ok(Row::new());
            }
            let mut row = self.named(sample)?;
            row.remove(&self.columns[0].name);
            return Ok(row);
        }
        if let [Column { name, .. }] = self.columns.as_slice()
            && name == WHOLE
        {
            return Ok(Row::from_iter([(WHOLE.to_string(), self.whole(sample)?)]));
        }
        let mut found = self.named(sample)?;
        let value = |column: &usize| {
            let name = &self.columns[*column].name;
            (name.clone(), found.remove(name).unwrap_or(Value::Null))
        };
        Ok(columns.iter().map(value).collect())
    }

    fn array(&self, sample: u64, column: usize, _dtype: Option<DType>) -> Result<Found> {
        self.check(sample)?;
        let (file, _) = self.blobs.place(sample)?;
        if let Kind::Array(Some(dtype), _) = &self.columns[column].kind {
            // A view asks for all lengths: no record is read for them.
            let (size, width) = (self.blobs.size(sample)?, dtype.size() as u64);
            return match size % width {
                0 => Ok(Found {
                    dtype: *dtype,
                    shape: columns::Shape::from_slice(&[size / width]),
                    file,
                    start: 0,
                }),
                _ => Err(self.at(sample, Error::corrupt(format!("{size} bytes, expected {dtype} numbers")))),
            };
        }
        let array = self.numbers_of(sample)?;
        Ok(Found { dtype: array.dtype, shape: array.shape.into(), file, start: 0 })
    }

    fn bytes<'a>(
        &'a self,
        sample: u64,
        _column: usize,
        _found: &Found,
        start: u64,
        size: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let all = match &self.columns[0].kind {
            Kind::Array(Some(_), _) => self.blobs.blob(sample, scratch)?,
            _ => {
                *scratch = self.numbers_of(sample)?.bytes;
                scratch.as_slice()
            }
        };
        columns::part(all, start, size, sample)
    }

    fn locate(&self, sample: u64, _column: Option<usize>) -> Result<(String, Range<u64>)> {
        let (file, place) = self.blobs.place(sample)?;
        Ok((self.blobs.files().name(file), place))
    }

    fn prefetch(&self, sample: u64) {
        self.blobs.prefetch(sample);
    }

    fn files(&self) -> &DataFiles {
        self.blobs.files()
    }

    fn fingerprint(&self, of: &str) -> Result<u64> {
        let of = format!("{of} {:?}", self.payload);
        self.blobs.files().fingerprint(&[B::FORMAT.as_bytes(), of.as_bytes()])
    }
}
