//! Series that cannot be read in place (text, pickles): converted once into a file of the cache, and read from there. What
//! one value after the other can be told of goes through [`Shapes`]; tables write their columns with the [`Writer`].
//!
//! The file: a header of 80 bytes, the values one record after the other (little-endian, each record in the dtype that it
//! was written with), a row of 40 bytes per record (the bytes of values and of extras up to its end, where it begins and
//! how long it is in the file it was made from, its dtype), the extras as JSON texts. It is only ever read by the version
//! that wrote it; a copy that was damaged is an error, never a wrong place.
//!
//! All records are read as one dtype: int64 where all numbers are whole, else float32; or float64, where it is asked for. Floats of
//! text are kept as float64: a scaler measures them with all their digits.

mod event;
mod keys;
mod literal;
mod parts;
mod shapes;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;
use windrow_core::format::{Options, Probe};
use windrow_core::source::{Extras, FileInfo, Kind, Location, Schema, SharedSource, Source, check_span};
use windrow_core::store::{Draft, Object, cache_folder, cached, expanded};
use windrow_core::{DType, Decode, Element, Error, Lengths, Result, Span, Values};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub(super) use self::event::{Event, MOST_DEPTH, START, Sink, TARGET, word_of_target};
pub(super) use self::literal::Literal;
pub(super) use self::parts::Parts;
pub(super) use self::shapes::{Reading, Shapes};
pub(super) use self::writer::{Ended, Writer};

/// Part of the cache file's name: a new number makes everything be converted again.
const VERSION: &str = "series 6";
const MAGIC: [u8; 8] = *b"wrseries";
const HEADER: usize = 80;
const ROW: u64 = 40;
/// `channels` of `[T]`, and `uniform` where lengths differ.
const NONE: u64 = u64::MAX;

/// How the values of a file are passed to the [`Shapes`].
#[derive(Clone, Copy)]
pub(super) enum Parse {
    /// All of it at once.
    Whole(fn(&[u8], &mut Shapes<'_>) -> Result<()>),
    /// Each line, with its end, and the byte at which it begins: of a file that is not mapped no more than one is held.
    EachLine(fn(&[u8], u64, &mut Shapes<'_>) -> Result<()>),
}

/// Opens what `probe` sees by converting it once, or by taking what an earlier run converted: values are passed one by one.
///
/// # Errors
/// What `parse` says; as [`open_by`].
pub(super) fn open(
    format: &'static str,
    probe: &Probe,
    options: &Options,
    parse: Parse,
) -> Result<SharedSource> {
    open_reading(format, probe, options, Reading::of(options), parse)
}

/// Opens what `probe` sees as [`open`] does, where the format says more than the options do of what a series is.
///
/// # Errors
/// As [`open`].
pub(super) fn open_reading(
    format: &'static str,
    probe: &Probe,
    options: &Options,
    mut reading: Reading,
    parse: Parse,
) -> Result<SharedSource> {
    let how = reading.to_string();
    open_by(format, None, probe, options, &how, |object, draft, limit| {
        loop {
            let writer = Writer::new(draft, object.name(), limit)?;
            let mut shapes = Shapes::new(writer, object.size(), &reading);
            match (told(object, parse, &mut shapes), shapes.only_key()) {
                // The first record has no `sequence`, and numbers under one other key.
                (Err(_), Some(key)) => reading.column = Some(key),
                (content, _) => {
                    let content = content?;
                    let (writer, channels) = shapes.finish()?;
                    return writer.finish(channels, content);
                }
            }
            draft.cut(0)?;
        }
    })
}

/// Tells all values of a file, and gives its hash.
fn told(object: &dyn Object, parse: Parse, shapes: &mut Shapes<'_>) -> Result<u64> {
    let mut scratch = Vec::new();
    match (parse, object.mapped()) {
        (Parse::Whole(parse), _) => {
            let bytes = whole(object, &mut scratch)?;
            parse(bytes, shapes)?;
            Ok(xxh3_64(bytes))
        }
        (Parse::EachLine(parse), Some(bytes)) => {
            let mut start = 0;
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                parse(line, start, shapes)?;
                start += line.len() as u64;
            }
            Ok(xxh3_64(bytes))
        }
        (Parse::EachLine(parse), None) => {
            let mut parts = Parts::new(object);
            loop {
                let start = parts.place();
                let end = parts.until([b'\n'; 3], usize::MAX, &mut scratch)?;
                scratch.extend(end);
                if !scratch.is_empty() {
                    parse(&scratch, start, shapes)?;
                }
                if end.is_none() {
                    return Ok(parts.hash());
                }
            }
        }
    }
}

/// Opens what `convert` makes once, within a number of bytes, of the file that `probe` sees; `how` says what else than the
/// file decides what it makes, `unique` which metadata no two records share.
///
/// # Errors
/// What `convert` says; `Config` when the cache would grow beyond `cache_limit`, or for options that speak of tokens: of dtypes there is
/// float64 alone.
pub(super) fn open_by(
    format: &'static str,
    unique: Option<&'static str>,
    probe: &Probe,
    options: &Options,
    how: &str,
    convert: impl FnOnce(&dyn Object, &mut Draft, u64) -> Result<()>,
) -> Result<SharedSource> {
    let is_wide = options.dtype == Some(DType::F64);
    let of_ids = Options { dtype: options.dtype.filter(|_| !is_wide), ..options.clone() };
    of_ids.refuse_those_of_ids(
        "numbers of this file say themselves what they are",
        "leave the option out; @dtype=float64@ reads series with all their digits",
    )?;
    let object = expanded(&probe.store, &probe.key, options.cache_limit)?;
    if object.size() == 0 {
        return Err(Error::corrupt("expected series, found 0 bytes")
            .at(object.name())
            .hint("the copy looks unfinished"));
    }
    let limit = options.cache_limit.unwrap_or_else(|| usual_limit(object.size()));
    let made = cached(object.as_ref(), "converted", &format!("{format} {VERSION}{how}"), |draft| {
        log::info!("converting {} once, into {}", object.name(), cache_folder()?.display());
        convert(object.as_ref(), draft, limit)
    })?;
    let mut converted = Converted::new(format, object, made, is_wide)?;
    converted.schema.unique = unique;
    Ok(Arc::new(converted))
}

/// A number written with one digit and a comma becomes 8 bytes, an empty list a row: 14 times the file at most. What
/// names the same values many times (pickles, YAML's aliases) could write any number of them.
fn usual_limit(size: u64) -> u64 {
    size.saturating_mul(16).saturating_add(64 << 20)
}

fn whole<'a>(object: &'a dyn Object, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    match object.mapped() {
        Some(bytes) => Ok(bytes),
        None => {
            let size = usize::try_from(object.size()).map_err(|_| {
                Error::unsupported(format!("a file of {} bytes on this machine", object.size()))
                    .at(object.name())
            })?;
            object.read(0, size, scratch)
        }
    }
}

/// What the header of a converted file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    dtype: DType,
    channels: u64,
    records: u64,
    /// Bytes of the values of all records.
    values_size: u64,
    extras_size: u64,
    uniform: u64,
    /// Hash of the whole file it was made from, and of the columns of it that were asked for.
    content: u64,
    /// Bytes of the values as they are read, float32 for literals.
    told_size: u64,
    /// Bytes of the extras by which a plan knows them.
    known_size: u64,
}

impl Header {
    fn bytes(self) -> [u8; HEADER] {
        let words = self.words(self.values_size, self.extras_size);
        let words = words.into_iter().chain([self.told_size, self.known_size]);
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        for (place, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// What it says of the records, by which a plan knows them: how wide a literal is kept changes none of its values.
    fn identity(self) -> impl Iterator<Item = u8> {
        let words = self.words(self.told_size, self.known_size);
        MAGIC.into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes))
    }

    fn words(self, values_size: u64, extras_size: u64) -> [u64; 7] {
        let dtype = u64::from(self.dtype == DType::F32);
        [dtype, self.channels, self.records, values_size, extras_size, self.uniform, self.content]
    }

    fn read(bytes: &[u8]) -> Option<Header> {
        let word = |i: usize| Some(u64::from_le_bytes(bytes.get(8 * i..8 * i + 8)?.try_into().ok()?));
        (bytes.get(..8)? == MAGIC && bytes.len() == HEADER).then_some(())?;
        let dtype = if word(1)? == 0 { DType::I64 } else { DType::F32 };
        Some(Header {
            dtype,
            channels: word(2)?,
            records: word(3)?,
            values_size: word(4)?,
            extras_size: word(5)?,
            uniform: word(6)?,
            content: word(7)?,
            told_size: word(8)?,
            known_size: word(9)?,
        })
    }

    /// Where the rows and the extras begin, and how large the file must be.
    fn parts(&self) -> Option<[u64; 3]> {
        let rows = self.values_size.checked_add(HEADER as u64)?;
        let extras = self.records.checked_mul(ROW)?.checked_add(rows)?;
        Some([rows, extras, extras.checked_add(self.extras_size)?])
    }
}

/// What a record's row says.
struct Row {
    values: Range<u64>,
    dtype: DType,
    /// They are floats without a dtype of their own.
    is_literal: bool,
    extras: Range<u64>,
    place: Range<u64>,
}

/// Records of a file that was converted.
struct Converted {
    format: &'static str,
    object: Arc<dyn Object>,
    made: Arc<dyn Object>,
    header: Header,
    rows: u64,
    extras: u64,
    /// Numbers per value.
    width: u64,
    schema: Schema,
}

impl Converted {
    fn new(
        format: &'static str,
        object: Arc<dyn Object>,
        made: Arc<dyn Object>,
        is_wide: bool,
    ) -> Result<Self> {
        let damaged = || {
            Error::corrupt("a file of the cache is damaged")
                .at(made.name())
                .hint("delete it: it is made again")
        };
        let mut scratch = Vec::new();
        let head = made.read(0, HEADER, &mut scratch).map_err(|_| damaged())?;
        let header = Header::read(head).filter(|h| h.channels != 0).ok_or_else(damaged)?;
        let [rows, extras, end] = header.parts().ok_or_else(damaged)?;
        if end != made.size() {
            return Err(damaged());
        }
        let channels = (header.channels != NONE).then_some(header.channels);
        let schema = Schema {
            kind: Kind::Numbers,
            channels: channels.map(usize::try_from).transpose().map_err(|_| damaged())?,
            beside: (header.extras_size == 0).then(Vec::new),
            ..Schema::numbers(Element::little(if is_wide { DType::F64 } else { header.dtype }))
        };
        Ok(Converted {
            format,
            object,
            header,
            rows,
            extras,
            width: channels.unwrap_or(1),
            schema,
            made: made.clone(),
        })
    }

    fn row(&self, record: u64) -> Result<Row> {
        if record >= self.header.records {
            return Err(Error::out_of_range("record", record, self.header.records));
        }
        let mut scratch = Vec::new();
        // The ends of the record before are this one's starts.
        let before = u64::from(record > 0);
        let size = (ROW + before * ROW) as usize;
        let bytes = self.made.read(self.rows + (record - before) * ROW, size, &mut scratch)?;
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (values, extras, words) = match *words.as_slice() {
            [values, extras, _, _, _, ref words @ ..] if before == 1 => (values, extras, words),
            ref words => (0, 0, words),
        };
        let &[values_end, extras_end, start, place, dtypes] = words else { return Err(self.damaged(record)) };
        let [dtype, told] = [dtypes & u64::from(u32::MAX), dtypes >> 32].map(DType::from_number);
        let (Some(dtype), Some(told)) = (dtype, told) else { return Err(self.damaged(record)) };
        let row = Row {
            values: values..values_end,
            dtype,
            is_literal: dtype != told,
            extras: extras..extras_end,
            place: start..start.saturating_add(place),
        };
        let fits = |range: &Range<u64>, end: u64| range.start <= range.end && range.end <= end;
        let is_whole = fits(&row.values, self.header.values_size)
            && fits(&row.extras, self.header.extras_size)
            && fits(&row.place, self.object.size())
            && (row.values.end - row.values.start).is_multiple_of(self.value_size(dtype))
            && (row.values.is_empty() || dtype.is_integer() || self.header.dtype == DType::F32)
            && (!row.is_literal || (dtype, told) == (DType::F64, DType::F32));
        if is_whole { Ok(row) } else { Err(self.damaged(record)) }
    }

    /// Bytes of a value; a damaged header may claim any width.
    fn value_size(&self, dtype: DType) -> u64 {
        self.width.saturating_mul(dtype.size() as u64)
    }

    /// The metadata of a record, where its text is to be read.
    fn extras_where(&self, record: u64, is_read: impl FnOnce(&[u8]) -> bool) -> Result<Extras> {
        let row = self.row(record)?;
        let mut scratch = Vec::new();
        let size = (row.extras.end - row.extras.start) as usize;
        let text = match size {
            0 => &[],
            _ => self.made.read(self.extras + row.extras.start, size, &mut scratch)?,
        };
        if text.is_empty() || !is_read(text) {
            return Ok(Extras::new());
        }
        let extras: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(text).map_err(|cause| self.damaged(record).caused_by(cause))?;
        Ok(extras.into())
    }

    /// How many values a record has.
    fn values(&self, row: &Row) -> u64 {
        (row.values.end - row.values.start) / self.value_size(row.dtype)
    }

    fn damaged(&self, record: u64) -> Error {
        Error::corrupt("a file of the cache is damaged")
            .at(self.made.name())
            .record(record)
            .hint("delete it: it is made again")
    }

    /// Where the bytes of a span are in the converted file, and what they are.
    fn place(&self, span: Span) -> Result<(u64, u64, Row)> {
        let row = self.row(span.record)?;
        check_span(span, self.values(&row))?;
        // All of them lie within the file: the row does, and the span within the row.
        let size = self.value_size(row.dtype);
        Ok((HEADER as u64 + row.values.start + span.start * size, span.len * size, row))
    }
}

impl Lengths for Converted {
    fn len(&self) -> u64 {
        self.header.records
    }

    fn length(&self, record: u64) -> Result<u64> {
        Ok(self.values(&self.row(record)?))
    }

    fn uniform(&self) -> Option<u64> {
        (self.header.uniform != NONE).then_some(self.header.uniform)
    }
}

impl Source for Converted {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (start, size, row) = self.place(span)?;
        let size = usize::try_from(size)
            .map_err(|_| Error::unsupported(format!("{} values at once on this machine", span.len)))?;
        let bytes = self.made.read(start, size, scratch)?;
        let channels = self.schema.channels.unwrap_or(1);
        let element = Element::little(row.dtype);
        // Whole numbers among floats, and float64, are read as the float32 next to them.
        let decode = match self.schema.element.dtype {
            DType::F64 => Decode::Plain,
            _ if row.is_literal => Decode::Literal,
            DType::F32 if row.dtype != DType::F32 => Decode::Single,
            _ => Decode::Plain,
        };
        Ok(Values { bytes, element, channels, decode })
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        self.extras_where(record, |_| true)
    }

    fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
        // Most records have none of the names: no text is parsed for those.
        let mut extras = self.extras_where(record, |text| {
            names.iter().any(|name| memmem::find(text, name.as_bytes()).is_some() || !name.is_ascii())
        })?;
        extras.retain(|name, _| names.iter().any(|asked| asked == name));
        Ok(extras)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((start, size, _)) = self.place(span) {
                self.made.prefetch(start, size);
            }
        }
    }

    fn touch(&self, span: Span) {
        if let Ok((start, size, _)) = self.place(span) {
            self.made.touch(start, size);
        }
    }

    /// The record as it was written: its values have no places of their own there.
    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let row = self.row(span.record)?;
        check_span(span, self.values(&row))?;
        let size = row.place.end - row.place.start;
        Ok(vec![Location { file: self.object.name().to_string(), start: row.place.start, size }])
    }

    fn files(&self) -> Vec<FileInfo> {
        vec![FileInfo { file: self.object.name().to_string(), size: self.object.size() }]
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(self.format.as_bytes());
        hash.update(&self.header.identity().collect::<Vec<u8>>());
        if self.schema.element.dtype == DType::F64 {
            hash.update(b"float64");
        }
        Ok(hash.digest())
    }

    fn format(&self) -> &'static str {
        self.format
    }
}
