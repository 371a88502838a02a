//! Samples as rows of some columns.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::source::{self, FileInfo, Location, Schema, Source, one_by_one};

use super::{Column, Samples, TakeCells};

/// Samples as rows of some columns.
pub(super) struct Rows<S> {
    samples: S,
    columns: Vec<usize>,
    schema: Schema,
}

impl<S: Samples> Rows<S> {
    pub(super) fn new(samples: S, columns: Vec<usize>) -> Rows<S> {
        let column = |number: &usize| {
            let Column { name, holds, exact, .. } = samples.columns()[*number].clone();
            source::Column { name, holds, exact }
        };
        let schema = Schema::rows(columns.iter().map(column).collect());
        Rows { samples, columns, schema }
    }
}

impl<S: Samples> Lengths for Rows<S> {
    fn len(&self) -> u64 {
        self.samples.count()
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.samples.check(record).map(|()| 1)
    }

    fn uniform(&self) -> Option<u64> {
        Some(1)
    }
}

impl<S: Samples> Source for Rows<S> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, _scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.length(span.record)?;
        Err(self.schema.need_numbers().err().unwrap_or_else(|| Error::config("rows")).record(span.record))
    }

    fn row(&self, record: u64) -> Result<Row> {
        self.samples.row(record, &self.columns)
    }

    // The others are not read.
    fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
        let Some(columns) = columns else { return Ok(self.schema.value_of(self.row(record)?)) };
        let number = |column: &usize| {
            let found = self.columns.get(*column).copied();
            found.ok_or_else(|| Error::out_of_range("column", column, self.columns.len() as u64))
        };
        let numbers: Vec<usize> = columns.iter().map(number).collect::<Result<_>>()?;
        self.samples.row(record, &numbers).map(Value::Struct)
    }

    fn rows_from(&self, first: u64) -> source::Rows<'_> {
        self.samples.rows_from(first, &self.columns)
    }

    fn cells(&self, name: &str, records: Range<u64>, take: &mut TakeCells<'_>) -> Result<()> {
        let number = self.columns.iter().find(|column| self.samples.columns()[**column].name == name);
        let read = number.and_then(|number| self.samples.cells(*number, records.clone(), take));
        read.unwrap_or_else(|| one_by_one(self, name, records, take))
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        spans.for_each(|(span, _)| self.samples.prefetch(span.record));
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (file, place) = self.samples.locate(span.record, None)?;
        Ok(vec![Location { file, start: place.start, size: place.end - place.start }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.samples.files().infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        let names: Vec<&str> = self.schema.columns.iter().map(|column| column.name.as_str()).collect();
        self.samples.fingerprint(&names.join("\0"))
    }

    fn format(&self) -> &'static str {
        self.samples.format()
    }
}
