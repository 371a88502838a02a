//! JSON records: one line of a file each, wherever the rows that name the lines come from.

use serde_json::Value;
use windrow_core::format::Options;
use windrow_core::source::{FileInfo, Kind, Location, Schema, Source, check_span};
use windrow_core::{DType, Decode, Element, Error, Kind as ErrorKind, Lengths, Place, Result, Span, Values};

use super::data_files::DataFiles;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Options that speak of token IDs cannot be kept where records are JSON; they are refused rather than forgotten.
pub(super) fn refuse_number_options(options: &Options) -> Result<()> {
    options.refuse_those_of_ids(
        "JSON records hold no tokens",
        "tokenize the text first, or leave the option out",
    )
}

/// Which bytes hold a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// File number.
    pub(super) file: usize,
    /// First byte.
    pub(super) start: u64,
    /// Number of bytes, line end included.
    pub(super) size: u64,
}

/// The rows of a source by record number.
pub(super) trait Rows: Send + Sync {
    /// How many there are.
    fn count(&self) -> u64;

    /// One row.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` when the index is wrong at this record.
    fn row(&self, record: u64, files: &DataFiles) -> Result<Row>;

    /// A hash of what they say beyond the data files.
    ///
    /// # Errors
    /// `Io`.
    fn claim(&self) -> Result<u64> {
        Ok(0)
    }
}

/// A source of JSON records.
pub(super) struct JsonLines<R> {
    rows: R,
    files: DataFiles,
    schema: Schema,
    format: &'static str,
}

impl<R: Rows> JsonLines<R> {
    /// Records that `rows` finds in `files`.
    pub(super) fn new(format: &'static str, rows: R, files: DataFiles) -> Self {
        let schema = Schema { kind: Kind::Json, ..Schema::numbers(Element::little(DType::U8)) };
        JsonLines { rows, files, schema, format }
    }

    /// The record's bytes without its line end and, at the start of a file, without a byte order mark.
    fn text(&self, record: u64) -> Result<Row> {
        let Row { file, mut start, mut size } = self.rows.row(record, &self.files)?;
        let object = self.files.get(file)?;
        // The line's end is looked at first; its beginning comes from memory meanwhile.
        object.touch(start, size);
        let mut scratch = Vec::new();
        if start == 0 && size >= 3 && object.read(0, 3, &mut scratch)? == BOM {
            start += 3;
            size -= 3;
        }
        let tail = size.min(2);
        let ending = match object.read(start + size - tail, tail as usize, &mut scratch)? {
            [.., b'\r', b'\n'] => 2,
            [.., b'\n'] => 1,
            _ => 0,
        };
        Ok(Row { file, start, size: size - ending })
    }

    fn checked(&self, span: Span) -> Result<Row> {
        let row = self.text(span.record)?;
        check_span(span, row.size)?;
        if span.start != 0 || span.len != row.size {
            return Err(Error::new(
                ErrorKind::OutOfRange,
                format!(
                    "bytes {}..{} of a JSON record of {} bytes: it is read whole",
                    span.start,
                    span.start + span.len,
                    row.size
                ),
            )
            .at(self.files.name(row.file))
            .record(span.record));
        }
        Ok(row)
    }

    fn values<'a>(&'a self, record: u64, row: Row, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let size = usize::try_from(row.size).map_err(|_| {
            Error::unsupported(format!("a record of {} bytes on this machine", row.size)).record(record)
        })?;
        let bytes = self.files.get(row.file)?.read(row.start, size, scratch)?;
        let bad = |what: String, at: u64| {
            Error::corrupt(what).at(self.files.name(row.file)).record(record).byte(row.start + at)
        };
        simdutf8::compat::from_utf8(bytes).map_err(|e| {
            let at = e.valid_up_to();
            let found = bytes.get(at).copied().unwrap_or_default();
            bad(format!("expected UTF-8, found byte 0x{found:02x}"), at as u64)
                .hint("convert the file to UTF-8 (from Latin-1: iconv -f LATIN1 -t UTF-8 OLD > NEW), or delete the line")
        })?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(bad(format!("expected JSON, found a blank line of {} bytes", bytes.len()), 0)
                .hint("delete blank lines: every line is a record"));
        }
        Ok(Values { bytes, element: self.schema.element, channels: 1, decode: Decode::Plain })
    }
}

impl<R: Rows> Lengths for JsonLines<R> {
    fn len(&self) -> u64 {
        self.rows.count()
    }

    fn length(&self, record: u64) -> Result<u64> {
        Ok(self.text(record)?.size)
    }
}

impl<R: Rows> Source for JsonLines<R> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.values(span.record, self.checked(span)?, scratch)
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.values(record, self.text(record)?, scratch)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok(row) = self.rows.row(span.record, &self.files)
                && let Ok(object) = self.files.get(row.file)
            {
                object.prefetch(row.start, row.size);
            }
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let row = self.checked(span)?;
        Ok(vec![Location { file: self.files.name(row.file), start: row.start, size: row.size }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.files.fingerprint(&[
            self.format.as_bytes(),
            &self.len().to_le_bytes(),
            b"json",
            &self.rows.claim()?.to_le_bytes(),
        ])
    }

    fn format(&self) -> &'static str {
        self.format
    }
}

/// The value that a JSON record writes. `place` is where the record begins; its byte is made absolute in errors.
///
/// Values nest at most 127 deep; of equal keys the last counts; NaN and Infinity are not JSON.
///
/// # Errors
/// `Corrupt` naming the byte that is not JSON.
///
/// ```
/// # use windrow_core::Place;
/// # use windrow_formats::parse_json;
/// assert_eq!(parse_json(br#"{"text": "a"}"#, &Place::default())?["text"], "a");
/// let place = Place { byte: Some(100), ..Place::default() };
/// assert_eq!(parse_json(b"[1, NaN]", &place).unwrap_err().place().byte, Some(104));
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub fn parse_json(bytes: &[u8], place: &Place) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|cause| {
        let at = error_byte(bytes, &cause);
        let rest = bytes.get(at..).unwrap_or_default();
        let found = match rest.first() {
            None => "the end of the line".to_string(),
            Some(_) => {
                format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(24)]))
            }
        };
        let mut error = Error::corrupt(format!("expected JSON, found {found}"));
        if let Some(file) = &place.file {
            error = error.at(file);
        }
        if let Some(record) = place.record {
            error = error.record(record);
        }
        let hint = if is_number_word(rest) {
            "JSON has no NaN or Infinity: write null instead"
        } else if cause.to_string().starts_with("recursion limit") {
            "values may nest 127 deep"
        } else {
            "every line must hold one JSON value"
        };
        error.byte(place.byte.unwrap_or(0).saturating_add(at as u64)).hint(hint).caused_by(cause)
    })
}

/// The parser counts columns from 1 within a line; a byte that ends a token is what it stumbled over.
pub(super) fn error_byte(bytes: &[u8], cause: &serde_json::Error) -> usize {
    let line_start = match cause.line().checked_sub(2) {
        Some(before) => memchr::memchr_iter(b'\n', bytes).nth(before).map_or(0, |at| at + 1),
        None => 0,
    };
    // At the end of the text the column is that of the last byte.
    let column = if cause.is_eof() { cause.column() } else { cause.column().saturating_sub(1) };
    let at = (line_start + column).min(bytes.len());
    // A number too large for a float64 is known by its last digit.
    if cause.to_string().starts_with("number out of range") {
        let in_number = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
        return bytes[..at].iter().rposition(|b| !in_number(b)).map_or(0, |b| b + 1);
    }
    // In `NaN` and `-Infinity` it stumbles at a later letter.
    let word = bytes[..at].iter().rposition(|b| !b.is_ascii_alphabetic() && *b != b'-').map_or(0, |b| b + 1);
    if is_number_word(&bytes[word..]) { word } else { at }
}

fn is_number_word(bytes: &[u8]) -> bool {
    [&b"NaN"[..], b"-NaN", b"nan", b"Infinity", b"-Infinity", b"inf", b"-inf"]
        .iter()
        .any(|word| bytes.starts_with(word))
}
