//! Rows one after the other, decoded some at a time: nothing is kept of them.

use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use windrow_core::format::columns::Samples as _;
use windrow_core::{Error, Result, Row};
use windrow_ipc::Joined;

use crate::set::{Files, Set, number_of};

/// The rows from one on.
pub(crate) struct Scan<'a> {
    files: &'a Files,
    set: &'a Set,
    /// The columns that are wanted.
    names: Vec<&'a str>,
    /// The number of the next row, of those of all files.
    next: u64,
    /// The file that is being read.
    reading: Option<(usize, ParquetRecordBatchReader)>,
    part: Option<Part>,
}

/// Rows that were decoded together.
struct Part {
    rows: Joined,
    /// The number of the next one.
    next: u64,
    /// Where the columns are.
    columns: Vec<usize>,
}

impl<'a> Scan<'a> {
    /// These columns of a set, from a row on.
    pub(crate) fn new(files: &'a Files, set: &'a Set, names: Vec<&'a str>, first: u64) -> Scan<'a> {
        Scan { files, set, names, next: first, reading: None, part: None }
    }

    fn row(&mut self) -> Result<Row> {
        loop {
            let next = self.next;
            if let Some(part) = self.part.as_mut().filter(|part| part.next < part.rows.count()) {
                let row = part.rows.row(part.next, &part.columns).map_err(|e| e.record(next))?;
                part.next += 1;
                return Ok(row);
            }
            self.part = Some(self.decode().map_err(|e| e.record(next))?);
        }
    }

    // The next rows of the file that the next row is in.
    fn decode(&mut self) -> Result<Part> {
        let (number, row) = self.files.find(self.next)?;
        let file = &self.files.files[number];
        let mut reader = match self.reading.take() {
            Some((of, reader)) if of == number => reader,
            _ => file.rows_from(self.set.names(), row)?,
        };
        let table = file.next(&mut reader)?.filter(|table| table.rows() > 0);
        let table = table.filter(|table| table.rows() <= file.rows() - row).ok_or_else(|| {
            Error::corrupt(format!("other rows than the {} that its footer says", file.rows()))
                .at(file.object().name())
        })?;
        let rows = self.set.decoded(self.files, number, table)?;
        let columns = self.names.iter().map(|name| number_of(&rows, name)).collect::<Result<_>>()?;
        self.reading = Some((number, reader));
        Ok(Part { rows, next: 0, columns })
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if self.next >= self.files.rows() {
            return None;
        }
        let row = self.row();
        self.next = if row.is_ok() { self.next + 1 } else { u64::MAX };
        Some(row)
    }
}
