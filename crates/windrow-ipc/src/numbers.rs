//! A column of lists of numbers, as records: where the numbers of a row are.

use windrow_core::{Array, DType, Error, Result, Value};

use crate::file::Table;
use crate::schema::{Kind, Node};

/// The numbers of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Values along the first axis.
    pub len: u64,
    /// Numbers of each value, where there is a second axis.
    pub channels: Option<u64>,
    /// Their first byte in [`Table::data`]; `None` where they are not there as they are, but have to be made.
    pub start: Option<u64>,
}

impl Node {
    /// The dtype of the numbers of its lists, and the length of each where that is the same; `None` for other values.
    pub fn numbers(&self) -> Option<(DType, Option<u64>)> {
        let uniform = match (&self.kind, &self.shape) {
            (Kind::List(_) | Kind::FixedList(_), Some(shape)) if shape.len() == 2 => shape.first().copied(),
            (Kind::FixedList(count), _) => Some(*count),
            (Kind::List(_), None) => None,
            _ => return None,
        };
        let mut inner = self.children.first()?;
        if self.shape.is_some() {
            if !matches!(inner.kind, Kind::List(_) | Kind::FixedList(_)) {
                return None;
            }
            inner = inner.children.first()?;
        } else if let Kind::FixedList(_) = inner.kind {
            inner = inner.children.first()?;
        }
        match inner.kind {
            Kind::Number(dtype) => Some((dtype, uniform)),
            Kind::Bool | Kind::Bool8 => Some((DType::Bool, uniform)),
            _ => None,
        }
    }
}

impl Table {
    /// Where the numbers of a row are; `column` is one of numbers.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` for a row that is null, or whose offsets leave the column.
    pub fn run(&self, row: u64, column: usize) -> Result<Run> {
        let (batch, at) = self.find(row)?;
        let (reader, node) = (self.reader(batch), &self.columns()[column]);
        let named = |e: Error| self.named(e, row, &node.name);
        if !reader.is_valid(node, at).map_err(named)? {
            return Err(named(
                reader
                    .wrong(node, 0, "the record is null".to_string())
                    .hint("write it without rows that are null"),
            ));
        }
        if node.shape.is_some() {
            let array = self.numbers(row, column)?;
            let channels = array.shape.get(1).copied();
            return Ok(Run { len: array.shape.first().copied().unwrap_or(0), channels, start: None });
        }
        let (first, end) = reader.elements(node, at).map_err(named)?;
        let (mut inner, mut begin, mut channels) = (&node.children[0], first, None);
        let mut nulls = reader.batch.counts[inner.node].nulls;
        if let Kind::FixedList(width) = inner.kind {
            channels = Some(width);
            begin = first * width;
            inner = &inner.children[0];
            nulls += reader.batch.counts[inner.node].nulls;
        }
        let start = match inner.kind {
            // Where they are was compared with the buffer when the file was opened.
            Kind::Number(dtype) if nulls == 0 => {
                Some(reader.batch.slots[inner.slot + 1].start + begin * dtype.size() as u64)
            }
            _ => None,
        };
        Ok(Run { len: end - first, channels, start })
    }

    /// The numbers of a row as an array.
    ///
    /// # Errors
    /// As [`Table::run`]; `Corrupt` for a null among whole numbers.
    pub fn numbers(&self, row: u64, column: usize) -> Result<Array> {
        let (batch, at) = self.find(row)?;
        let (reader, node) = (self.reader(batch), &self.columns()[column]);
        let value = reader.value(node, at).map_err(|e| self.named(e, row, &node.name))?;
        self.as_numbers(value, row, column)
    }

    /// The array that a value of a row is.
    ///
    /// # Errors
    /// As [`Table::numbers`].
    pub(crate) fn as_numbers(&self, value: Value, row: u64, column: usize) -> Result<Array> {
        let (batch, _) = self.find(row)?;
        let (reader, node) = (self.reader(batch), &self.columns()[column]);
        match value {
            Value::Array(array) => Ok(array),
            Value::Null => Err(self.named(
                reader
                    .wrong(node, 0, "the record is null".to_string())
                    .hint("write it without rows that are null"),
                row,
                &node.name,
            )),
            _ => Err(self.named(
                reader
                    .wrong(node, 1, "a null among the numbers of a record".to_string())
                    .hint("@columns@ gives rows, with lists of numbers and None"),
                row,
                &node.name,
            )),
        }
    }
}

impl Table {
    /// The first byte in [`Table::data`] and the size of a row's bytes; `column` is one of bytes.
    ///
    /// # Errors
    /// As [`Table::run`].
    pub fn bytes(&self, row: u64, column: usize) -> Result<(u64, u64)> {
        let (batch, at) = self.find(row)?;
        let (reader, node) = (self.reader(batch), &self.columns()[column]);
        let place = match reader.is_valid(node, at) {
            Ok(true) => reader.place(node, at),
            Ok(false) => Err(reader.wrong(node, 0, "the record is null".to_string())),
            Err(e) => Err(e),
        };
        place.map(|place| (place.start, place.size)).map_err(|e| self.named(e, row, &node.name))
    }

    /// The bytes in [`Table::data`] of a row's numbers, text or bytes; `None` where it has none of its own.
    ///
    /// # Errors
    /// As [`Table::run`].
    pub fn bytes_of(&self, row: u64, column: usize) -> Result<Option<std::ops::Range<u64>>> {
        let node = &self.columns()[column];
        let (batch, at) = self.find(row)?;
        if !self.reader(batch).is_valid(node, at)? {
            return Ok(None);
        }
        if let (Some((dtype, _)), None) = (node.numbers(), &node.shape) {
            let run = self.run(row, column)?;
            // Within the buffer, as was compared.
            let size = run.len * run.channels.unwrap_or(1) * dtype.size() as u64;
            return Ok(run.start.map(|start| start..start + size));
        }
        match node.kind {
            Kind::Text(_) | Kind::Bytes(_) | Kind::View(_) | Kind::Fixed(_) => {
                let (start, size) = self.bytes(row, column)?;
                Ok(Some(start..start + size))
            }
            _ => Ok(None),
        }
    }
}
