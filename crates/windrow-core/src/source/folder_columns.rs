//! What the names of folders say of the records below them, as columns beside those of the files: `lang=en/year=2020`, as
//! Hive, Spark, pandas and pyarrow write the columns by which they divide a table.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::Value as Json;
use xxhash_rust::xxh3::Xxh3;

use super::{
    Cells, Column, Extras, FileInfo, Kind, Location, Rows, Schema, SharedSource, Source, Stored, one_by_one,
};
use crate::error::{Error, Result};
use crate::record::{Decode, Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::Object;

/// What a folder is called where the value is null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Columns and values that folders on the way to a file say, in their order.
pub fn said_by_folders(name: &str) -> Vec<(String, Option<String>)> {
    let folders = name.rsplit_once('/').map_or("", |(folders, _)| folders);
    let pairs =
        folders.split('/').filter_map(|folder| folder.split_once('=')).filter(|(key, _)| !key.is_empty());
    let mut said: Vec<(String, Option<String>)> = Vec::new();
    for (key, value) in pairs {
        let value = (value != NULL).then(|| decoded(value));
        match said.iter_mut().find(|(known, _)| *known == decoded(key)) {
            // What is nearer to the file says more.
            Some(known) => known.1 = value,
            None => said.push((decoded(key), value)),
        }
    }
    said
}

// A name in which `%20` stands for a space, and so on; what is no such number stays.
fn decoded(name: &str) -> String {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => (out.push(byte), rest = &after[2..]).1,
            None => (out.push(first), rest = after).1,
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| name.to_string())
}

/// The records of a source with the columns that folders say of their files.
pub struct FolderColumns {
    inner: SharedSource,
    schema: Schema,
    /// What folders say of each file: a value for each of their columns.
    said: HashMap<String, Row>,
    /// For each column of the schema its number in the inner one; `None` for one of folders.
    from: Vec<Option<usize>>,
}

impl FolderColumns {
    /// Adds what the folders below `base` say to the rows of `source`, or to its records of JSON: the columns called `asked`, or all,
    /// that its records do not have themselves.
    pub fn around(source: SharedSource, base: &str, asked: Option<&[String]>) -> SharedSource {
        let own = source.schema();
        if own.kind == Kind::Numbers || own.is_value() {
            return source;
        }
        let mut columns: Vec<(String, bool)> = Vec::new();
        for file in source.files() {
            for (name, value) in said_by_folders(below(&file.file, base)) {
                let is_number = value.is_none_or(|value| value.parse::<i64>().is_ok());
                match columns.iter_mut().find(|column| column.0 == name) {
                    Some(column) => column.1 &= is_number,
                    None => columns.push((name, is_number)),
                }
            }
        }
        columns.retain(|(name, _)| {
            own.columns.iter().all(|column| column.name != *name)
                && asked.is_none_or(|asked| asked.contains(name))
        });
        if columns.is_empty() {
            return source;
        }
        let (mut schema, mut from) = (own.clone(), Vec::new());
        if own.kind == Kind::Rows {
            let of_folder = |(name, is_number): &(String, bool)| {
                let holds = if *is_number { "int64" } else { "text" };
                (Column { name: name.clone(), holds: holds.to_string(), exact: String::new() }, None)
            };
            let mut all: Vec<(Column, Option<usize>)> = own
                .columns
                .iter()
                .cloned()
                .zip((0..).map(Some))
                .chain(columns.iter().map(of_folder))
                .collect();
            if let Some(asked) = asked {
                all.retain(|(column, _)| asked.contains(&column.name));
                all.sort_by_key(|(column, _)| asked.iter().position(|name| *name == column.name));
            }
            (schema.columns, from) = all.into_iter().unzip();
        }
        let said = source.files().into_iter().map(|file| {
            let row = values(below(&file.file, base), &columns);
            (file.file, row)
        });
        let said = said.collect();
        Arc::new(FolderColumns { inner: source, schema, said, from })
    }

    // What folders say of a record.
    fn said(&self, record: u64) -> Result<Row> {
        let len = self.inner.length(record)?;
        let places = self.inner.locate(Span { record, start: 0, len })?;
        let said = places.first().and_then(|place| self.said.get(&place.file));
        said.cloned().ok_or_else(|| {
            Error::corrupt("a record of none of the files, so that no folder says its columns").record(record)
        })
    }

    // The text of a record that is JSON, with a key for each column that it has not itself.
    fn json(&self, record: u64) -> Result<Vec<u8>> {
        let mut scratch = Vec::new();
        let text = self.inner.read_whole(record, &mut scratch)?.bytes.trim_ascii_end();
        // What is no object has no keys, and what is no JSON says so where it is read.
        let own: Option<BTreeMap<String, IgnoredAny>> = serde_json::from_slice(text).ok();
        let (Some(own), [inside @ .., b'}']) = (own, text) else { return Ok(text.to_vec()) };
        let mut out = inside.trim_ascii_end().to_vec();
        let mut is_first = own.is_empty();
        for (name, value) in self.said(record)?.into_iter().filter(|(name, _)| !own.contains_key(name)) {
            let value = match value {
                Value::I64(number) => Json::from(number),
                Value::Text(text) => Json::from(text),
                _ => Json::Null,
            };
            let comma = if is_first { "" } else { ", " };
            is_first = false;
            out.extend_from_slice(format!("{comma}{}: {value}", Json::from(name)).as_bytes());
        }
        out.push(b'}');
        Ok(out)
    }

    fn is_json(&self) -> bool {
        self.schema.kind == Kind::Json
    }

    // The columns with these numbers of a record whose own ones are in `row`.
    fn with_folders(&self, record: u64, mut row: Row, columns: impl Iterator<Item = usize>) -> Result<Row> {
        let mut said = self.said(record)?;
        let value = |number: usize| {
            let column = self.schema.columns.get(number);
            let column = column
                .ok_or_else(|| Error::out_of_range("column", number, self.schema.columns.len() as u64))?;
            let value = said.remove(&column.name).or_else(|| row.remove(&column.name));
            Ok((column.name.clone(), value.unwrap_or(Value::Null)))
        };
        columns.map(value).collect()
    }
}

// That a span is all of a text, as JSON is read.
fn check_whole(span: Span, length: u64) -> Result<()> {
    if span.start == 0 && span.len == length {
        Ok(())
    } else {
        Err(Error::out_of_range("byte", span.start.saturating_add(span.len), length).record(span.record))
    }
}

// What the folders on the way to a file say of these columns, of which some hold whole numbers alone.
fn values(name: &str, columns: &[(String, bool)]) -> Row {
    let mut said: HashMap<String, Option<String>> = said_by_folders(name).into_iter().collect();
    let value = |(column, is_number): &(String, bool)| {
        let value = match said.remove(column).flatten() {
            None => Value::Null,
            Some(value) if *is_number => value.parse().map_or(Value::Null, Value::I64),
            Some(value) => Value::Text(value),
        };
        (column.clone(), value)
    };
    columns.iter().map(value).collect()
}

// The name of a file below a folder, where it is there.
fn below<'a>(file: &'a str, base: &str) -> &'a str {
    file.strip_prefix(base).unwrap_or("")
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for FolderColumns {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        if self.is_json() { Ok(self.json(record)?.len() as u64) } else { self.inner.length(record) }
    }

    fn uniform(&self) -> Option<u64> {
        self.inner.uniform().filter(|_| !self.is_json())
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        for (record, length) in (first..).zip(out) {
            *length = self.length(record)?;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for FolderColumns {
    crate::source::forward! {
        inner: read_track text extras beside prefetch touch decode_ahead files format treatment object word
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        if !self.is_json() {
            return self.inner.read(span, scratch);
        }
        *scratch = self.json(span.record)?;
        check_whole(span, scratch.len() as u64)?;
        Ok(Values { bytes: scratch, element: self.schema.element, channels: 1, decode: Decode::Plain })
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        if !self.is_json() {
            return self.inner.read_whole(record, scratch);
        }
        *scratch = self.json(record)?;
        Ok(Values { bytes: scratch, element: self.schema.element, channels: 1, decode: Decode::Plain })
    }

    // Of a text to which keys were added, where all of it lies.
    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        if !self.is_json() {
            return self.inner.locate(span);
        }
        check_whole(span, self.length(span.record)?)?;
        self.inner.locate(Span { start: 0, len: self.inner.length(span.record)?, ..span })
    }

    fn row(&self, record: u64) -> Result<Row> {
        self.with_folders(record, self.inner.row(record)?, 0..self.schema.columns.len())
    }

    fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
        if self.is_json() {
            let value = self.inner.value(record, columns)?;
            let Value::Struct(mut object) = value else { return Ok(value) };
            for (name, value) in self.said(record)? {
                if object.get(&name).is_none() {
                    object.insert(name, value);
                }
            }
            return Ok(Value::Struct(object));
        }
        let Some(columns) = columns else { return self.row(record).map(Value::Struct) };
        let own: Vec<usize> =
            columns.iter().filter_map(|number| self.from.get(*number).copied().flatten()).collect();
        let row = if own.is_empty() {
            Row::default()
        } else {
            match self.inner.value(record, Some(&own))? {
                Value::Struct(row) => row,
                _ => Row::default(),
            }
        };
        self.with_folders(record, row, columns.iter().copied()).map(Value::Struct)
    }

    fn rows_from(&self, first: u64) -> Rows<'_> {
        let all = 0..self.schema.columns.len();
        let rows = self.inner.rows_from(first).zip(first..);
        Box::new(rows.map(move |(row, record)| self.with_folders(record, row?, all.clone())))
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        self.schema.columns.iter().for_each(|column| hash.update(column.name.as_bytes()));
        for (name, value) in
            self.inner.files().iter().filter_map(|file| self.said.get(&file.file)).flat_map(Row::iter)
        {
            let said = match value {
                Value::I64(number) => number.to_string(),
                Value::Text(text) => format!("{text:?}"),
                _ => "null".to_string(),
            };
            hash.update(format!("{name}={said}\0").as_bytes());
        }
        Ok(hash.digest())
    }

    fn cells(
        &self,
        name: &str,
        records: Range<u64>,
        take: &mut dyn FnMut(u64, Cells<'_>) -> Result<()>,
    ) -> Result<()> {
        let is_own = !self.is_json()
            && (self.schema.kind == Kind::Numbers
                || self.inner.schema().columns.iter().any(|own| own.name == name));
        match is_own {
            true => self.inner.cells(name, records, take),
            false => one_by_one(self, name, records, take),
        }
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        self.inner.stored(record)
    }

    fn joined(&self) -> Option<SharedSource> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_say_columns_and_values() {
        let said = |name: &str| {
            let said = said_by_folders(name).into_iter();
            said.map(|(key, value)| format!("{key}:{}", value.unwrap_or_else(|| "null".into())))
                .collect::<Vec<_>>()
        };
        assert_eq!(said("lang=en/year=2020/part-0.parquet"), ["lang:en", "year:2020"]);
        assert_eq!(said("a/k=x%20y%2Fz/b/k2=/c=d.json"), ["k:x y/z", "k2:"]);
        assert_eq!(said("a=1/a=2/x"), ["a:2"]);
        assert_eq!(said(&format!("a={NULL}/x")), ["a:null"]);
        assert_eq!(said("a=100%/b=%zz/x"), ["a:100%", "b:%zz"]);
        assert!(said("x=1").is_empty() && said("=1/x").is_empty());
    }
}
