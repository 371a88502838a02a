//! Records whole, as they are.

use std::sync::Arc;

use windrow_core::collate::{self, Collate};
use windrow_core::plan::Balance;
use windrow_core::source::{Kind, SharedSource};
use windrow_core::view::{self, View};
use windrow_core::{Error, Result};
use windrow_formats::key_rows;

use crate::views::kind::{Cut, ViewKind};
use crate::views::option::view;

view! {
    /// Records whole, as they are: rows of columns, or JSON. A batch holds a [`Value`](crate::Value) for each of its rows, in
    /// [`Batch::records`](crate::Batch::records).
    ///
    /// With `stack` it is its columns: a column of numbers, or of arrays of one shape, is a tensor `[rows, …]`, any other a
    /// list of values in [`Batch::list`](crate::Batch::list).
    ///
    /// ```
    /// use windrow::Rows;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("pages.jsonl");
    /// std::fs::write(&path, "{\"text\": \"one\", \"label\": 1}\n{\"text\": \"two\", \"label\": 2}\n").unwrap();
    /// let pages = windrow::open(&path)?;
    /// let batch = pages.rows(&["text"])?.batch(&[0], 0)?;
    /// let windrow::Value::Struct(row) = &batch.records()[0] else { panic!("a row") };
    /// assert_eq!(row.get("text").and_then(windrow::Value::as_text), Some("one"));
    ///
    /// let batch = pages.rows(Rows::default().stack(true))?.batch(&[1, 0], 0)?;
    /// assert_eq!(batch.get::<i64>("label")?, [2, 1]);
    /// assert_eq!(batch.list("text")?, [windrow::Value::from("two"), "one".into()]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub struct Rows {
        /// Only these columns or keys, in this order.
        columns: Option<Vec<String>> as &[&str] = "row_columns",
        /// Make a batch of columns: of numbers tensors, of anything else lists.
        stack: bool,
    }
    called "rows", "Records whole, of data whose records are rows or JSON";
}

/// Only these columns; all of them where none is named.
impl<const N: usize> From<&[&str; N]> for Rows {
    fn from(columns: &[&str; N]) -> Rows {
        if N == 0 { Rows::default() } else { Rows::default().columns(columns) }
    }
}

impl ViewKind for Rows {
    fn source(&self, source: SharedSource) -> Result<SharedSource> {
        let schema = source.schema();
        match &self.columns {
            // Keys of objects are columns once they are named.
            Some(names) if schema.kind == Kind::Json || schema.is_value() => key_rows(source, names),
            _ => Ok(source),
        }
    }

    fn alike(&self, _by: &Balance) -> Option<(&'static str, &'static str)> {
        Some((
            "what its rows cost is not known",
            "give @lengths@, a column of whole numbers or one for each sample; crop and records know the lengths of numbers",
        ))
    }

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let collate = collate::Rows::new(data.schema(), self.columns.as_deref(), self.stack)?;
        if let Some(dtype) = data.dtype {
            return Err(Error::config(format!("rows as {dtype}: they keep the dtypes that are stored"))
                .field("dtype")
                .hint("leave @as_dtype@ out; @collate@ may convert what it gets"));
        }
        Ok((Arc::new(view::Rows::new(data.source.len())), Arc::new(collate)))
    }
}
