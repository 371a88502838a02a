//! Token samples: each row of the index is one record of tokens, with arrays beside them where a schema says so.

use windrow_core::format::Format;
use windrow_core::source::{FileInfo, Location, Schema, Source, Track, check_span};
use windrow_core::{Decode, Element, Error, Lengths, Result, Span, Values};

use super::super::json_lines::{Row, Rows};
use super::rows::LocationRows;
use super::{Forager, Layout, TOKENS};
use windrow_core::format::data_files::DataFiles;

pub(super) struct TokenSamples {
    rows: LocationRows,
    files: DataFiles,
    schema: Schema,
    // Where the tokens of a record begin, and each track; 0 without a layout. Of records that differ in length: per token.
    tokens_offset: u64,
    track_offsets: Vec<u64>,
    // Tokens in every record, and bytes, where that is known.
    uniform: Option<u64>,
    row_size: Option<u64>,
    // Bytes of a token, with what is beside it where records differ in length.
    token_size: u64,
}

impl TokenSamples {
    /// Records of plain tokens; all of `uniform` tokens, where the manifest says so.
    pub(super) fn plain(
        rows: LocationRows,
        files: DataFiles,
        schema: Schema,
        uniform: Option<u64>,
    ) -> Result<Self> {
        let row_size = match uniform {
            Some(length) => Some(length.checked_mul(schema.element.size() as u64).ok_or_else(|| {
                Error::corrupt(format!("records of {length} tokens")).field("record_length")
            })?),
            None => None,
        };
        let token_size = schema.element.size() as u64;
        Ok(TokenSamples {
            rows,
            files,
            token_size,
            schema,
            tokens_offset: 0,
            track_offsets: Vec::new(),
            uniform,
            row_size,
        })
    }

    /// Records arranged as a schema declares: every declared value is checked here.
    pub(super) fn arranged(
        rows: LocationRows,
        files: DataFiles,
        mut schema: Schema,
        layout: &Layout,
        at: &str,
    ) -> Result<Self> {
        let wrong = |what: String| Error::corrupt(what).at(at).hint("tokenise the data again");
        let (n, total) = (layout.sample_size.unwrap_or(1), layout.total_bytes_per_sample);
        let tokens = layout.tokens().map_err(|e| e.at(at))?;
        let tokens_offset = tokens.offset;
        schema.element = Element::little(tokens.dtype);
        let mut track_offsets = Vec::new();
        let mut taken = Vec::new();
        for array in &layout.arrays {
            let end =
                n.checked_mul(array.dtype.size() as u64).and_then(|size| array.offset.checked_add(size));
            let Some(end) = end.filter(|end| *end <= total) else {
                return Err(wrong(format!(
                    "array {:?} takes {n} {} from byte {} of a sample of {total} bytes",
                    array.name, array.dtype, array.offset
                ))
                .field("arrays"));
            };
            taken.push((array.offset, end, array.name.as_str()));
            if array.name != TOKENS {
                schema.tracks.push(Track::stored(&array.name, Element::little(array.dtype)));
                track_offsets.push(array.offset);
            }
        }
        taken.sort_unstable();
        if let Some(pair) = taken.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(wrong(format!(
                "array {:?} begins at byte {}, inside {:?}, which ends at byte {}",
                pair[1].2, pair[1].0, pair[0].2, pair[0].1
            ))
            .field("arrays"));
        }
        taken.sort_unstable_by_key(|array| array.2);
        if let Some(pair) = taken.windows(2).find(|pair| pair[0].2 == pair[1].2) {
            return Err(wrong(format!("two arrays are called {:?}", pair[0].2)).field("arrays"));
        }
        Ok(TokenSamples {
            rows,
            files,
            schema,
            tokens_offset,
            track_offsets,
            uniform: layout.sample_size,
            row_size: layout.record_size(),
            // The tokens are within it.
            token_size: total.max(1),
        })
    }

    /// Checks every row where there are not too many.
    ///
    /// # Errors
    /// `Corrupt` naming the first row that is wrong.
    pub(super) fn check_all(&self) -> Result<()> {
        self.rows.check_all(&self.files, |record| self.row(record).map(drop))
    }

    // The row of a record, of the size that all records must have.
    fn row(&self, record: u64) -> Result<Row> {
        let row = self.rows.row(record, &self.files)?;
        match self.row_size {
            Some(expected) if row.size != expected => Err(self.wrong_size(
                record,
                row,
                format!("the sample has {} bytes, every sample of this data set has {expected}", row.size),
            )),
            None if row.size % self.token_size != 0 && self.track_offsets.is_empty() => Err(self
                .wrong_size(
                    record,
                    row,
                    format!(
                        "the sample has {} bytes, no multiple of a {}",
                        row.size, self.schema.element.dtype
                    ),
                )
                .hint("open it with the @dtype@ it was written with")),
            None if row.size % self.token_size != 0 => Err(self.wrong_size(
                record,
                row,
                format!("the sample has {} bytes, each of its tokens takes {}", row.size, self.token_size),
            )),
            _ => Ok(row),
        }
    }

    fn wrong_size(&self, record: u64, row: Row, what: String) -> Error {
        Error::corrupt(what).at(self.files.name(row.file)).record(record).byte(row.start)
    }

    fn bytes<'a>(
        &'a self,
        offset: u64,
        element: Element,
        span: Span,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Values<'a>> {
        let row = self.row(span.record)?;
        let width = element.size() as u64;
        check_span(span, self.length_in(row))?;
        let offset = self.offset_in(row, offset);
        let size = usize::try_from(span.len * width).map_err(|_| {
            Error::unsupported(format!("{} values at once on this machine", span.len)).record(span.record)
        })?;
        // Within the row, whose end was compared with the file's.
        let bytes = self.files.get(row.file)?.read(row.start + offset + span.start * width, size, scratch)?;
        Ok(Values { bytes, element, channels: 1, decode: Decode::Plain })
    }

    fn length_in(&self, row: Row) -> u64 {
        self.uniform.unwrap_or(row.size / self.token_size)
    }

    // Where an array begins in a row: no further than its end, which `token_size` counts.
    fn offset_in(&self, row: Row, offset: u64) -> u64 {
        match self.uniform {
            Some(_) => offset,
            None => offset * self.length_in(row),
        }
    }
}

impl Lengths for TokenSamples {
    fn len(&self) -> u64 {
        self.rows.count()
    }

    fn length(&self, record: u64) -> Result<u64> {
        Ok(self.length_in(self.row(record)?))
    }

    fn uniform(&self) -> Option<u64> {
        self.uniform
    }
}

impl Source for TokenSamples {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.bytes(self.tokens_offset, self.schema.element, span, scratch)
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (Some(offset), Some(found)) = (self.track_offsets.get(track), self.schema.tracks.get(track))
        else {
            return Err(Error::out_of_range("track", track, self.schema.tracks.len() as u64));
        };
        self.bytes(*offset, found.element, span, scratch)
    }

    fn touch(&self, span: Span) {
        let width = self.schema.element.size() as u64;
        if let Ok(row) = self.row(span.record)
            && let Ok(object) = self.files.get(row.file)
        {
            object.touch(
                row.start + self.offset_in(row, self.tokens_offset) + span.start * width,
                span.len * width,
            );
        }
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok(row) = self.rows.row(span.record, &self.files) {
                self.files.prefetch(row.file, row.start, row.size);
            }
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let row = self.row(span.record)?;
        check_span(span, self.length_in(row))?;
        let width = self.schema.element.size() as u64;
        let start = row.start + self.offset_in(row, self.tokens_offset) + span.start * width;
        Ok(vec![Location { file: self.files.name(row.file), start, size: span.len * width }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.files.fingerprint(&[
            Forager.name().as_bytes(),
            &self.len().to_le_bytes(),
            self.schema.element.dtype.name().as_bytes(),
            &self.rows.claim()?.to_le_bytes(),
        ])
    }

    fn format(&self) -> &'static str {
        Forager.name()
    }
}
