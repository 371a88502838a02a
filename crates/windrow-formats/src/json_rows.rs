//! JSON records as rows of some of their keys.

use serde_json::{Map, Value as Json};
use windrow_core::source::{Column, FileInfo, Location, Schema, SharedSource, Source};
use windrow_core::{Error, Lengths, Place, Result, Row, Span, Value, Values};

use super::json_lines::parse_json;

/// Records whose lines are looked through for the keys that there are, where one is not in the first.
const LOOKED_AT: u64 = 100;

/// The records of `lines`, each a row of some keys; a key that a record lacks is null there.
pub(super) struct JsonRows {
    lines: SharedSource,
    schema: Schema,
}

impl JsonRows {
    /// Rows of these columns.
    ///
    /// # Errors
    /// `Config` for no column, one twice, and one that no record at the beginning has; what reading says.
    pub(super) fn new(lines: SharedSource, columns: &[String]) -> Result<JsonRows> {
        if let Some(twice) = (1..columns.len()).find(|at| columns[..*at].contains(&columns[*at])) {
            return Err(Error::config(format!("the column {:?} twice", columns[twice])).field("columns"));
        }
        if columns.is_empty() {
            return Err(Error::config("no column is named").field("columns"));
        }
        let column = |name: &String| Column { name: name.clone(), holds: "JSON".to_string() };
        let rows = JsonRows { lines, schema: Schema::rows(columns.iter().map(column).collect()) };
        rows.are_there()?;
        Ok(rows)
    }

    // A name that nobody uses is a slip of the pen.
    fn are_there(&self) -> Result<()> {
        let mut missing: Vec<&str> = self.schema.columns.iter().map(|column| column.name.as_str()).collect();
        let mut found: Vec<String> = Vec::new();
        for record in 0..self.lines.len().min(LOOKED_AT) {
            // What cannot be read says so where it is read.
            let Ok(object) = self.object(record) else { continue };
            missing.retain(|name| !object.contains_key(*name));
            if missing.is_empty() {
                return Ok(());
            }
            found.extend(
                object.into_iter().map(|(key, _)| key).filter(|key| !found.contains(key)).collect::<Vec<_>>(),
            );
        }
        let of = self.lines.len().min(LOOKED_AT);
        let Some(first) = missing.first().filter(|_| !found.is_empty()) else { return Ok(()) };
        Err(Error::config(format!(
            "no key {first:?} in the first {of} records, which have {}",
            found.join(", ")
        ))
        .field("columns")
        .hint("columns= names keys of the records"))
    }

    fn object(&self, record: u64) -> Result<Map<String, Json>> {
        let mut scratch = Vec::new();
        let values = self.lines.read_whole(record, &mut scratch)?;
        let text = values.bytes;
        let place = || {
            let found = self.lines.locate(Span { record, start: 0, len: text.len() as u64 }).ok();
            let found = found.and_then(|places| places.into_iter().next());
            Place {
                record: Some(record),
                byte: found.as_ref().map(|at| at.start),
                file: found.map(|at| at.file),
                field: None,
            }
        };
        // Where it lies is looked up only to say it.
        let parsed = match parse_json(text, &Place::default()) {
            Ok(parsed) => parsed,
            Err(_) => parse_json(text, &place())?,
        };
        match parsed {
            Json::Object(object) => Ok(object),
            other => {
                let place = place();
                let kind = match other {
                    Json::Array(_) => "a list",
                    Json::String(_) => "a text",
                    Json::Null => "null",
                    _ => "a number",
                };
                let error = Error::corrupt(format!("expected an object with the columns, found {kind}"));
                let error = error.at(place.file.unwrap_or_default()).record(record);
                Err(match place.byte {
                    Some(byte) => error.byte(byte),
                    None => error,
                })
            }
        }
    }
}

impl Lengths for JsonRows {
    fn len(&self) -> u64 {
        self.lines.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        match record < self.len() {
            true => Ok(1),
            false => Err(Error::out_of_range("record", record, self.len())),
        }
    }

    fn uniform(&self) -> Option<u64> {
        Some(1)
    }
}

impl Source for JsonRows {
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
        let value = |column: &Column| {
            (column.name.clone(), object.remove(&column.name).map_or(Value::Null, Value::from))
        };
        Ok(self.schema.columns.iter().map(value).collect())
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        self.lines.prefetch(spans);
    }

    fn touch(&self, span: Span) {
        self.lines.touch(span);
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let len = self.lines.length(span.record)?;
        self.lines.locate(Span { record: span.record, start: 0, len })
    }

    fn files(&self) -> Vec<FileInfo> {
        self.lines.files()
    }

    fn fingerprint(&self) -> Result<u64> {
        let names: Vec<&str> = self.schema.columns.iter().map(|column| column.name.as_str()).collect();
        let name = xxhash_rust::xxh3::xxh3_64(names.join("\0").as_bytes());
        Ok(self.lines.fingerprint()? ^ name)
    }

    fn format(&self) -> &'static str {
        self.lines.format()
    }
}
