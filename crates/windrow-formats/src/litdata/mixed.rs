//! Chunks of two kinds: files of Arrow while the values of each key have one type, and trees of leaves once they have several, as
//! `optimize` writes them.

use std::ops::Range;

use windrow_core::format::columns::{self, Column, Found, Kind};
use windrow_core::format::data_files::DataFiles;
use windrow_core::{DType, Error, Result, Row, Value};
use windrow_ipc::Joined;

use super::samples::Samples;

/// The items of such a data set.
pub(super) struct Mixed {
    rows: Joined,
    trees: Samples,
    /// The number of a chunk's first row among those of Arrow; `None` of a chunk of trees.
    first_rows: Vec<Option<u64>>,
    columns: Vec<Column>,
    /// Each column among those of the rows, and of the trees.
    places: Vec<(Option<usize>, Option<usize>)>,
}

/// Where an item is.
enum At {
    Row(u64),
    Tree,
}

impl Mixed {
    /// The rows of some chunks, where the first of each is `first_rows` says, and all chunks as trees.
    pub(super) fn new(rows: Joined, trees: Samples, first_rows: Vec<Option<u64>>) -> Mixed {
        use windrow_core::format::columns::Samples as _;
        let place = |columns: &[Column], name: &str| columns.iter().position(|column| column.name == name);
        let others = trees.columns().iter().filter(|other| place(rows.columns(), &other.name).is_none());
        let columns = rows.columns().iter().chain(others);
        // Numbers of the one kind are values of the other.
        let columns: Vec<Column> =
            columns.map(|column| Column { kind: Kind::Value, ..column.clone() }).collect();
        let of =
            |column: &Column| (place(rows.columns(), &column.name), place(trees.columns(), &column.name));
        let places = columns.iter().map(of).collect();
        Mixed { rows, trees, first_rows, columns, places }
    }

    fn find(&self, sample: u64) -> Result<At> {
        let (chunk, local) = self.trees.find(sample)?;
        Ok(self.first_rows[chunk].map_or(At::Tree, |first| At::Row(first + local)))
    }
}

impl columns::Samples for Mixed {
    fn format(&self) -> &'static str {
        self.trees.format()
    }

    fn count(&self) -> u64 {
        self.trees.count()
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        let at = self.find(sample)?;
        let place = |column: &usize| match at {
            At::Row(_) => self.places[*column].0,
            At::Tree => self.places[*column].1,
        };
        let own: Vec<usize> = columns.iter().filter_map(place).collect();
        let found = match at {
            At::Row(row) => self.rows.row(row, &own).map_err(|e| e.record(sample))?,
            At::Tree => self.trees.row(sample, &own)?,
        };
        let mut found = found.into_iter();
        let value = |column: &usize| {
            let value = place(column).and_then(|_| found.next()).map_or(Value::Null, |(_, value)| value);
            (self.columns[*column].name.clone(), value)
        };
        Ok(Row::of_distinct(columns.iter().map(value).collect()))
    }

    fn array(&self, sample: u64, column: usize, _dtype: Option<DType>) -> Result<Found> {
        Err(Error::unsupported("numbers of chunks that are stored in two ways")
            .record(sample)
            .field(self.columns[column].name.clone()))
    }

    fn bytes<'a>(
        &'a self,
        sample: u64,
        column: usize,
        _found: &Found,
        _start: u64,
        _size: usize,
        _scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        self.array(sample, column, None).map(|_| &[][..])
    }

    fn locate(&self, sample: u64, column: Option<usize>) -> Result<(String, Range<u64>)> {
        match self.find(sample)? {
            At::Row(row) => self.rows.locate(row, column.and_then(|column| self.places[column].0)),
            At::Tree => self.trees.locate(sample, None),
        }
    }

    fn prefetch(&self, sample: u64) {
        match self.find(sample) {
            Ok(At::Row(row)) => self.rows.prefetch(row),
            Ok(At::Tree) => self.trees.prefetch(sample),
            Err(_) => {}
        }
    }

    fn files(&self) -> &DataFiles {
        self.trees.files()
    }

    fn fingerprint(&self, of: &str) -> Result<u64> {
        self.trees.fingerprint(of)
    }
}
