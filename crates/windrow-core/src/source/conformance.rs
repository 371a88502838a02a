//! What every source promises, as a check that any source can be put through.

use super::{Kind, Location, Source};
use crate::array::{DType, Element};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::record::{Decode, Span, Values};
use crate::row::{Row, Value};

/// Records looked at; of more, the first, the last, and some between.
const MOST_RECORDS: u64 = 300;
/// Values looked at, at the beginning and at the end of a record.
const MOST_VALUES: u64 = 1 << 16;

/// Puts a source through every promise of [`Source`] and [`Lengths`](crate::Lengths): lengths and reads agree, spans are parts of the
/// whole, what is outside is refused, places are in the files, a used scratch and a second thread change nothing.
///
/// A record may be unreadable; then its error must be `Corrupt`, or `Unsupported` for what is intact but not read, name the file
/// and the record, and be the same every time.
///
/// # Errors
/// `Mismatch` saying which promise is broken, at which record, expected and found; what the source says of its own
/// failures in places that must not fail.
///
/// ```
/// use windrow_core::source::{FileInfo, Location, Schema, Source, check_span, conformance};
/// use windrow_core::{DType, Decode, Element, Error, Kind, Lengths, Result, Span, Values};
///
/// /// One record of bytes in memory.
/// struct Bytes(Vec<u8>, Schema);
///
/// impl Lengths for Bytes {
///     fn len(&self) -> u64 {
///         1
///     }
///     fn length(&self, record: u64) -> Result<u64> {
///         match record {
///             0 => Ok(self.0.len() as u64),
///             _ => Err(Error::new(Kind::OutOfRange, "there is one record").record(record)),
///         }
///     }
/// }
///
/// impl Source for Bytes {
///     fn schema(&self) -> &Schema {
///         &self.1
///     }
///     fn read<'a>(&'a self, span: Span, _scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
///         check_span(span, self.length(span.record)?)?;
///         let bytes = &self.0[span.start as usize..][..span.len as usize];
///         Ok(Values { bytes, element: self.1.element, channels: 1, decode: Decode::Plain })
///     }
///     fn locate(&self, span: Span) -> Result<Vec<Location>> {
///         check_span(span, self.length(span.record)?)?;
///         Ok(vec![Location { file: "memory".into(), start: span.start, size: span.len }])
///     }
///     fn files(&self) -> Vec<FileInfo> {
///         vec![FileInfo { file: "memory".into(), size: self.0.len() as u64 }]
///     }
///     fn fingerprint(&self) -> Result<u64> {
///         Ok(self.0.iter().fold(0, |sum, byte| sum * 31 + u64::from(*byte)))
///     }
///     fn format(&self) -> &'static str {
///         "bytes"
///     }
/// }
///
/// conformance::check(&Bytes(vec![1, 2, 3], Schema::numbers(Element::little(DType::U8))))?;
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub fn check(source: &dyn Source) -> Result<()> {
    check_all(source, true)
}

/// As [`check`], for a source of damaged files whose format has several ways to a row and no checksum: a row that was asked for again,
/// or in its order, may then be another one.
///
/// # Errors
/// As [`check`].
pub fn check_damaged(source: &dyn Source) -> Result<()> {
    check_all(source, false)
}

fn check_all(source: &dyn Source, is_intact: bool) -> Result<()> {
    check_whole(source)?;
    if source.schema().kind == Kind::Rows {
        return check_rows(source, is_intact);
    }
    check_outside(source)?;
    let records = some_records(source.len());
    for &record in &records {
        check_record(source, record)?;
    }
    check_threads(source, &records)
}

/// Checks that the bytes at the places that [`Source::locate`] gives are those that reading gives, for formats that
/// store records as they are. `bytes_at` reads a place.
///
/// # Errors
/// `Mismatch` as [`check`]; what `bytes_at` says.
pub fn check_located(source: &dyn Source, bytes_at: &dyn Fn(&Location) -> Result<Vec<u8>>) -> Result<()> {
    let mut scratch = Vec::new();
    for record in some_records(source.len()) {
        for span in windows(source, record)? {
            let Ok(values) = source.read(span, &mut scratch) else { continue };
            let mut found = Vec::new();
            for place in source.locate(span)? {
                found.extend(bytes_at(&place)?);
            }
            same("the bytes at the places of a span", found.as_slice(), values.bytes, record)?;
        }
    }
    Ok(())
}

fn check_whole(source: &dyn Source) -> Result<()> {
    let schema = source.schema();
    same("the number of records, asked again", source.len(), source.len(), 0)?;
    same("is_empty", source.is_empty(), source.len() == 0, 0)?;
    same("the fingerprint, asked again", source.fingerprint()?, source.fingerprint()?, 0)?;
    keeps(!source.format().is_empty(), "the format has a name", 0)?;
    keeps(schema.channels != Some(0), "a record has channels", 0)?;
    keeps(source.is_empty() || !source.files().is_empty(), "records come from files", 0)?;
    if let Some(uniform) = source.uniform() {
        for record in some_records(source.len()) {
            // A record that is not as long as all must be is an error where it is asked for.
            match source.length(record) {
                Ok(length) => same("the length, where all are equal", length, uniform, record)?,
                Err(error) => check_unreadable(&error, record)?,
            }
        }
    }
    Ok(())
}

// Rows have the columns that are declared, and no numbers.
fn check_rows(source: &dyn Source, is_intact: bool) -> Result<()> {
    let names: Vec<&str> = source.schema().columns.iter().map(|column| column.name.as_str()).collect();
    for record in 0..source.len() {
        keeps(source.length(record)? == 1, "a row has the length 1", record)?;
        let span = Span { record, start: 0, len: 1 };
        keeps(source.read(span, &mut Vec::new()).is_err(), "a row has no numbers", record)?;
        source.prefetch(&mut std::iter::once((span, 0)));
        match (source.row(record), source.row(record)) {
            (Ok(row), Ok(again)) => {
                keeps(row.names().eq(names.iter().copied()), "a row has the declared columns", record)?;
                if is_intact {
                    // NaN is not NaN.
                    same("a row, asked again", format!("{row:?}"), format!("{again:?}"), record)?;
                }
                check_value(source, row, record, is_intact)?;
                source.locate(span)?;
            }
            (Err(error), again) => {
                check_unreadable(&error, record)?;
                keeps(again.is_err(), "a row that cannot be read is never there", record)?;
            }
            (Ok(_), Err(error)) => return Err(error),
        }
    }
    for record in [source.len(), u64::MAX] {
        refuses("a row that is not there", source.row(record), record)?;
        refuses("a value that is not there", source.value(record, None), record)?;
        refuses("length of a record that is not there", source.length(record), record)?;
    }
    let len = source.len();
    [0, len / 2, len.saturating_sub(1), len]
        .iter()
        .try_for_each(|first| check_in_order(source, *first, is_intact))
}

// Rows that are read one after the other are those that are read by number.
fn check_in_order(source: &dyn Source, first: u64, is_intact: bool) -> Result<()> {
    const MOST: u64 = 100;
    let end = source.len().min(first + MOST);
    let mut rows = source.rows_from(first);
    for record in first..end {
        match rows.next() {
            Some(Ok(row)) => {
                // What says where a row is may be damaged where the row is not.
                match source.row(record) {
                    Ok(_) if !is_intact => {}
                    Ok(found) => {
                        same("a row, in its order", format!("{row:?}"), format!("{found:?}"), record)?
                    }
                    Err(error) => check_unreadable(&error, record)?,
                }
            }
            Some(Err(error)) => return check_unreadable(&error, record),
            None => return Err(broken("rows in their order end with the last one", record)),
        }
    }
    if end < source.len() || rows.next().is_none() {
        Ok(())
    } else {
        Err(broken("rows in their order end with the last one", end))
    }
}

// A row as one value, and its columns by number, the last one first.
fn check_value(source: &dyn Source, row: Row, record: u64, is_intact: bool) -> Result<()> {
    let schema = source.schema();
    let chosen: Vec<usize> = (0..schema.columns.len()).rev().collect();
    let turned: Row = {
        let mut row = row.clone();
        let names = chosen.iter().map(|number| &schema.columns[*number].name);
        names.filter_map(|name| Some((name.clone(), row.remove(name)?))).collect()
    };
    for (found, expected) in [
        (source.value(record, None), schema.value_of(row)),
        (source.value(record, Some(&chosen)), Value::Struct(turned)),
    ] {
        let found = found?;
        if is_intact {
            same("a row as a value", format!("{found:?}"), format!("{expected:?}"), record)?;
        }
    }
    let none = source.value(record, Some(&[chosen.len()]));
    refuses("a column that is not there", none, record)
}

fn check_outside(source: &dyn Source) -> Result<()> {
    let mut scratch = Vec::new();
    for record in [source.len(), source.len().saturating_add(1), u64::MAX] {
        let span = Span { record, start: 0, len: 1 };
        refuses("length of a record that is not there", source.length(record), record)?;
        refuses("read of a record that is not there", source.read(span, &mut scratch), record)?;
        refuses("locate of a record that is not there", source.locate(span), record)?;
        source.prefetch(&mut std::iter::once((span, 0)));
    }
    Ok(())
}

fn check_record(source: &dyn Source, record: u64) -> Result<()> {
    let schema = source.schema();
    let length = match source.length(record) {
        Ok(length) => length,
        Err(error) => {
            check_unreadable(&error, record)?;
            return same_error(&error, source.length(record), record);
        }
    };
    same("the length, asked again", source.length(record)?, length, record)?;
    let all = Span { record, start: 0, len: length };
    let (mut one, mut other) = (Vec::new(), Vec::new());
    match (source.read_whole(record, &mut one), source.read(all, &mut other)) {
        (Ok(found), Ok(expected)) => {
            keeps(found.bytes == expected.bytes, "a record read whole is its whole span", record)?;
        }
        (Err(error), expected) | (expected, Err(error)) => same_error(&error, expected, record)?,
    }
    check_spans_outside(source, record, length)?;
    for span in windows(source, record)? {
        let mut scratch = vec![0xa5; 100];
        let whole = match source.read(span, &mut scratch) {
            Ok(values) => values,
            Err(error) => {
                check_unreadable(&error, record)?;
                same_error(&error, source.read(span, &mut Vec::new()), record)?;
                continue;
            }
        };
        check_values(&whole, span, schema.element, schema.channels.unwrap_or(1))?;
        if schema.kind == Kind::Json {
            keeps(std::str::from_utf8(whole.bytes).is_ok(), "a JSON record is UTF-8", record)?;
        }
        let read = |part, scratch: &mut Vec<u8>| source.read(part, scratch).map(|v| v.bytes.to_vec());
        check_parts(source, span, &whole, &read)?;
        for (track, described) in schema.tracks.iter().enumerate() {
            let mut scratch = Vec::new();
            let whole = source.read_track(track, span, &mut scratch)?;
            check_values(&whole, span, described.element, 1)?;
            let read = |part, scratch: &mut Vec<u8>| {
                source.read_track(track, part, scratch).map(|v| v.bytes.to_vec())
            };
            check_parts(source, span, &whole, &read)?;
        }
        check_places(source, span)?;
        check_stored(source, span, length, &whole)?;
        source.prefetch(&mut std::iter::once((span, 0)));
    }
    check_extras(source, record)?;
    let no_track = schema.tracks.len();
    let nothing = Span { record, start: 0, len: 0 };
    refuses("a track that is not there", source.read_track(no_track, nothing, &mut Vec::new()), record)
}

// At the location that is given for a record, its values are as they are read.
fn check_stored(source: &dyn Source, span: Span, length: u64, values: &Values<'_>) -> Result<()> {
    let Some(stored) = source.stored(span.record)? else { return Ok(()) };
    let schema = source.schema();
    same("the length of a record that lies somewhere", stored.len, length, span.record)?;
    keeps(values.decode == Decode::Plain, "values that lie somewhere are plain", span.record)?;
    same("the type of values that lie somewhere", values.element, schema.element, span.record)?;
    let width = (schema.element.size() * schema.channels.unwrap_or(1)) as u64;
    let (start, mut scratch) = (stored.start + span.start * width, Vec::new());
    let found = source.object(stored.object)?.read(start, (span.len * width) as usize, &mut scratch)?;
    keeps(found == values.bytes, "where a record lies are its values", span.record)
}

// What is beside a record may be damaged where the record is not: that is an error of its own, each time.
fn check_extras(source: &dyn Source, record: u64) -> Result<()> {
    match (source.extras(record), source.extras(record)) {
        // NaN is not NaN.
        (Ok(extras), Ok(again)) => {
            same("extras, asked again", format!("{extras:?}"), format!("{again:?}"), record)
        }
        (Err(error), again) => {
            check_unreadable(&error, record)?;
            same_error(&error, again, record)
        }
        (Ok(_), Err(error)) => Err(error),
    }
}

// As many bytes as the span has values, of the type that the schema says; other types may stand for float32, other whole
// ones for int64, and any one where nothing is.
fn check_values(values: &Values<'_>, span: Span, element: Element, channels: usize) -> Result<()> {
    let stands_for = match (element.big_endian, element.dtype) {
        (false, DType::F32) => true,
        (false, DType::I64) => values.element.dtype.is_integer() || span.len == 0,
        _ => false,
    };
    if !stands_for {
        same("the element of the values", values.element, element, span.record)?;
    }
    same("the channels of the values", values.channels, channels, span.record)?;
    let size = span.len * values.element.size() as u64 * channels as u64;
    same("the size in bytes of what was read", values.bytes.len() as u64, size, span.record)
}

type Read<'r> = &'r dyn Fn(Span, &mut Vec<u8>) -> Result<Vec<u8>>;

// Parts of a span are parts of its bytes, whatever the scratch held before.
fn check_parts(source: &dyn Source, whole: Span, values: &Values<'_>, read: Read<'_>) -> Result<()> {
    let width = values.element.size() * values.channels;
    let mut parts = vec![(0, whole.len)];
    if source.schema().kind == Kind::Numbers {
        parts.extend([(0, 0), (whole.len, 0), (whole.len / 2, 0), (0, whole.len / 2)]);
        parts.push((whole.len / 2, whole.len - whole.len / 2));
        if whole.len > 0 {
            parts.extend([(0, 1), (whole.len - 1, 1), (whole.len / 2, 1)]);
        }
    }
    let mut scratch = Vec::new();
    for (start, len) in parts {
        let part = Span { record: whole.record, start: whole.start + start, len };
        // Parts of a window, which is bounded: its byte numbers fit.
        let from = start as usize * width;
        let expected = &values.bytes[from..from + len as usize * width];
        same("a part of a record", read(part, &mut scratch)?.as_slice(), expected, whole.record)?;
    }
    Ok(())
}

fn check_spans_outside(source: &dyn Source, record: u64, length: u64) -> Result<()> {
    let mut outside = vec![(length, 1), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)];
    // A record may declare as many values as a number can count.
    outside.extend(length.checked_add(1).into_iter().flat_map(|beyond| [(0, beyond), (beyond, 0)]));
    if source.schema().kind == Kind::Json && length > 0 {
        // Half a JSON value is not a value.
        outside.extend([(0, 0), (0, length - 1), (length, 0)]);
    }
    for (start, len) in outside {
        let span = Span { record, start, len };
        refuses("a span that leaves its record", source.read(span, &mut Vec::new()), record)?;
        refuses("the place of a span that leaves its record", source.locate(span), record)?;
        source.prefetch(&mut std::iter::once((span, 0)));
        for track in 0..source.schema().tracks.len() {
            let mut scratch = Vec::new();
            let found = source.read_track(track, span, &mut scratch);
            refuses("a span of a track that leaves its record", found, record)?;
        }
    }
    Ok(())
}

fn check_places(source: &dyn Source, span: Span) -> Result<()> {
    let places = source.locate(span)?;
    if span.len > 0 && places.is_empty() {
        let mut scratch = Vec::new();
        let is_made_up = source.read(span, &mut scratch)?.bytes.iter().all(|byte| *byte == 0);
        keeps(is_made_up, "values are in a file, or are zeros in place of what is missing", span.record)?;
    }
    let files = source.files();
    for place in places {
        let Some(file) = files.iter().find(|f| f.file == place.file) else {
            return Err(broken("the file of a place is one of the files", span.record).at(&place.file));
        };
        let end = place.start.checked_add(place.size);
        keeps(end.is_some_and(|end| end <= file.size), "a place ends within its file", span.record)?;
    }
    Ok(())
}

// Two threads, one from each end, read what one thread reads.
fn check_threads(source: &dyn Source, records: &[u64]) -> Result<()> {
    let read_all = |records: &mut dyn Iterator<Item = &u64>| -> Result<Vec<(u64, Vec<u8>)>> {
        let mut scratch = Vec::new();
        let mut found = Vec::new();
        for &record in records {
            let Ok(spans) = windows(source, record) else { continue };
            for span in spans {
                let bytes = source.read(span, &mut scratch).map_or(Vec::new(), |v| v.bytes.to_vec());
                found.push((record, bytes));
            }
        }
        found.sort();
        Ok(found)
    };
    let alone = read_all(&mut records.iter())?;
    let together = std::thread::scope(|scope| {
        let other = scope.spawn(|| read_all(&mut records.iter().rev()));
        let mine = read_all(&mut records.iter());
        [mine, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
    });
    for found in together {
        let found = found?;
        for (found, expected) in found.iter().zip(&alone) {
            same("what a second thread reads", found, expected, expected.0)?;
        }
        same("the spans a second thread reads", found.len(), alone.len(), 0)?;
    }
    Ok(())
}

fn some_records(len: u64) -> Vec<u64> {
    if len <= MOST_RECORDS {
        return (0..len).collect();
    }
    let third = MOST_RECORDS / 3;
    let between = (1..third).map(|i| third + (len - 2 * third) / third * i);
    (0..third).chain(between).chain(len - third..len).collect()
}

// The whole record; of a long one its beginning and its end. None of a record whose length is an error.
fn windows(source: &dyn Source, record: u64) -> Result<Vec<Span>> {
    let Ok(length) = source.length(record) else { return Ok(Vec::new()) };
    if source.schema().kind == Kind::Json || length <= MOST_VALUES {
        return Ok(vec![Span { record, start: 0, len: length }]);
    }
    let window = |start| Span { record, start, len: MOST_VALUES };
    Ok(vec![window(0), window(length - MOST_VALUES)])
}

fn broken(what: &str, record: u64) -> Error {
    Error::mismatch(format!("broken promise: {what}")).record(record)
}

fn keeps(kept: bool, what: &str, record: u64) -> Result<()> {
    if kept { Ok(()) } else { Err(broken(what, record)) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T, record: u64) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(broken(&format!("{what}: expected {expected:?}, found {found:?}"), record))
    }
}

fn refuses<T>(what: &str, found: Result<T>, record: u64) -> Result<()> {
    match found {
        Err(error) if error.kind() == ErrorKind::OutOfRange => Ok(()),
        Err(error) => Err(broken(&format!("{what}: expected OutOfRange, found {:?}", error.kind()), record)
            .caused_by(error)),
        Ok(_) => Err(broken(&format!("{what}: expected OutOfRange, found values"), record)),
    }
}

fn check_unreadable(error: &Error, record: u64) -> Result<()> {
    let place = error.place();
    let named = place.record == Some(record) && place.file.is_some();
    if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) && named {
        Ok(())
    } else {
        Err(broken(
            &format!(
                "an unreadable record is Corrupt or Unsupported and names file and record: found {error:?}"
            ),
            record,
        ))
    }
}

fn same_error<T>(error: &Error, again: Result<T>, record: u64) -> Result<()> {
    match again {
        Err(again) => same("an error, asked again", format!("{again:#}"), format!("{error:#}"), record),
        Ok(_) => Err(broken("an unreadable record stays unreadable", record)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::record::Lengths;
    use crate::source::{FileInfo, Schema, Stored, check_span};
    use crate::store::{Memory, Object, Store};

    /// Three records of uint16 in one file, and a promise that may be broken.
    struct Three {
        schema: Schema,
        breaks: &'static str,
        asked: std::sync::atomic::AtomicU64,
        object: std::sync::Arc<dyn Object>,
    }

    const LENGTHS: [u64; 3] = [4, 0, 7];
    const BYTES: [u8; 22] = [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0, 11, 0];

    fn three(breaks: &'static str) -> Three {
        let schema = Schema::numbers(Element::little(DType::U16));
        Three { schema, breaks, asked: 0.into(), object: Memory::new().with("f", BYTES).open("f").unwrap() }
    }

    impl Lengths for Three {
        fn len(&self) -> u64 {
            3
        }
        fn length(&self, record: u64) -> Result<u64> {
            match (self.breaks, record) {
                ("unreadable", 1) => Err(Error::corrupt("bad").at("f").record(1)),
                ("unsupported", 1) => Err(Error::unsupported("new").at("f").record(1)),
                ("nameless", 1) => Err(Error::corrupt("bad")),
                ("misjudged", 1) => Err(Error::config("bad").at("f").record(1)),
                ("endless", 3) => Ok(0),
                ("claimed", 1) => Ok(u64::MAX),
                _ => LENGTHS.to_vec().length(record),
            }
        }
        fn uniform(&self) -> Option<u64> {
            (self.breaks == "uniform").then_some(4)
        }
    }

    impl Source for Three {
        fn schema(&self) -> &Schema {
            &self.schema
        }
        fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
            let length = self.length(span.record)?;
            if self.breaks != "unchecked" || span.len != length + 1 {
                check_span(span, length)?;
            }
            if length == u64::MAX {
                return Err(Error::corrupt("no such bytes").at("f").record(span.record));
            }
            let place = self.locate(Span { len: span.len.min(length), ..span })?.remove(0);
            let start = place.start - u64::from(self.breaks == "shifted");
            let mut bytes = &BYTES[start as usize..(start + place.size) as usize];
            if self.breaks == "short" {
                bytes = &bytes[..bytes.len().saturating_sub(1)];
            }
            if self.breaks == "scratch" {
                scratch.extend_from_slice(bytes);
                bytes = &scratch[..bytes.len()];
            }
            Ok(Values { bytes, element: self.schema.element, channels: 1, decode: Decode::Plain })
        }
        fn locate(&self, span: Span) -> Result<Vec<Location>> {
            check_span(span, self.length(span.record)?)?;
            let before: u64 = LENGTHS[..span.record as usize].iter().sum();
            let shift = u64::from(self.breaks == "shifted");
            let file = if self.breaks == "elsewhere" { "g" } else { "f" };
            let start = (before + span.start) * 2 + shift;
            Ok(vec![Location { file: file.into(), start, size: span.len * 2 }])
        }
        fn stored(&self, record: u64) -> Result<Option<Stored>> {
            let len = self.length(record)?;
            let start = self.locate(Span { record, start: 0, len })?[0].start;
            let start = match self.breaks {
                "astray" => 0,
                "shifted" => start - 1,
                _ => start,
            };
            Ok(Some(Stored { object: 0, start, len }))
        }
        fn object(&self, _number: u64) -> Result<&Arc<dyn Object>> {
            Ok(&self.object)
        }
        fn files(&self) -> Vec<FileInfo> {
            vec![FileInfo { file: "f".into(), size: BYTES.len() as u64 }]
        }
        fn fingerprint(&self) -> Result<u64> {
            let asked = self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(if self.breaks == "fingerprint" { asked } else { 5 })
        }
        fn format(&self) -> &'static str {
            "three"
        }
    }

    #[test]
    fn a_source_that_keeps_its_promises_passes() {
        check(&three("")).unwrap();
        check(&three("unreadable")).unwrap();
        check(&three("unsupported")).unwrap();
        check(&three("claimed")).unwrap();
        let bytes_at = |l: &Location| Ok(BYTES[l.start as usize..(l.start + l.size) as usize].to_vec());
        check_located(&three(""), &bytes_at).unwrap();
        let wrong = |l: &Location| Ok(vec![0; l.size as usize]);
        assert_eq!(check_located(&three(""), &wrong).unwrap_err().kind(), ErrorKind::Mismatch);
    }

    #[test]
    fn every_broken_promise_is_found() {
        for (breaks, record, says) in [
            ("nameless", 1, "names file and record"),
            ("misjudged", 1, "is Corrupt or Unsupported"),
            ("endless", 3, "a record that is not there"),
            ("uniform", 1, "expected 4, found 0"),
            ("unchecked", 0, "a span that leaves its record: expected OutOfRange, found values"),
            ("short", 0, "size in bytes of what was read: expected 8, found 7"),
            ("scratch", 0, "a part of a record"),
            ("elsewhere", 0, "the file of a place"),
            ("astray", 2, "where a record lies are its values"),
            ("shifted", 2, "a place ends within its file"),
            ("fingerprint", 0, "the fingerprint, asked again"),
        ] {
            let error = check(&three(breaks)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch, "{breaks}: {error}");
            assert_eq!(error.place().record, Some(record), "{breaks}: {error}");
            assert!(error.message().contains(says), "{breaks}: {error}");
        }
    }

    #[test]
    fn of_many_records_both_ends_and_some_between_are_looked_at() {
        for len in [0, 1, 300, 301, 400, 1_000_000_007] {
            let found = some_records(len);
            assert_eq!(found.len() as u64, if len > 300 { 299 } else { len }, "{len}");
            assert!(found.is_sorted_by(|a, b| a < b));
            assert_eq!(found.first().copied(), (len > 0).then_some(0));
            assert_eq!(found.last().copied(), len.checked_sub(1));
        }
    }
}
