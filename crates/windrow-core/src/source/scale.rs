//! A source around a source that scales each record by its own statistics, in the copy into the batch.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::statistics::Statistics;
use super::{Extras, FileInfo, Kind, Location, Schema, SharedSource, Source, floats};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::record::{Decode, Lengths, Span, Values};
use crate::store::{self, Object};
use crate::threads::{beside, cores};

/// What a record is scaled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Its largest magnitude: `x / max|x|`; a record of zeros is left as it is.
    Max,
    /// Mean and population standard deviation: `(x - mean) / deviation`; `x - mean` where the deviation is 0 or not finite.
    Zero,
}

/// What NaN does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nan {
    /// It spreads: the statistics of its record are NaN, and so are its scaled values.
    #[default]
    Spread,
    /// It counts as missing: left out of the statistics, 0 in the batch, and never learned.
    Mask,
}

impl Scale {
    /// `max`, `zero`.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Max => "max",
            Scale::Zero => "zero",
        }
    }

    // (subtrahend, divisor)
    fn of(self, statistics: &Statistics) -> [f32; 2] {
        match self {
            Scale::Max => [0.0, if statistics.most() == 0.0 { 1.0 } else { statistics.most() }],
            Scale::Zero => {
                let deviation = statistics.deviation();
                let divides = deviation != 0.0 && deviation.is_finite();
                [statistics.mean(), if divides { deviation } else { 1.0 }]
            }
        }
    }
}

impl Nan {
    /// `spread`, `mask`.
    pub fn name(self) -> &'static str {
        match self {
            Nan::Spread => "spread",
            Nan::Mask => "mask",
        }
    }
}

/// Records scaled by statistics of the whole record, all channels of it together.
///
/// The values are those of the inner source; only what turns a stored number into the value changes, so a window reads
/// its own bytes and no more. Statistics are those of the values as float32, de-normalised where the inner source says
/// so, and accumulated in float64. They are computed once, in parallel, and kept in the cache folder: 8 bytes per
/// record, mapped.
pub struct Scaled {
    inner: SharedSource,
    scale: Scale,
    nan: Nan,
    schema: Schema,
    rows: Arc<dyn Object>,
}

/// Statistics of another version are made again.
const VERSION: u32 = 1;
const MAGIC: &[u8; 16] = b"windrow scale \0\0";
const HEAD_SIZE: u64 = 32;
const ROW_SIZE: u64 = 8;
/// Numbers taken in at a time, at most: they stay in the processor's cache.
const PART: u64 = 1 << 15;
/// Records whose statistics are held until they are written.
const BLOCK: u64 = 1 << 15;
/// Records that a thread takes at a time.
const TAKE: usize = 64;

impl Scaled {
    /// Computes the statistics of every record, or takes those that an earlier run kept. `stop` is asked now and then
    /// and ends the work.
    ///
    /// # Errors
    /// `Config` for JSON records, `Unsupported` for ids with flag bits or records that are scaled already; what reading
    /// the records says; `Interrupted` when asked to stop.
    pub fn new(inner: SharedSource, scale: Scale, nan: Nan, stop: &dyn Fn() -> bool) -> Result<Scaled> {
        if inner.schema().kind == Kind::Json {
            return Err(Error::config("JSON records hold text, which cannot be scaled"));
        }
        let key = cache_key(inner.as_ref(), scale, nan)?;
        let head = [&MAGIC[..], &key.to_le_bytes(), &inner.len().to_le_bytes()].concat();
        let size = inner.len().checked_mul(ROW_SIZE).and_then(|size| size.checked_add(HEAD_SIZE));
        let size = size.ok_or_else(|| Error::corrupt(format!("{} records are too many", inner.len())))?;
        let name = format!("{key:016x}.scale");
        let rows =
            store::kept(&name, &head, size, &mut |out| measure_all(inner.as_ref(), scale, nan, stop, out))?;
        let schema = Schema { vocab_size: None, ..inner.schema().clone() };
        Ok(Scaled { inner, scale, nan, schema, rows })
    }

    fn decode(&self, record: u64, stored: Decode) -> Result<Decode> {
        let mut scratch = Vec::new();
        let row = self.rows.read(HEAD_SIZE + record * ROW_SIZE, ROW_SIZE as usize, &mut scratch)?;
        let number = |at: usize| f32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        let (mul, add) = denormalising(stored, record)?;
        Ok(Decode::Affine { mul, add, sub: number(0), div: number(4) })
    }
}

// What the inner source does to a stored number before it is scaled.
fn denormalising(stored: Decode, record: u64) -> Result<(f32, f32)> {
    match stored {
        Decode::Plain | Decode::Single => Ok((1.0, 0.0)),
        Decode::Affine { mul, add, sub: 0.0, div: 1.0 } => Ok((mul, add)),
        _ => Err(Error::unsupported("the records are scaled already").record(record)),
    }
}

// A fingerprint looks at the ends of files; their times tell of an edit in the middle.
fn cache_key(source: &dyn Source, scale: Scale, nan: Nan) -> Result<u64> {
    let mut hash = Xxh3::new();
    hash.update(&VERSION.to_le_bytes());
    hash.update(&source.fingerprint()?.to_le_bytes());
    hash.update(&source.len().to_le_bytes());
    for word in [scale.name(), nan.name()] {
        hash.update(word.as_bytes());
    }
    for FileInfo { file, size } in source.files() {
        hash.update(&size.to_le_bytes());
        hash.update(&store::changed_ns(&file).unwrap_or(0).to_le_bytes());
    }
    Ok(hash.digest())
}

fn measure_all(
    source: &dyn Source,
    scale: Scale,
    nan: Nan,
    stop: &dyn Fn() -> bool,
    out: &mut dyn Write,
) -> Result<()> {
    log::info!("measuring {} records for scaler={}", source.len(), scale.name());
    let mut rows = Vec::new();
    let mut start = 0;
    while start < source.len() {
        let n = BLOCK.min(source.len() - start);
        rows.clear();
        rows.resize(n as usize, [0.0; 2]);
        measure_block(source, scale, nan, stop, start, &mut rows)?;
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        out.write_all(&bytes).map_err(|e| {
            Error::new(ErrorKind::Io, "cannot write the statistics of the records").caused_by(e)
        })?;
        start += n;
    }
    Ok(())
}

// Each row is one record's, whoever computes it: the threads change nothing but the time.
fn measure_block(
    source: &dyn Source,
    scale: Scale,
    nan: Nan,
    stop: &dyn Fn() -> bool,
    start: u64,
    rows: &mut [[f32; 2]],
) -> Result<()> {
    let threads = cores().min(rows.len().div_ceil(TAKE));
    let parts = Mutex::new((start..).step_by(TAKE).zip(rows.chunks_mut(TAKE)));
    let ended = AtomicBool::new(false);
    let work = |stop: &dyn Fn() -> bool| -> Result<()> {
        let mut measure = Measure { source, nan, scratch: Vec::new(), values: Vec::new() };
        loop {
            // An iterator is whole between calls, so a poisoned lock is still a good one.
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((first, part)) = next else { return Ok(()) };
            for (row, record) in part.iter_mut().zip(first..) {
                let done = measure.record(record, &|| ended.load(Ordering::Relaxed) || stop());
                match done {
                    Ok(statistics) => *row = scale.of(&statistics),
                    Err(error) => {
                        ended.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        }
    };
    let mut done = beside(threads, || work(stop), || work(&|| false));
    // Those that were told to end because of another's error come after it.
    done.sort_by_key(|done| done.as_ref().err().is_none_or(|e| e.kind() == ErrorKind::Interrupted));
    done.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

struct Measure<'a> {
    source: &'a dyn Source,
    nan: Nan,
    scratch: Vec<u8>,
    values: Vec<f32>,
}

impl Measure<'_> {
    fn record(&mut self, record: u64, stop: &dyn Fn() -> bool) -> Result<Statistics> {
        store::whole(|| self.measured(record, stop))
    }

    fn measured(&mut self, record: u64, stop: &dyn Fn() -> bool) -> Result<Statistics> {
        let length = self.source.length(record)?;
        let most = (PART / self.source.schema().channels.unwrap_or(1) as u64).max(1);
        let mut statistics = Statistics::default();
        let mut start = 0;
        while start < length {
            if stop() {
                return Err(Error::new(ErrorKind::Interrupted, "stopped while measuring the records"));
            }
            let len = most.min(length - start);
            let values = self.source.read(Span { record, start, len }, &mut self.scratch)?;
            floats::check(&values, record)?;
            denormalising(values.decode, record)?;
            self.values.clear();
            floats::append(&values, &mut self.values);
            if self.nan == Nan::Mask {
                self.values.retain(|x| !x.is_nan());
            }
            statistics.add(&self.values);
            start += len;
        }
        Ok(statistics)
    }
}

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
}

impl Source for Scaled {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let values = self.inner.read(span, scratch)?;
        Ok(Values { decode: self.decode(span.record, values.decode)?, ..values })
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let values = self.inner.read_whole(record, scratch)?;
        Ok(Values { decode: self.decode(record, values.decode)?, ..values })
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.inner.read_track(track, span, scratch)
    }

    fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
        self.inner.text(record, scratch)
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        self.inner.extras(record)
    }

    fn advise(&self, spans: &[Span]) {
        self.inner.advise(spans);
    }

    fn touch(&self, span: Span) {
        self.inner.touch(span);
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        self.inner.decode_ahead(spans);
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        self.inner.locate(span)
    }

    fn files(&self) -> Vec<FileInfo> {
        self.inner.files()
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        hash.update(self.treatment().unwrap_or_default().as_bytes());
        Ok(hash.digest())
    }

    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn treatment(&self) -> Option<String> {
        let own = format!("scaler={},nan={}", self.scale.name(), self.nan.name());
        Some(self.inner.treatment().map_or(own.clone(), |inner| format!("{inner},{own}")))
    }
}
