//! Samples of named values, as several formats hold them: opened as rows of some columns, or as the numbers of one with the
//! others as metadata.

mod numbers;
mod rows;

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::array::DType;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::format::data_files::DataFiles;
use crate::format::{Options, Probe, masks};
use crate::row::Row;
use crate::source::{self, Cells, SharedSource};
use crate::store::Object;

use self::numbers::Numbers;
use self::rows::Rows;
use crate::format::numbers::check_number_options;

/// A value that every sample has.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What a person would call its type.
    pub holds: String,
    /// What else of its type decides what values are, as [`source::Column`] has it.
    pub exact: String,
    /// What can be made of it.
    pub kind: Kind,
}

/// What can be made of the values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Arrays, of this dtype and shape where all have the same.
    Array(Option<DType>, Option<Vec<u64>>),
    /// Bytes, which are numbers where a dtype is given.
    Bytes,
    /// Any other value.
    Value,
    /// What cannot be read: it is no metadata of others.
    LeftOut,
}

/// The lengths of an array's axes: one or two, mostly.
pub type Shape = SmallVec<[u64; 2]>;

/// An array that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Type of its numbers.
    pub dtype: DType,
    /// Lengths of its axes; its bytes are there.
    pub shape: Shape,
    /// The number of its file, and its first byte in what the file holds; 0 where it is made of that.
    pub file: usize,
    /// See [`Found::file`].
    pub start: u64,
}

/// What takes what a column holds, with the number of the first sample.
pub type TakeCells<'t> = dyn FnMut(u64, Cells<'_>) -> Result<()> + 't;

/// The samples of a data set.
pub trait Samples: Send + Sync + 'static {
    /// The name of the format.
    fn format(&self) -> &'static str;

    /// How many there are.
    fn count(&self) -> u64;

    /// What each of them has, in order.
    fn columns(&self) -> &[Column];

    /// Whether each sample may have values of other names than [`Samples::columns`] beside its numbers.
    fn have_own_names(&self) -> bool {
        false
    }

    /// Some values of a sample, by their names.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` with the place of the value; `Unsupported` for a value that is more than data.
    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row>;

    /// Some values of all samples from `first` on, as [`Source::rows_from`](crate::source::Source::rows_from).
    fn rows_from<'a>(&'a self, first: u64, columns: &'a [usize]) -> source::Rows<'a> {
        Box::new((first..self.count()).map(move |sample| self.row(sample, columns)))
    }

    /// What a column holds of some samples, as [`Source::cells`](crate::source::Source::cells), where there is a quicker way than
    /// row by row.
    fn cells(&self, column: usize, samples: Range<u64>, take: &mut TakeCells<'_>) -> Option<Result<()>> {
        let _ = (column, samples, take);
        None
    }

    /// The array in a column of [`Kind::Array`], or of [`Kind::Bytes`] with the dtype that was given.
    ///
    /// # Errors
    /// As [`Samples::row`].
    fn array(&self, sample: u64, column: usize, dtype: Option<DType>) -> Result<Found>;

    /// Bytes of a sample's array, from byte `start` of what its file holds.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    fn bytes<'a>(
        &'a self,
        sample: u64,
        column: usize,
        found: &Found,
        start: u64,
        size: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]>;

    /// What holds the arrays of a column as they are, from [`Found::start`] on; `None` where they are made.
    ///
    /// # Errors
    /// What opening it says.
    fn object(&self, column: usize, file: usize) -> Result<Option<&Arc<dyn Object>>> {
        let _ = (column, file);
        Ok(None)
    }

    /// Whether the file that an array is in holds an array as it is, from [`Found::start`] on.
    ///
    /// # Errors
    /// As [`Samples::object`].
    fn is_stored(&self, column: usize, found: &Found) -> Result<bool> {
        Ok(found.start > 0 && self.object(column, found.file)?.is_some())
    }

    /// The file of a sample, or of one of its values, and the bytes in it.
    ///
    /// # Errors
    /// As [`Samples::row`].
    fn locate(&self, sample: u64, column: Option<usize>) -> Result<(String, Range<u64>)>;

    /// Asks for the bytes of a sample, without waiting.
    fn prefetch(&self, sample: u64);

    /// Their files.
    fn files(&self) -> &DataFiles;

    /// A hash of the data, on top of what is read of it.
    ///
    /// # Errors
    /// `Io`.
    fn fingerprint(&self, of: &str) -> Result<u64> {
        self.files().fingerprint(&[self.format().as_bytes(), of.as_bytes()])
    }

    /// That a sample is there.
    ///
    /// # Errors
    /// `OutOfRange`.
    fn check(&self, sample: u64) -> Result<()> {
        if sample < self.count() { Ok(()) } else { Err(Error::out_of_range("record", sample, self.count())) }
    }
}

/// Bytes of an array that was made again, from byte `start` on.
///
/// # Errors
/// `Stale` where it became shorter.
pub fn part(array: &[u8], start: u64, size: usize, sample: u64) -> Result<&[u8]> {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let part = array.get(start..start.saturating_add(size));
    part.ok_or_else(|| Error::new(ErrorKind::Stale, "the record became shorter").record(sample))
}

/// Whether these options ask for a column: `column=` for one and for what says which of its tokens are learned, `columns=` for some,
/// else all are.
pub fn is_asked(options: &Options, name: &str) -> bool {
    match (&options.column, &options.columns) {
        (Some(column), _) => column == name || masks::is_read_beside(options, name),
        (None, Some(columns)) => columns.iter().any(|column| column == name),
        (None, None) => true,
    }
}

/// Opens samples as the options say: `column=` gives numbers, and so does an only column of arrays; anything else is rows.
///
/// # Errors
/// `Config` for a column that is not there, or holds no numbers; what reading the first sample says.
pub fn open(samples: impl Samples, probe: &Probe, options: &Options) -> Result<SharedSource> {
    let at = |e: Error| e.at(probe.display());
    let numbers = match (&options.column, &options.columns) {
        (Some(name), _) => Some(column(&samples, name, "column").map_err(at)?),
        (None, None) => match samples.columns() {
            [Column { kind: Kind::Array(..), .. }] => Some(0),
            _ => None,
        },
        _ => None,
    };
    if let Some(column) = numbers {
        let format = samples.format();
        let numbers = Numbers::new(samples, column, options).map_err(|e| e.or_at(probe.display()))?;
        let source: SharedSource = Arc::new(numbers);
        let manifest = probe.manifest.as_ref().filter(|manifest| manifest.format == format);
        check_number_options(source.as_ref(), manifest, options, &probe.display())?;
        return Ok(source);
    }
    options
        .refuse_those_of_ids("the records are rows of columns", "@column@ chooses the numbers")
        .map_err(at)?;
    let columns = match &options.columns {
        None => (0..samples.columns().len()).collect(),
        Some(names) => {
            let found = names.iter().map(|name| column(&samples, name, "columns"));
            let found: Vec<usize> = found.collect::<Result<_>>().map_err(at)?;
            if found.is_empty() || (1..found.len()).any(|at| found[..at].contains(&found[at])) {
                return Err(at(Error::config(format!(
                    "@columns={names:?}@: expected each once, and one at least"
                ))
                .field("columns")));
            }
            found
        }
    };
    Ok(Arc::new(Rows::new(samples, columns)))
}

// The number of a column.
fn column(samples: &impl Samples, name: &str, option: &str) -> Result<usize> {
    samples.columns().iter().position(|column| column.name == name).ok_or_else(|| {
        let names: Vec<&str> = samples.columns().iter().map(|column| column.name.as_str()).collect();
        Error::config(format!("no column is called {name:?}"))
            .field(option)
            .hint(format!("columns: {}", names.join(", ")))
    })
}
