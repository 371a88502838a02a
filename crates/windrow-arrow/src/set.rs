//! Columns that are read together: from the file while few rows are asked for, then from the cache.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use windrow_core::format::columns::Samples;
use windrow_core::format::data_files::DataFiles;
use windrow_core::store::{Object, Store, cached};
use windrow_core::{Error, Result, threads};
use windrow_ipc::{Columns, Joined, SHAPE, Table};

use crate::file::File;

/// Part of the cache file's name: a new number makes everything be decoded again.
const VERSION: &str = "parquet columns 2";
/// Parts of files that are decoded before all rows are.
const MOST_DECODED: usize = 24;
/// Decoded parts that are kept.
const KEPT: usize = 4;

/// Columns that are read together.
pub(crate) struct Set {
    /// Their names, those of shapes beside them included.
    names: Vec<String>,
    /// The columns, which all files share.
    columns: Columns,
    format: &'static str,
    joined: OnceLock<Joined>,
    making: Mutex<()>,
    n_decoded: AtomicUsize,
    /// Those that were used last come last.
    kept: Mutex<Vec<Part>>,
}

/// A part that was decoded.
struct Part {
    file: usize,
    /// Its first row in the file.
    first: u64,
    rows: Arc<Joined>,
}

/// Where a row of a set is.
pub(crate) enum Access<'a> {
    /// In the cache, under the number of the record.
    Cached(&'a Joined, u64),
    /// In a part that was decoded, under its number there.
    Decoded(Arc<Joined>, u64),
}

impl Access<'_> {
    /// The rows, and the number of the row in them.
    pub(crate) fn rows(&self) -> (&Joined, u64) {
        match self {
            Access::Cached(joined, row) => (joined, *row),
            Access::Decoded(joined, row) => (joined, *row),
        }
    }
}

impl Set {
    /// The columns of these names, among those of all files.
    pub(crate) fn new(format: &'static str, names: Vec<String>, all: &Columns) -> Set {
        Set {
            columns: all.only(&names),
            names,
            format,
            joined: OnceLock::new(),
            making: Mutex::new(()),
            n_decoded: AtomicUsize::new(0),
            kept: Mutex::new(Vec::new()),
        }
    }

    /// Only this one of its columns, and its shapes.
    pub(crate) fn only(&self, name: &str) -> Set {
        let is_of = |other: &&String| other.strip_suffix(SHAPE).unwrap_or(other) == name;
        Set::new(self.format, self.names.iter().filter(is_of).cloned().collect(), &self.columns)
    }

    /// The names of its columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Rows of a file that were decoded.
    ///
    /// # Errors
    /// As [`Joined::new`].
    pub(crate) fn decoded(&self, files: &Files, file: usize, table: Table) -> Result<Joined> {
        self.joined_of(files, vec![table], vec![files.files[file].object().clone()])
    }

    /// All rows, where they are in the cache already.
    pub(crate) fn cached(&self) -> Option<&Joined> {
        self.joined.get()
    }

    /// A row: record `record` of all, row `row` of file `file`.
    ///
    /// # Errors
    /// `Corrupt` for pages that cannot be decoded; `Config` where the columns are larger than the cache may become.
    pub(crate) fn row(&self, files: &Files, record: u64, file: usize, row: u64) -> Result<Access<'_>> {
        if let Some(joined) = self.joined.get() {
            return Ok(Access::Cached(joined, record));
        }
        let of_file = &files.files[file];
        let rows = of_file.beside(row, &self.names);
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let local = row - rows.start;
        {
            let mut kept = kept();
            if let Some(at) = kept.iter().position(|part| (part.file, part.first) == (file, rows.start)) {
                let part = kept.remove(at);
                let decoded = part.rows.clone();
                kept.push(part);
                return Ok(Access::Decoded(decoded, local));
            }
        }
        if self.n_decoded.fetch_add(1, Ordering::Relaxed) >= MOST_DECODED {
            return Ok(Access::Cached(self.all(files)?, record));
        }
        let first = rows.start;
        let table = of_file.decode(&self.names, rows)?;
        let joined = Arc::new(self.decoded(files, file, table)?);
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Part { file, first, rows: joined.clone() });
        Ok(Access::Decoded(joined, local))
    }

    fn joined_of(&self, files: &Files, tables: Vec<Table>, objects: Vec<Arc<dyn Object>>) -> Result<Joined> {
        let keys = objects.iter().map(|object| object.name().to_string()).collect();
        let data = DataFiles::from_objects(files.store.clone(), keys, objects);
        Joined::new(self.format, data, tables, &self.columns)
    }

    // All rows, decoded into the cache once.
    fn all(&self, files: &Files) -> Result<&Joined> {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joined) = self.joined.get() {
            return Ok(joined);
        }
        let what = format!("{VERSION} {:?}", self.names);
        let count = files.files.len();
        // Many files beside each other, or the row groups of few.
        let inside = if count >= threads::cores() { 1 } else { threads::cores() };
        let make = |file: usize| -> Result<(Table, Arc<dyn Object>)> {
            let file = &files.files[file];
            let usual = file.object().size().saturating_mul(1000).saturating_add(64 << 20);
            let limit = files.limit.unwrap_or(usual);
            let made = cached(file.object().as_ref(), "columns", &what, |draft| {
                log::info!("decoding {} once, into the cache", file.object().name());
                file.convert(&self.names, inside, limit, draft)
            })?;
            Ok((Table::open(made.clone(), u64::MAX)?, made))
        };
        let made: Vec<(Table, Arc<dyn Object>)> = match inside {
            1 => {
                threads::in_parts(count, |file, (): &mut ()| make(file)).into_iter().collect::<Result<_>>()?
            }
            _ => (0..count).map(make).collect::<Result<_>>()?,
        };
        let (tables, objects) = made.into_iter().unzip();
        let joined = self.joined_of(files, tables, objects)?;
        debug_assert_eq!(joined.count(), files.rows());
        Ok(self.joined.get_or_init(|| joined))
    }
}

/// The files of a data set.
pub(crate) struct Files {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) files: Vec<File>,
    /// The number of the first row of each file, and of all rows at the end.
    pub(crate) firsts: Vec<u64>,
    /// Bytes that the columns of a file may take in the cache.
    pub(crate) limit: Option<u64>,
}

impl Files {
    /// Rows of all files.
    pub(crate) fn rows(&self) -> u64 {
        self.firsts[self.files.len()]
    }

    /// The file of a row of all, and its number there.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub(crate) fn find(&self, record: u64) -> Result<(usize, u64)> {
        if record >= self.rows() {
            return Err(Error::out_of_range("record", record, self.rows()));
        }
        let file = self.firsts.partition_point(|first| *first <= record) - 1;
        Ok((file, record - self.firsts[file]))
    }
}

/// The number of the column of this name among those that were decoded.
///
/// # Errors
/// `Corrupt` when it is not among them.
pub(crate) fn number_of(rows: &impl Samples, name: &str) -> Result<usize> {
    let at = rows.columns().iter().position(|column| column.name == name);
    at.ok_or_else(|| Error::corrupt(format!("no column {name:?} in what was decoded")).field(name))
}
