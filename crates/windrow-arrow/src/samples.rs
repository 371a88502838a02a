//! Rows of Parquet files as samples with columns.

use std::ops::Range;
use std::sync::Arc;

use windrow_core::format::Options;
use windrow_core::format::columns::{self, Column, Found, TakeCells};
use windrow_core::format::data_files::DataFiles;
use windrow_core::source;
use windrow_core::store::Object;
use windrow_core::{DType, Result, Row};
use windrow_ipc::{Columns, SHAPE};

use crate::cells;
use crate::scan::Scan;
use crate::set::{Access, Files, Set, number_of};

/// The rows of a data set.
pub(crate) struct Samples {
    format: &'static str,
    files: Files,
    data: DataFiles,
    columns: Vec<Column>,
    sets: Vec<Set>,
    /// The set of each column.
    of_column: Vec<usize>,
}

impl Samples {
    /// Rows with these columns: those that the options ask for are decoded together, the others apart.
    pub(crate) fn new(
        format: &'static str,
        files: Files,
        data: DataFiles,
        all: &Columns,
        options: &Options,
    ) -> Samples {
        let asked = |name: &str| columns::is_asked(options, name.strip_suffix(SHAPE).unwrap_or(name));
        let of = |is_asked: bool| {
            let names = all.names().into_iter().filter(|name| asked(name) == is_asked);
            Set::new(format, names.collect(), all)
        };
        let columns = all.described().to_vec();
        let of_column = columns.iter().map(|column| usize::from(!asked(&column.name))).collect();
        Samples { format, sets: vec![of(true), of(false)], files, data, columns, of_column }
    }

    fn access(&self, sample: u64, set: usize) -> Result<(usize, Access<'_>)> {
        let (file, row) = self.files.find(sample)?;
        let access = self.sets[set].row(&self.files, sample, file, row).map_err(|e| e.record(sample))?;
        Ok((file, access))
    }

    // A column's number among those of its set.
    fn number(&self, rows: &impl columns::Samples, column: usize) -> Result<usize> {
        number_of(rows, &self.columns[column].name)
    }
}

impl columns::Samples for Samples {
    fn format(&self) -> &'static str {
        self.format
    }

    fn count(&self) -> u64 {
        self.files.rows()
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        let mut values = Row::new();
        for set in 0..self.sets.len() {
            if columns.iter().all(|column| self.of_column[*column] != set) {
                continue;
            }
            let (_, access) = self.access(sample, set)?;
            let (rows, row) = access.rows();
            let of_set = columns.iter().filter(|column| self.of_column[**column] == set);
            let numbers: Vec<usize> =
                of_set.map(|column| self.number(rows, *column)).collect::<Result<_>>()?;
            values.extend(rows.row(row, &numbers).map_err(|e| e.record(sample))?);
        }
        // In the order in which they were asked for.
        let ordered = columns.iter().filter_map(|column| {
            let name = &self.columns[*column].name;
            Some((name.clone(), values.remove(name)?))
        });
        Ok(ordered.collect())
    }

    fn rows_from<'a>(&'a self, first: u64, columns: &'a [usize]) -> source::Rows<'a> {
        // What is in the cache anyway is read from there.
        if columns.iter().all(|column| self.of_column[*column] == 0) && self.sets[0].cached().is_none() {
            let names = columns.iter().map(|column| self.columns[*column].name.as_str()).collect();
            Box::new(Scan::new(&self.files, &self.sets[0], names, first))
        } else {
            Box::new((first..self.count()).map(move |sample| self.row(sample, columns)))
        }
    }

    fn cells(&self, column: usize, samples: Range<u64>, take: &mut TakeCells<'_>) -> Option<Result<()>> {
        let set = &self.sets[self.of_column[column]];
        Some(cells::go_through(&self.files, set, &self.columns[column].name, samples, take))
    }

    fn array(&self, sample: u64, column: usize, dtype: Option<DType>) -> Result<Found> {
        let (file, access) = self.access(sample, self.of_column[column])?;
        let (rows, row) = access.rows();
        let found = rows.array(row, self.number(rows, column)?, dtype).map_err(|e| e.record(sample))?;
        match access {
            Access::Cached(..) => Ok(found),
            // Numbers of a decoded part begin at 0 for whoever reads them.
            Access::Decoded(..) => Ok(Found { file, start: 0, ..found }),
        }
    }

    fn bytes<'a>(
        &'a self,
        sample: u64,
        column: usize,
        found: &Found,
        start: u64,
        size: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let set = &self.sets[self.of_column[column]];
        if let Some(joined) = set.cached().filter(|_| found.start > 0) {
            return joined.bytes(sample, self.number(joined, column)?, found, start, size, scratch);
        }
        let (_, access) = self.access(sample, self.of_column[column])?;
        let (rows, row) = access.rows();
        let number = self.number(rows, column)?;
        let place = rows.array(
            row,
            number,
            Some(found.dtype).filter(|_| self.columns[column].kind == columns::Kind::Bytes),
        )?;
        let mut all = Vec::new();
        let whole = place.shape.iter().product::<u64>() * place.dtype.size() as u64;
        let bytes = rows.bytes(row, number, &place, place.start, whole as usize, &mut all)?;
        let part = columns::part(bytes, start, size, sample)?;
        scratch.clear();
        scratch.extend_from_slice(part);
        Ok(scratch)
    }

    fn object(&self, column: usize, file: usize) -> Result<Option<&Arc<dyn Object>>> {
        match self.sets[self.of_column[column]].cached() {
            Some(joined) => joined.object(self.number(joined, column)?, file),
            None => Ok(None),
        }
    }

    // What holds arrays as they are is the cache.
    fn is_stored(&self, _column: usize, _found: &Found) -> Result<bool> {
        Ok(false)
    }

    fn locate(&self, sample: u64, column: Option<usize>) -> Result<(String, Range<u64>)> {
        let (file, row) = self.files.find(sample)?;
        let name = column.map(|column| self.columns[column].name.as_str());
        Ok((self.data.name(file), self.files.files[file].place(row, name)))
    }

    fn prefetch(&self, sample: u64) {
        if let Some(joined) = self.sets[0].cached() {
            joined.prefetch(sample);
        }
    }

    fn files(&self) -> &DataFiles {
        &self.data
    }
}
