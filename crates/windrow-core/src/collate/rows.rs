//! Records whole, as they are: the values of each in a batch, or stacked column by column.

use std::sync::Arc;

use super::{Batch, Collate, Field, Pool, Row, Sample, Scratch, stack};
use crate::error::{Error, Place, Result};
use crate::record::Piece;
use crate::row::Value;
use crate::source::{Kind, Schema, Source, chosen_columns};

/// Gives records that are rows, or JSON, as [`Value`]s: [`Batch::records`]. Stacked, a column of numbers or of arrays of one
/// shape is a tensor `[rows, …]` and any other a [list](Batch::lists).
#[derive(Clone, Debug)]
pub struct Rows {
    columns: Option<Vec<usize>>,
    is_stacked: bool,
    /// What each record has; unknown of JSON.
    names: Option<Vec<String>>,
    /// The columns and what they hold, for people.
    holds: String,
}

impl Rows {
    /// For records of this schema: all their columns, or only these, in this order.
    ///
    /// # Errors
    /// `Config` for records of numbers, and for a column that is not there or is named twice.
    pub fn new(schema: &Schema, columns: Option<&[String]>, is_stacked: bool) -> Result<Self> {
        if schema.kind == Kind::Numbers {
            return Err(Error::config("the records are numbers, and rows are records of named columns, or JSON").hint(
                "the view records gives a row of numbers per record; pack, windows, segments, bins and crop slice them; \
                 where a format has columns, @columns@ opens it as rows",
            ));
        }
        let columns = columns.map(|names| chosen_columns(schema, names)).transpose()?;
        let all = || (0..schema.columns.len()).collect();
        let shown = columns.clone().unwrap_or_else(all).into_iter().map(|number| &schema.columns[number]);
        let names: Vec<String> = shown.clone().map(|column| column.name.clone()).collect();
        let holds: Vec<String> = shown
            .map(|column| format!("{} {}", column.name, column.holds).trim_start().to_string())
            .collect();
        let is_json = schema.kind == Kind::Json;
        Ok(Rows {
            columns,
            is_stacked,
            names: (!is_json).then_some(names),
            holds: if is_json { "JSON".to_string() } else { holds.join(", ") },
        })
    }

    /// The columns of a row and what they hold, as `image bytes, label int64`.
    pub fn holds(&self) -> &str {
        &self.holds
    }

    /// Whether records of the other can be in a batch with records of this one.
    ///
    /// # Errors
    /// `Mismatch` naming the columns that only one of them has.
    pub(crate) fn check_mixed(&self, other: &Rows, called: [&str; 2]) -> Result<()> {
        let refused = |found: String| {
            let [ours, theirs] = called;
            Err(Error::mismatch(format!("{ours} and {theirs} give different rows: {found}")).hint(
                "a batch takes rows of every view of a mix: give rows() the same @row_columns@ and @stack@ of all",
            ))
        };
        if self.describe() != other.describe() {
            return refused(format!("{} and {}", self.describe(), other.describe()));
        }
        let (Some(ours), Some(theirs)) = (&self.names, &other.names) else { return Ok(()) };
        let only = |these: &[String], those: &[String], called: &str| {
            let missing: Vec<String> =
                these.iter().filter(|name| !those.contains(name)).map(|name| format!("{name:?}")).collect();
            (!missing.is_empty()).then(|| format!("only {called} has {}", missing.join(", ")))
        };
        let differ: Vec<String> =
            [only(ours, theirs, called[0]), only(theirs, ours, called[1])].into_iter().flatten().collect();
        if differ.is_empty() { Ok(()) } else { refused(differ.join("; ")) }
    }

    /// The record that a sample is.
    pub(crate) fn read(&self, sample: &Sample<'_>) -> Result<Value> {
        let Some(Piece::Read(span)) = sample.pieces.first() else {
            return Err(Error::config("a view that cuts records gives no whole ones"));
        };
        sample.source.value(span.record, self.columns.as_deref())
    }

    /// A batch of records; `place` says where the one of a row lies.
    pub(crate) fn batch(
        &self,
        records: Vec<Value>,
        place: &dyn Fn(usize) -> Place,
        pool: Option<&Pool>,
    ) -> Result<Batch> {
        if self.is_stacked { stack::stacked(records, place, pool) } else { Ok(Batch::of_records(records)) }
    }
}

/// Where the record of a sample lies.
pub(crate) fn place_of(sample: &Sample<'_>) -> Place {
    let Some(Piece::Read(span)) = sample.pieces.first() else { return Place::default() };
    let file = whole_span(sample.source, span.record).and_then(|span| sample.source.locate(span));
    let file = file.ok().and_then(|places| places.into_iter().next()).map(|at| at.file);
    Place { file, record: Some(span.record), ..Place::default() }
}

/// The span of all of a record: that of a sample counts it as one value.
pub(crate) fn whole_span(source: &dyn Source, record: u64) -> Result<crate::record::Span> {
    Ok(crate::record::Span { record, start: 0, len: source.length(record)? })
}

impl Collate for Rows {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(Arc::new([]))
    }

    fn fill(&self, _sample: &Sample<'_>, _row: &mut Row<'_>, _scratch: &mut Scratch) -> Result<()> {
        Ok(())
    }

    fn rows(&self) -> Option<&Rows> {
        Some(self)
    }

    fn describe(&self) -> String {
        let names = self.names.as_ref().filter(|_| self.columns.is_some());
        // As JSON: a name may hold any character.
        let columns = names.map(|names| format!("columns={}", serde_json::Value::from(names.clone())));
        let stack = self.is_stacked.then(|| "stack=true".to_string());
        let parts: Vec<String> = [columns, stack].into_iter().flatten().collect();
        if parts.is_empty() { "rows".to_string() } else { format!("rows({})", parts.join(",")) }
    }
}
