//! A source around a source that scales each record by its own statistics.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::apply::{scaled_by, scaled_by_channel};
use super::border::Border;
use super::fit::Fit;
use super::measure::{Measured, measure_all};
use super::scaling::{Per, Scaling};
use super::{Extras, FileInfo, Kind, Location, Rows, Schema, SharedSource, Source, Stored};
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::record::{Decode, Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::{self, Object};

/// Records scaled by statistics of the whole record, or of a part of each: all channels of it together, or each by itself.
///
/// The values are those of the inner source; only what turns a stored number into the value changes, in the copy into the
/// batch, so a window reads its own bytes and no more. Channels that are scaled each by its own are converted to float64 first.
/// Stored numbers are de-normalised, measured and scaled in float64 and rounded once, to the dtype of the batch, unless
/// [`Precision::Single`](super::Precision::Single) is asked for. Statistics are computed once, in parallel, and kept in the cache folder: 16 bytes
/// per record, or per channel of one, mapped.
pub struct Scaled {
    inner: SharedSource,
    scaling: Scaling,
    until: Option<Border>,
    schema: Schema,
    rows: Arc<dyn Object>,
    /// Pairs of statistics of one record.
    width: usize,
}

/// Statistics of another version are made again.
const VERSION: u32 = 3;
const MAGIC: &[u8; 16] = b"windrow scale \0\0";
const HEAD_SIZE: u64 = 32;
const ROW_SIZE: u64 = 16;

impl Scaled {
    /// Computes the statistics of every record, or takes those that an earlier run kept. `stop` is asked now and then
    /// and ends the work.
    ///
    /// # Errors
    /// `Config` for JSON records, statistics of each sample, which a source does not know, or a record of which `fit` holds
    /// no value; `Unsupported` for IDs with flag bits or records that are scaled already; what reading the records says;
    /// `Interrupted` when asked to stop.
    pub fn new(inner: SharedSource, scaling: Scaling, stop: &dyn Fn() -> bool) -> Result<Scaled> {
        Scaled::of(inner, None, scaling, stop)
    }

    /// Computes or takes the statistics of what each record has before a border.
    ///
    /// # Errors
    /// As [`Scaled::new`].
    pub fn until(
        inner: SharedSource,
        border: Border,
        scaling: Scaling,
        stop: &dyn Fn() -> bool,
    ) -> Result<Scaled> {
        Scaled::of(inner, Some(border), scaling, stop)
    }

    fn of(
        inner: SharedSource,
        until: Option<Border>,
        scaling: Scaling,
        stop: &dyn Fn() -> bool,
    ) -> Result<Scaled> {
        if inner.schema().kind == Kind::Json {
            return Err(Error::config("JSON records hold text, which cannot be scaled"));
        }
        inner.schema().need_numbers()?;
        scaling.fit.map_or(Ok(()), Fit::check)?;
        if scaling.per == Per::Window {
            return Err(Error::config("@per=window@ of records that are not cut into windows"));
        }
        let measured = Measured { source: inner.as_ref(), scaling: &scaling, until: until.as_ref() };
        let key = cache_key(measured)?;
        let head = [&MAGIC[..], &key.to_le_bytes(), &inner.len().to_le_bytes()].concat();
        let width = scaling.rows_of(inner.schema());
        let rows = inner.len().checked_mul(width as u64);
        let size = rows.and_then(|rows| rows.checked_mul(ROW_SIZE)?.checked_add(HEAD_SIZE));
        let size = size.ok_or_else(|| Error::corrupt(format!("{} records are too many", inner.len())))?;
        let name = format!("{key:016x}.scale");
        let of = inner.files().into_iter().next().map_or_else(String::new, |first| first.file);
        let rows = store::kept(&name, &of, &head, size, &mut |out| measure_all(measured, stop, out))?;
        let mut schema = Schema { vocab_size: None, ..inner.schema().clone() };
        if width > 1 {
            schema.element = Element::little(DType::F64);
            schema.own_dtypes = false;
        }
        Ok(Scaled { inner, scaling, until, schema, rows, width })
    }

    /// Subtrahend and divisor of a record, or of each of its channels; 0 and 1 where all values are missing.
    ///
    /// # Errors
    /// What reading the kept statistics says.
    pub fn rows(&self, record: u64, out: &mut Vec<[f64; 2]>) -> Result<()> {
        let first = out.len();
        self.measured(record, out)?;
        out[first..].iter_mut().for_each(|row| *row = Scaling::shown(*row));
        Ok(())
    }

    fn measured(&self, record: u64, out: &mut Vec<[f64; 2]>) -> Result<()> {
        let size = self.width * ROW_SIZE as usize;
        let mut scratch = Vec::new();
        let bytes = self.rows.read(HEAD_SIZE + record * size as u64, size, &mut scratch)?;
        let numbers = bytes.as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number));
        let numbers: Vec<f64> = numbers.collect();
        out.extend(numbers.as_chunks::<2>().0);
        Ok(())
    }

    fn by_channel<'a>(
        &self,
        record: u64,
        values: &Values<'_>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Values<'a>> {
        let mut rows = Vec::with_capacity(self.width);
        self.measured(record, &mut rows)?;
        scaled_by_channel(values, record, &rows, scratch)
    }

    fn decode(&self, record: u64, stored: Decode) -> Result<Decode> {
        let mut scratch = Vec::new();
        let row = self.rows.read(HEAD_SIZE + record * ROW_SIZE, ROW_SIZE as usize, &mut scratch)?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&row[at..at + 8]);
            f64::from_le_bytes(bytes)
        };
        scaled_by([number(0), number(8)], self.scaling.precision, stored, record)
    }
}

// A fingerprint looks at the ends of files; their times tell of an edit in the middle.
fn cache_key(of: Measured<'_>) -> Result<u64> {
    let source = of.source;
    let mut hash = Xxh3::new();
    hash.update(&VERSION.to_le_bytes());
    hash.update(&source.fingerprint()?.to_le_bytes());
    hash.update(&source.len().to_le_bytes());
    hash.update(words(of.scaling, of.until).as_bytes());
    if let Some(border) = of.until {
        border.hash(&mut hash);
    }
    for FileInfo { file, size } in source.files() {
        hash.update(&size.to_le_bytes());
        hash.update(&store::changed_ns(&file).unwrap_or(0).to_le_bytes());
    }
    Ok(hash.digest())
}

// What a plan says of it.
fn words(scaling: &Scaling, until: Option<&Border>) -> String {
    match until {
        None => scaling.to_string(),
        Some(border) => format!("{scaling},until={border}"),
    }
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Scaled {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.inner.length(record)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.inner.lengths(first, out)
    }

    fn uniform(&self) -> Option<u64> {
        self.inner.uniform()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Scaled {
    crate::source::forward! { inner: read_track text row value rows_from extras beside prefetch touch decode_ahead locate files format word cells }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        if self.width == 1 {
            let values = self.inner.read(span, scratch)?;
            return Ok(Values { decode: self.decode(span.record, values.decode)?, ..values });
        }
        let mut inner = Vec::new();
        self.by_channel(span.record, &self.inner.read(span, &mut inner)?, scratch)
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        if self.width == 1 {
            let values = self.inner.read_whole(record, scratch)?;
            return Ok(Values { decode: self.decode(record, values.decode)?, ..values });
        }
        let mut inner = Vec::new();
        self.by_channel(record, &self.inner.read_whole(record, &mut inner)?, scratch)
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        hash.update(self.treatment().unwrap_or_default().as_bytes());
        if let Some(border) = &self.until {
            border.hash(&mut hash);
        }
        Ok(hash.digest())
    }

    fn treatment(&self) -> Option<String> {
        let own = words(&self.scaling, self.until.as_ref());
        Some(self.inner.treatment().map_or(own.clone(), |inner| format!("{inner},{own}")))
    }

    // What it gives does not lie anywhere.
    fn stored(&self, _record: u64) -> Result<Option<Stored>> {
        Ok(None)
    }

    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        Err(Error::out_of_range("object", number, 0))
    }

    // A scaler knows records, not a stream of them.
    fn joined(&self) -> Option<SharedSource> {
        None
    }
}
