//! Records that are objects, as JSON and examples are, as rows of some of their keys.

use std::sync::Arc;

use windrow_core::source::{Column, FileInfo, Kind, Location, Schema, SharedSource, Source};
use windrow_core::{Error, Lengths, Result, Row, Span, Value, Values};

/// Records that are looked through for the keys that there are, where one is not in the first, and of those behind them again.
const LOOKED_AT: u64 = 100;

/// Records that are objects as rows of some of their keys; a key that a record lacks is null there.
///
/// # Errors
/// `Config` for no key, one twice, and one that none of some records has; what reading says.
pub fn key_rows(records: SharedSource, columns: &[String]) -> Result<SharedSource> {
    Ok(Arc::new(KeyRows::new(records, columns)?))
}

/// The records of a source, each a row of some keys; a key that a record lacks is null there.
pub(super) struct KeyRows {
    records: SharedSource,
    schema: Schema,
}

impl KeyRows {
    /// Rows of these columns.
    ///
    /// # Errors
    /// `Config` for no column, one twice, and one that none of some records has; what reading says.
    pub(super) fn new(records: SharedSource, columns: &[String]) -> Result<KeyRows> {
        if let Some(twice) = (1..columns.len()).find(|at| columns[..*at].contains(&columns[*at])) {
            return Err(Error::config(format!("the column {:?} twice", columns[twice])).field("columns"));
        }
        if columns.is_empty() {
            return Err(Error::config("no column is named").field("columns"));
        }
        if records.schema().is_value()
            && let Ok(value) = records.value(0, None)
            && !matches!(value, Value::Struct(_))
        {
            return Err(Error::config("the records are values without names").field("columns"));
        }
        let holds = if records.schema().kind == Kind::Json { "JSON" } else { "value" };
        let column =
            |name: &String| Column { name: name.clone(), holds: holds.to_string(), exact: String::new() };
        let rows = KeyRows { records, schema: Schema::rows(columns.iter().map(column).collect()) };
        rows.are_there()?;
        Ok(rows)
    }

    // A name that nobody uses is a slip of the pen.
    fn are_there(&self) -> Result<()> {
        let mut missing: Vec<&str> = self.schema.columns.iter().map(|column| column.name.as_str()).collect();
        let mut found: Vec<String> = Vec::new();
        let first = self.records.len().min(LOOKED_AT);
        let rest = self.records.len() - first;
        // Files that were written later may have more keys: some of all others, the last among them.
        let n_others = rest.min(LOOKED_AT);
        let others = (1..=n_others).map(|n| {
            let behind = u128::from(rest) * u128::from(n) / u128::from(n_others);
            first + behind as u64 - 1
        });
        for record in (0..first).chain(others) {
            // What cannot be read says so where it is read.
            let Ok(object) = self.object(record) else { continue };
            missing.retain(|name| object.get(name).is_none());
            if missing.is_empty() {
                return Ok(());
            }
            let new = object.into_iter().map(|(key, _)| key).filter(|key| !found.contains(key));
            found.extend(new.collect::<Vec<_>>());
        }
        let of = first + n_others;
        let Some(first) = missing.first().filter(|_| !found.is_empty()) else { return Ok(()) };
        Err(Error::config(format!(
            "no key {first:?} in {of} records that were looked at, which have {}",
            found.join(", ")
        ))
        .field("columns")
        .hint("@columns@ names keys of the records"))
    }

    fn object(&self, record: u64) -> Result<Row> {
        match self.records.value(record, None)? {
            Value::Struct(object) => Ok(object),
            other => {
                let kind = match other {
                    Value::List(_) | Value::Array(_) => "a list",
                    Value::Text(_) => "a text",
                    Value::Bytes(_) => "bytes",
                    Value::Null => "null",
                    _ => "a number",
                };
                let error = Error::corrupt(format!("expected an object with the columns, found {kind}"))
                    .record(record);
                let place = self.locate(Span { record, start: 0, len: 1 }).ok();
                Err(match place.and_then(|places| places.into_iter().next()) {
                    Some(place) => error.at(place.file).byte(place.start),
                    None => error,
                })
            }
        }
    }
}

impl Lengths for KeyRows {
    fn len(&self) -> u64 {
        self.records.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        if record < self.len() { Ok(1) } else { Err(Error::out_of_range("record", record, self.len())) }
    }

    fn uniform(&self) -> Option<u64> {
        Some(1)
    }
}

impl Source for KeyRows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, _scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.length(span.record)?;
        Err(self.schema.need_numbers().err().unwrap_or_else(|| Error::config("rows")).record(span.record))
    }

    fn row(&self, record: u64) -> Result<Row> {
        self.length(record)?;
        let mut object = self.object(record)?;
        let value =
            |column: &Column| (column.name.clone(), object.remove(&column.name).unwrap_or(Value::Null));
        Ok(self.schema.columns.iter().map(value).collect())
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        self.records.prefetch(spans);
    }

    fn touch(&self, span: Span) {
        self.records.touch(span);
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let len = self.records.length(span.record)?;
        self.records.locate(Span { record: span.record, start: 0, len })
    }

    fn files(&self) -> Vec<FileInfo> {
        self.records.files()
    }

    fn fingerprint(&self) -> Result<u64> {
        let names: Vec<&str> = self.schema.columns.iter().map(|column| column.name.as_str()).collect();
        let name = xxhash_rust::xxh3::xxh3_64(names.join("\0").as_bytes());
        Ok(self.records.fingerprint()? ^ name)
    }

    fn format(&self) -> &'static str {
        self.records.format()
    }
}
