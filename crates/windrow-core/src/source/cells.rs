//! What a column holds, some records together.

use std::ops::Range;

use super::{Kind, Source};
use crate::error::{Error, Result};
use crate::row::Value;

/// What a column holds of records that follow each other, one for each.
#[derive(Clone, Copy, Debug)]
pub enum Cells<'a> {
    /// Whole numbers.
    Whole(&'a [i64]),
    /// Fractions.
    Fractions(&'a [f64]),
    /// Texts; `None` where there is nothing.
    Texts(&'a [Option<&'a str>]),
    /// Any values; null where there is nothing.
    Values(&'a [Value]),
}

/// Records that are read before they are given together.
const TOGETHER: usize = 256;

/// [`Source::cells`] by one record after the other.
///
/// # Errors
/// As there.
pub(crate) fn one_by_one<S: Source + ?Sized>(
    source: &S,
    name: &str,
    records: Range<u64>,
    take: &mut dyn FnMut(u64, Cells<'_>) -> Result<()>,
) -> Result<()> {
    let schema = source.schema();
    let column = match schema.kind {
        Kind::Rows if !schema.is_value() => {
            let number = schema.columns.iter().position(|column| column.name == name);
            let names = || schema.columns.iter().map(|column| column.name.as_str());
            Some([number.ok_or_else(|| no_column(name, names()))?])
        }
        _ => None,
    };
    let names = [name.to_string()];
    let value = |record: u64| -> Result<Value> {
        let mut row = match (&schema.kind, &column) {
            (Kind::Numbers, _) => source.beside(record, &names)?,
            (_, columns) => match source.value(record, columns.as_ref().map(|columns| &columns[..]))? {
                Value::Struct(row) => row,
                other => return Err(not_an_object(&other, name).record(record)),
            },
        };
        Ok(row.remove(name).unwrap_or(Value::Null))
    };
    let mut values = Vec::with_capacity(TOGETHER);
    let mut first = records.start;
    for record in records.clone() {
        values.push(value(record)?);
        if values.len() == TOGETHER || record + 1 == records.end {
            take(first, Cells::Values(&values))?;
            values.clear();
            first = record + 1;
        }
    }
    Ok(())
}

/// The error where there is no such column, with those that there are.
pub(super) fn no_column<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Error {
    let names: Vec<&str> = names.collect();
    let error = Error::config(format!("no column or key is called {name:?}")).field("where");
    match names.is_empty() {
        true => error.hint("the records have no columns, and nothing beside their values"),
        false => error.hint(format!("there are {}", names.join(", "))),
    }
}

fn not_an_object(found: &Value, name: &str) -> Error {
    let shown: String = found.shown().to_string().chars().take(80).collect();
    Error::config(format!("expected an object with the key {name:?}, found {shown}")).field("where")
}
