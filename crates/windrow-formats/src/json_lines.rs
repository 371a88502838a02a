//! JSON records: one line of a file each, wherever the rows that name the lines come from.

use windrow_core::format::Options;
use windrow_core::source::{FileInfo, Kind, Location, Schema, Source, check_span};
use windrow_core::{
    DType, Decode, Element, Error, Kind as ErrorKind, Lengths, Place, Result, Span, Value, Values,
};

use super::json_value::json_value;
use windrow_core::format::data_files::DataFiles;

/// The format of lines that have no index, which whoever writes such lines names too.
pub(super) const NAME: &str = "jsonl";
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

    /// The bytes that hold one, or those that are read to find it, as far as is known without waiting.
    fn ahead(&self, record: u64, files: &DataFiles) -> Option<Row> {
        self.row(record, files).ok()
    }

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

    fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
        if let Some(first) = columns.and_then(|columns| columns.first()) {
            return Err(Error::out_of_range("column", first, 0));
        }
        let (row, mut scratch) = (self.text(record)?, Vec::new());
        let text = self.values(record, row, &mut scratch)?.bytes;
        json_value(text, &Place::default()).or_else(|_| {
            // Where it lies is looked up only to say it.
            let file = Some(self.files.name(row.file));
            json_value(text, &Place { file, record: Some(record), byte: Some(row.start), field: None })
        })
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Some(row) = self.rows.ahead(span.record, &self.files) {
                self.files.prefetch(row.file, row.start, row.size);
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
