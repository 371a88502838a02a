//! Records and rows as an Arrow stream. The first rows decide what the columns hold, and rows are written in batches, so that
//! memory stays bounded.

mod column;
mod flat;
mod message;
mod types;

use windrow_core::format::write::{Begin, Stored, TO_COLUMN_HINT, no_records};
use windrow_core::{DType, Error, Result, Row, Value};

use self::column::{Column, unknown};
use self::message::Put;
use self::types::{Field, add_columns, columns_of, of_numbers};

/// Rows of a batch, at most: what `datasets` writes.
const MOST_ROWS: usize = 1000;
/// Bytes of a batch, but for a row that is larger.
const BATCH: usize = 16 << 20;
/// Bytes of the first rows, which wait until one of them says what each column holds.
const MOST_WAITING: usize = 64 << 20;

/// Writes records of numbers, or rows, as a stream.
pub struct StreamWriter {
    /// The column of the numbers, where records are numbers.
    numbers: Option<Numbers>,
    /// Whether structs must have fields.
    needs_fields: bool,
    fields: Vec<Field>,
    /// The first rows with their numbers, until the columns are decided.
    first: Option<Vec<(u64, Row)>>,
    /// The batch that grows.
    columns: Vec<Column>,
    rows: usize,
    /// Bytes of what waits, or of the batch.
    size: usize,
    records: u64,
}

struct Numbers {
    column: String,
    dtype: DType,
    channels: Option<usize>,
    /// Of the record that is not complete.
    bytes: Vec<u8>,
}

impl StreamWriter {
    /// What `begin` says is written; numbers go into the column of this name.
    ///
    /// # Errors
    /// `Config` for a dtype that Arrow does not have.
    pub fn new(begin: &Begin<'_>, column: &str) -> Result<StreamWriter> {
        let (mut fields, mut numbers) = (Vec::new(), None);
        if !begin.are_rows {
            let of = of_numbers(begin.dtype, begin.channels)?;
            fields.push(Field { name: column.to_string(), of });
            let (dtype, channels) = (begin.dtype, begin.channels);
            numbers = Some(Numbers { column: column.to_string(), dtype, channels, bytes: Vec::new() });
        }
        let first = Some(Vec::new());
        Ok(StreamWriter {
            numbers,
            needs_fields: false,
            fields,
            first,
            columns: Vec::new(),
            rows: 0,
            size: 0,
            records: 0,
        })
    }

    /// Gives a field to structs without fields, for formats that cannot hold them.
    pub fn with_fields_in_structs(self) -> StreamWriter {
        StreamWriter { needs_fields: true, ..self }
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Takes the next record of numbers, or the next part of one; `put` takes what is complete of the stream.
    ///
    /// # Errors
    /// As [`StreamWriter::add_row`].
    pub fn add(&mut self, record: &Stored<'_>, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(numbers) = &mut self.numbers else { return Err(Error::config("numbers among rows")) };
        if record.is_first && i32::try_from(record.len).is_err() {
            return Err(Error::config(format!(
                "a record of {} values; a list of Arrow holds {} here",
                record.len,
                i32::MAX
            ))
            .record(record.number)
            .field(&numbers.column)
            .hint("open a token stream with @document_eos@: each document is a record then"));
        }
        numbers.bytes.extend_from_slice(record.bytes);
        if !record.is_last {
            return Ok(());
        }
        let array = record.array(numbers.dtype, numbers.channels, std::mem::take(&mut numbers.bytes));
        let row = record.row(&numbers.column, array, TO_COLUMN_HINT)?;
        self.add_row(record.number, row, put)
    }

    /// Takes the next row; `put` takes what is complete of the stream.
    ///
    /// # Errors
    /// `Config` naming the column and record that a column does not hold; what `put` says.
    pub fn add_row(&mut self, number: u64, row: Row, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if row.is_empty() {
            return Err(Error::config("a row without columns").record(number));
        }
        self.records += 1;
        let size = row.iter().map(|(_, value)| size_of(value)).sum::<usize>();
        let Some(first) = &mut self.first else { return self.put_row(number, &row, size, put) };
        let columns = columns_of(&row).map_err(|e| e.record(number))?;
        add_columns(&mut self.fields, columns).map_err(|e| e.record(number))?;
        first.push((number, row));
        self.size += size;
        let is_unknown = || self.fields.iter().any(|field| field.of.is_unknown());
        let is_enough = first.len() >= MOST_ROWS || self.size >= BATCH;
        if is_enough && (self.size >= MOST_WAITING || !is_unknown()) { self.begin(put) } else { Ok(()) }
    }

    /// Writes the rest and the mark of the end.
    ///
    /// # Errors
    /// `Config` where no row defined the columns; what `put` says.
    pub fn finish(&mut self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.fields.is_empty() {
            return Err(no_records());
        }
        self.begin(put)?;
        self.put_batch(put)?;
        message::end(put)
    }

    // Decides what the columns hold, and writes the rows that waited for it.
    fn begin(&mut self, put: Put<'_>) -> Result<()> {
        let Some(first) = self.first.take() else { return Ok(()) };
        let empty = self.fields.iter().find(|field| self.needs_fields && field.of.has_empty_struct());
        if let Some(field) = empty {
            return Err(Error::config("a struct without fields, which Parquet does not hold")
                .record(first.first().map_or(0, |(number, _)| *number))
                .field(&field.name)
                .hint("leave the column out"));
        }
        message::schema(&self.fields, put)?;
        self.empty_batch();
        for (number, row) in first {
            let size = row.iter().map(|(_, value)| size_of(value)).sum::<usize>();
            self.put_row(number, &row, size, put)?;
        }
        Ok(())
    }

    fn put_row(&mut self, number: u64, row: &Row, size: usize, put: Put<'_>) -> Result<()> {
        if self.rows >= MOST_ROWS || (self.rows > 0 && self.size.saturating_add(size) > BATCH) {
            self.put_batch(put)?;
        }
        let is_known = |name: &str| self.fields.iter().any(|field| field.name == name);
        if let Some(other) = row.names().find(|name| !is_known(name)) {
            return Err(unknown("a column", &self.fields).record(number).field(other));
        }
        for (field, column) in self.fields.iter().zip(&mut self.columns) {
            let value = row.get(&field.name).unwrap_or(&Value::Null);
            column.push(value).map_err(|e| e.record(number).field(&field.name))?;
        }
        self.rows += 1;
        self.size += size;
        Ok(())
    }

    fn put_batch(&mut self, put: Put<'_>) -> Result<()> {
        if self.rows > 0 {
            message::batch(self.rows as u64, &self.columns, put)?;
            self.empty_batch();
        }
        Ok(())
    }

    fn empty_batch(&mut self) {
        self.columns = self.fields.iter().map(|field| Column::new(&field.of)).collect();
        (self.rows, self.size) = (0, 0);
    }
}

/// That Arrow has numbers of this dtype.
///
/// # Errors
/// `Config`.
pub fn check_dtype(dtype: DType) -> Result<()> {
    match dtype {
        DType::Bf16 => Err(Error::config("Arrow has no bfloat16 dtype")
            .field("dtype")
            .hint("choose @as_dtype=float32@: the values are the same")),
        _ => Ok(()),
    }
}

// Bytes of a value in memory, about.
fn size_of(value: &Value) -> usize {
    const EACH: usize = 16;
    EACH + match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(array) => array.bytes.len(),
        Value::List(values) => values.iter().map(size_of).sum(),
        Value::Struct(row) => row.iter().map(|(name, value)| name.len() + size_of(value)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_core::Array;
    use windrow_core::store::{Memory, Store};

    use super::*;
    use crate::Table;

    fn written(rows: Vec<Row>) -> Result<Vec<u8>> {
        let begin = Begin {
            work: std::path::Path::new(""),
            name: "",
            out: std::path::Path::new(""),
            corpus: None,
            dtype: DType::F32,
            channels: None,
            are_rows: true,
            vocab_size: None,
            appends_eos: false,
            has_mask: false,
            total_values: None,
            fsync: false,
            append_to: None,
            checkpoint: None,
        };
        let mut writer = StreamWriter::new(&begin, "")?;
        let mut out = Vec::new();
        let mut put = |part: &[u8]| {
            out.extend_from_slice(part);
            Ok(())
        };
        for (number, row) in (0..).zip(rows) {
            writer.add_row(number, row, &mut put)?;
        }
        writer.finish(&mut put)?;
        Ok(out)
    }

    fn read(stream: Vec<u8>) -> Vec<Row> {
        let object = Memory::new().with("s.arrow", stream).open("s.arrow").unwrap();
        let table = Table::open(Arc::clone(&object), 0).unwrap();
        let columns: Vec<usize> = (0..table.columns().len()).collect();
        (0..table.rows()).map(|row| table.row(row, &columns).unwrap()).collect()
    }

    fn array(dtype: DType, shape: &[u64], bytes: Vec<u8>) -> Value {
        Array { dtype, shape: shape.to_vec(), bytes }.into()
    }

    fn row(values: &[(&str, Value)]) -> Row {
        values.iter().cloned().collect()
    }

    #[test]
    fn rows_come_back_with_their_types() {
        let nested = |i: i64| -> Value { row(&[("k", i.into()), ("l", Value::List(vec![]))]).into() };
        let rows: Vec<Row> = (0..2500i64)
            .map(|i| {
                row(&[
                    ("int", if i % 3 == 0 { Value::Null } else { i.into() }),
                    ("float", (i as f64 / 4.0).into()),
                    ("flag", (i % 2 == 0).into()),
                    ("late", if i < 1800 { Value::Null } else { "there".into() }),
                    ("text", format!("r{i}").into()),
                    ("bytes", vec![i as u8; (i % 5) as usize].into()),
                    ("ids", array(DType::U16, &[(i % 4) as u64], vec![7; 2 * (i % 4) as usize])),
                    ("grid", array(DType::I16, &[2, 3], vec![i as u8; 12])),
                    ("cube", array(DType::U8, &[1, 2, 3], vec![i as u8; 6])),
                    ("flags", array(DType::Bool, &[3], vec![1, 0, 1])),
                    ("words", Value::List(vec![Value::Null, "w".into()])),
                    ("nested", if i % 7 == 0 { Value::Null } else { nested(i) }),
                ])
            })
            .collect();
        assert_eq!(read(written(rows.clone()).unwrap()), rows);
    }

    #[test]
    fn what_a_row_lacks_is_null_and_the_same_rows_give_the_same_bytes() {
        let rows = vec![row(&[("a", 1i64.into())]), row(&[("b", 0.5.into()), ("a", 2.5.into())])];
        let found = read(written(rows.clone()).unwrap());
        assert_eq!(found[0], row(&[("a", 1.0.into()), ("b", Value::Null)]));
        assert_eq!(found[1], row(&[("a", 2.5.into()), ("b", 0.5.into())]));
        assert_eq!(written(rows.clone()).unwrap(), written(rows).unwrap());
    }

    #[test]
    fn a_value_of_another_type_is_named() {
        let ints = |last: Value| {
            let mut rows: Vec<Row> = (0..1500i64).map(|i| row(&[("n", i.into())])).collect();
            rows.push(row(&[("n", last)]));
            written(rows).unwrap_err()
        };
        for value in [0.5.into(), "x".into(), u64::MAX.into()] {
            let error = ints(value);
            assert_eq!(
                (error.place().record, error.place().field.as_deref()),
                (Some(1500), Some("n")),
                "{error}"
            );
        }
        let early = written(vec![row(&[("n", 1i64.into())]), row(&[("n", "x".into())])]).unwrap_err();
        assert_eq!(early.message(), "a value of text; the rows before it hold int64");
        let large = written(vec![row(&[("n", 0.5.into())]), row(&[("n", i64::MAX.into())])]).unwrap_err();
        assert_eq!(large.place().record, Some(1), "{large}");
        assert!(written(vec![]).is_err() && written(vec![Row::new()]).is_err());
    }
}
