//! Records by number.

mod apart;
mod apply;
mod border;
mod cells;
mod channels;
mod chosen;
mod compare;
mod concat;
pub mod conformance;
mod deferred;
mod fit;
mod floats;
mod folder_columns;
mod forward;
mod in_memory;
mod left_out;
mod matched;
mod measure;
mod numbering;
mod period;
mod runs;
mod sample_scale;
mod scale;
mod scaling;
mod seen;
mod statistics;
mod subset;
mod transform;
mod words;

use std::ops::Range;
use std::sync::Arc;

pub use apart::Apart;
pub use border::Border;
pub use cells::Cells;
pub(crate) use cells::one_by_one;
pub use chosen::{Chosen, Numbers};
pub use compare::{Condition, Given, Op};
pub use deferred::{Deferred, Later, LaterFiles, Promise};
pub use fit::Fit;
pub use floats::Precision;
pub use folder_columns::{FolderColumns, said_by_folders};
pub(crate) use forward::forward;
pub use in_memory::{HeldBytes, InMemory};
pub use left_out::LeftOut;
pub use numbering::Numbering;
pub use period::Period;
pub use runs::Runs;
pub use sample_scale::SampleScale;
pub use scale::Scaled;
pub use scaling::{Nan, Per, Scale, Scaling};
pub use subset::Subset;
pub use transform::{Custom, Transformed, Whole};
pub use words::Words;

use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::{Object, is_url};

pub use crate::store::ahead::gather;
pub use crate::store::{StoreSet, Traffic, whole};
pub use concat::Concat;

/// The metadata beside a record's values: prompt, other columns.
pub type Extras = Row;

/// More codebooks than any codec of audio has, those of both sides together.
pub const MOST_CODEBOOKS: u64 = 128;

/// Rows one after the other, see [`Source::rows_from`].
pub type Rows<'a> = Box<dyn Iterator<Item = Result<Row>> + Send + 'a>;

/// What a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers, `[T]` or `[T, C]`.
    Numbers,
    /// One JSON text per record; `read` gives its UTF-8 bytes.
    Json,
    /// A row of named columns, which [`Source::row`] gives; its length is 1, and `read` has no numbers.
    Rows,
}

/// What all records of a source have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Numbers or text.
    pub kind: Kind,
    /// Type and byte order of a stored number. Where the records of a source are not stored alike, or whole numbers
    /// become fractions by [`Decode::Affine`](crate::Decode), it is little-endian float32, or int64 where all numbers are
    /// whole, and [`Values::element`] of each record says how it is stored.
    pub element: Element,
    /// Each record is of a dtype of its own, in which it is given where it is asked for by number.
    pub own_dtypes: bool,
    /// `None` for `[T]`, `Some(C)` for `[T, C]`.
    pub channels: Option<usize>,
    /// What the values are called where arrays run beside them.
    pub values_name: &'static str,
    /// Arrays that run beside the values, one number per value: a loss mask.
    pub tracks: Vec<Track>,
    /// Ids are below this, where it is known.
    pub vocab_size: Option<u64>,
    /// The columns of a row, in order; empty where records are not rows. An only column without a name is the record itself, whatever value
    /// it is.
    pub columns: Vec<Column>,
    /// The names of what is beside the numbers of each record, where all records have the same; `None` where each may have
    /// its own.
    pub beside: Option<Vec<String>>,
    /// What is beside the numbers of a record under this name, where it has one, is beside no other record: files that share one are not
    /// joined.
    pub unique: Option<&'static str>,
}

/// A named column of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What a person would call its type: `int64`, `text`, `ndarray int32 [3]`.
    pub holds: String,
    /// What else of its type decides what values are, such as types of fields; columns that differ in it are not joined as they are.
    pub exact: String,
}

/// An array that runs beside the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its name.
    pub name: String,
    /// Type of its numbers.
    pub element: Element,
    /// The columns beside the values that it is made of; empty where it is stored.
    pub made_of: Vec<String>,
}

impl Track {
    /// An array that is stored beside the values.
    pub fn stored(name: impl Into<String>, element: Element) -> Track {
        Track { name: name.into(), element, made_of: Vec::new() }
    }

    /// The array that these columns say together: 1 = learned.
    pub fn made_of(columns: Vec<String>) -> Track {
        Track { name: "loss".to_string(), element: Element::little(DType::U8), made_of: columns }
    }
}

impl Schema {
    /// Records of numbers `[T]` without tracks.
    pub fn numbers(element: Element) -> Self {
        Schema {
            kind: Kind::Numbers,
            element,
            own_dtypes: false,
            channels: None,
            values_name: "tokens",
            tracks: Vec::new(),
            vocab_size: None,
            columns: Vec::new(),
            beside: Some(Vec::new()),
            unique: None,
        }
    }

    /// Records that are rows of these columns.
    pub fn rows(columns: Vec<Column>) -> Self {
        Schema { kind: Kind::Rows, columns, ..Schema::numbers(Element::little(DType::U8)) }
    }

    /// The tracks that are stored beside the values, with their numbers.
    pub fn stored_tracks(&self) -> impl Iterator<Item = (usize, &Track)> {
        self.tracks.iter().enumerate().filter(|(_, track)| track.made_of.is_empty())
    }

    /// Whether a row is one value without a name: the record itself.
    pub fn is_value(&self) -> bool {
        matches!(self.columns.as_slice(), [column] if column.name.is_empty())
    }

    /// What a row is to whoever asks for the record: the row, or its only value where that has no name.
    pub fn value_of(&self, row: Row) -> Value {
        if self.is_value() {
            row.into_iter().next().map_or(Value::Null, |(_, value)| value)
        } else {
            Value::Struct(row)
        }
    }

    /// The error of whoever needs numbers, where records are something else.
    ///
    /// # Errors
    /// `Config`.
    pub fn need_numbers(&self) -> Result<()> {
        match self.kind {
            Kind::Numbers => Ok(()),
            Kind::Json => Err(Error::config("the records are JSON, not numbers")
                .hint("make tokens of them with `windrow tokenize`, choose a key of numbers with @column@, or read records with @read_record@")),
            Kind::Rows => {
                let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
                Err(Error::config(format!("the records are rows of {}, not numbers", names.join(", ")))
                    .hint(
                        "open it with @column@ where a column holds the numbers of a record in each row; a table of one number a row is read with \
                         pandas or polars and given to @from_frame@; @read_rows@",
                    ))
            }
        }
    }
}

/// A run of bytes in a file: where values lie.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Location {
    /// Path or key.
    pub file: String,
    /// First byte.
    pub start: u64,
    /// Number of bytes.
    pub size: u64,
}

/// One file that a source reads.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileInfo {
    /// Path or key.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
}

impl FileInfo {
    /// Whether each read of it may ask another machine: it is named by a URL.
    pub fn is_far(&self) -> bool {
        is_url(&self.file)
    }
}

/// A record whose values lie as [`Schema::element`] says, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The number by which [`Source::object`] gives what holds them.
    pub object: u64,
    /// The byte in it where the first one is.
    pub start: u64,
    /// How many there are.
    pub len: u64,
}

/// Records by number: the number of records and their lengths from [`Lengths`], their bytes from here.
pub trait Source: Lengths {
    /// What the records have in common.
    fn schema(&self) -> &Schema;

    /// The values of a span: borrowed from the map where the layout allows it, else copied into `scratch`.
    ///
    /// # Errors
    /// `OutOfRange` when the span leaves the record; `Corrupt`, `Unsupported` for what is intact but not read, and `Io`, with the
    /// place.
    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>>;

    /// All values of a record: what [`Source::read`] gives for the span of its whole length, found in one go.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let len = self.length(record)?;
        self.read(Span { record, start: 0, len }, scratch)
    }

    /// The numbers of track `track` beside a span.
    ///
    /// # Errors
    /// As [`Source::read`]; `OutOfRange` when there is no such track.
    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let _ = (span, scratch);
        Err(Error::out_of_range("track", track, self.schema().tracks.len() as u64))
    }

    /// The columns of a record that is a row, in the order of [`Schema::columns`].
    ///
    /// # Errors
    /// As [`Source::read`]; `Config` where records are not rows.
    fn row(&self, record: u64) -> Result<Row> {
        let _ = record;
        Err(Error::config("the records are not rows of columns").hint("@columns@ chooses some"))
    }

    /// A record that is no numbers as one value: its row, or of `columns` only those, by their numbers in
    /// [`Schema::columns`]; the value where that is the record; what a JSON text says.
    ///
    /// # Errors
    /// As [`Source::row`]; `OutOfRange` for a column that is not there.
    fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
        let row = self.row(record)?;
        let Some(columns) = columns else { return Ok(self.schema().value_of(row)) };
        chosen(self.schema(), row, columns).map(Value::Struct)
    }

    /// The rows from `first` on, in their order: for whoever reads each once and never comes back, so that nothing is kept
    /// of what was read, neither in memory nor in the cache. They are those of [`Source::row`], unless a file is damaged in a way
    /// that its format cannot show: then each of the two may find other rows.
    fn rows_from(&self, first: u64) -> Rows<'_> {
        Box::new((first..self.len()).map(|record| self.row(record)))
    }

    /// What is beside the values of a record; empty when nothing does.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn extras(&self, record: u64) -> Result<Extras> {
        let _ = record;
        Ok(Extras::new())
    }

    /// Some of the [extras](Source::extras) of a record, by name; those that it lacks are left out.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
        let mut extras = self.extras(record)?;
        extras.retain(|name, _| names.iter().any(|asked| asked == name));
        Ok(extras)
    }

    /// The text beside the values of a record, its `text` among the extras: a prompt. Empty where there is none.
    ///
    /// # Errors
    /// As [`Source::extras`]; `Corrupt` when it is something else than text.
    fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
        match self.extras(record)?.remove("text") {
            None | Some(Value::Null) => Ok(""),
            Some(Value::Text(text)) => {
                *scratch = text;
                Ok(scratch)
            }
            Some(other) => Err(not_text(&other).record(record)),
        }
    }

    /// Says which spans are read soon, each with the step that needs it, the first step first: what is not in memory is
    /// asked for, and nothing is waited for. Only a hint: what cannot be found is left out.
    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        let _ = spans;
    }

    /// Asks the processor to fetch a span that is read next, where its bytes are in memory; changes nothing else.
    fn touch(&self, span: Span) {
        let _ = span;
    }

    /// Decodes what these spans are made of, on several threads where that is much, so that reading them takes it from
    /// memory. Does nothing where bytes lie as they are. What fails here fails again when it is read. Not
    /// [`Source::prefetch`]: a batch that is asked for by number waits for it, and a loader's threads decode side by side.
    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        let _ = spans;
    }

    /// Which bytes of which file hold the span; none hold the zeros that stand for a missing part, where those were asked
    /// for.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn locate(&self, span: Span) -> Result<Vec<Location>>;

    /// The files it reads.
    fn files(&self) -> Vec<FileInfo>;

    /// A hash of what decides the values: the same for a copy elsewhere, another one after an edit.
    ///
    /// # Errors
    /// `Io`.
    fn fingerprint(&self) -> Result<u64>;

    /// Name of the format it was read from.
    fn format(&self) -> &'static str;

    /// Where the values of a record lie, compared with the bytes there; `None` where they are made, or have tracks.
    /// [`Runs`] joins what lies end to end.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        let _ = record;
        Ok(None)
    }

    /// The object that [`Stored::object`] numbers.
    ///
    /// # Errors
    /// `OutOfRange`; what opening it says.
    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        Err(Error::out_of_range("object", number, 0))
    }

    /// All records end to end as one record, where they lie so: a view over the joined stream then asks for no lengths.
    fn joined(&self) -> Option<SharedSource> {
        None
    }

    /// What happens to the stored values on the way, where anything does: `scaler=zero,nan=spread`. Part of a plan's
    /// identity.
    fn treatment(&self) -> Option<String> {
        None
    }

    /// What a plan calls these records: format, number, fingerprint, and what happens to them; of some that were chosen, the word of
    /// all and then which.
    ///
    /// # Errors
    /// As [`Source::fingerprint`].
    fn word(&self) -> Result<String> {
        word_of(self)
    }

    /// Goes through what a column holds of some records, or a key of theirs, or what is beside their numbers under this name: in
    /// order, some records together, with the number of the first. It reads as little else as the format lets it, and keeps nothing.
    ///
    /// # Errors
    /// As [`Source::row`]; `Config` for a column that is not there; the first of `take`, which ends it.
    fn cells(
        &self,
        name: &str,
        records: Range<u64>,
        take: &mut dyn FnMut(u64, Cells<'_>) -> Result<()>,
    ) -> Result<()> {
        one_by_one(self, name, records, take)
    }
}

/// The word of records that were not chosen of others, see [`Source::word`].
pub(crate) fn word_of<S: Source + ?Sized>(source: &S) -> Result<String> {
    let treated = source.treatment().map_or(String::new(), |treatment| format!(":{treatment}"));
    Ok(format!("{}:{}:{:016x}{treated}", source.format(), source.len(), source.fingerprint()?))
}

// Some columns of a row, in the order in which they were asked for.
fn chosen(schema: &Schema, mut row: Row, columns: &[usize]) -> Result<Row> {
    let value = |number: &usize| {
        let column = schema.columns.get(*number);
        let column =
            column.ok_or_else(|| Error::out_of_range("column", number, schema.columns.len() as u64))?;
        Ok((column.name.clone(), row.remove(&column.name).unwrap_or(Value::Null)))
    };
    columns.iter().map(value).collect()
}

/// The numbers of columns by their names.
///
/// # Errors
/// `Config` for a name that is not there, with those that are, and for none at all or one twice.
pub fn chosen_columns(schema: &Schema, names: &[String]) -> Result<Vec<usize>> {
    let number = |name: &String| {
        let number = schema.columns.iter().position(|column| column.name == *name);
        number.filter(|_| !schema.is_value()).ok_or_else(|| {
            let error = Error::config(format!("no column is called {name:?}")).field("columns");
            if schema.is_value() {
                return error.hint("the records are values without a name");
            }
            let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
            error.hint(format!("columns: {}", names.join(", ")))
        })
    };
    let numbers: Vec<usize> = names.iter().map(number).collect::<Result<_>>()?;
    if numbers.is_empty() || (1..numbers.len()).any(|at| numbers[..at].contains(&numbers[at])) {
        Err(Error::config(format!("@columns={names:?}@: expected each once, and one at least"))
            .field("columns"))
    } else {
        Ok(numbers)
    }
}

// What is there where a text should be.
fn not_text(found: &Value) -> Error {
    let found: String = found.shown().to_string().chars().take(80).collect();
    Error::corrupt(format!("expected a text, found {found}")).field("text")
}

/// A source shared between threads.
pub type SharedSource = Arc<dyn Source>;

/// Checks that a span lies within its record; every source calls it first.
///
/// # Errors
/// `OutOfRange` naming the record.
pub fn check_span(span: Span, length: u64) -> Result<()> {
    match span.start.checked_add(span.len) {
        Some(end) if end <= length => Ok(()),
        _ => Err(Error::new(
            crate::error::Kind::OutOfRange,
            format!("values {}..{}+{} of a record of {length} values", span.start, span.start, span.len),
        )
        .record(span.record)),
    }
}
