//! All parts as one source: their records, and their values as one stream, in the order of their tasks.

use std::sync::Arc;

use windrow_core::format::write::PartFile;
use windrow_core::manifest::PARTS;
use windrow_core::source::{FileInfo, Location, Schema, SharedSource, Source, Stored, check_span};
use windrow_core::store::{Object, at_once};
use windrow_core::{Decode, Error, Lengths, Result, Span, Values};
use xxhash_rust::xxh3::Xxh3;

use super::files::Files;

/// The records of all parts.
pub(super) struct Records(Arc<Joined>);

/// The values of all parts, which need no lengths.
struct Stream(Arc<Joined>);

struct Joined {
    files: Files,
    schema: Schema,
}

/// What of a span lies in one part.
struct Piece {
    part: usize,
    start: u64,
    size: u64,
}

impl Records {
    pub(super) fn new(files: Files, schema: Schema) -> Records {
        Records(Arc::new(Joined { files, schema }))
    }

    // The part of a record, and its number there.
    fn find(&self, record: u64) -> Result<(usize, u64)> {
        let table = &self.0.files.table;
        if record >= table.n_records() {
            return Err(Error::out_of_range("record", record, table.n_records()));
        }
        let part = table.part_of_record(record);
        Ok((part, record - table.records[part]))
    }

    // The part of a record, its first value there, and how many it has.
    fn place(&self, record: u64) -> Result<(usize, u64, u64)> {
        let (part, local) = self.find(record)?;
        let placed = self.0.files.lengths(part).and_then(|lengths| lengths.place(local));
        let (first, length) = placed.map_err(|e| e.record(record))?;
        Ok((part, first, length))
    }

    // Where a span lies.
    fn piece(&self, span: Span) -> Result<Piece> {
        let (part, first, length) = self.place(span.record)?;
        check_span(span, length)?;
        let width = self.0.files.stored.width();
        Ok(Piece { part, start: (first + span.start) * width, size: span.len * width })
    }

    fn values<'a>(&'a self, record: u64, piece: &Piece, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        if piece.size == 0 {
            return Ok(self.0.as_values(&[]));
        }
        let bytes = self.0.read(piece, scratch).map_err(|e| e.record(record))?;
        Ok(self.0.as_values(bytes))
    }
}

impl Joined {
    // What of each part `len` values from `first` on are; both are within the values that there are.
    fn pieces(&self, first: u64, len: u64) -> impl Iterator<Item = Piece> + '_ {
        let (table, width) = (&self.files.table, self.files.stored.width());
        let end = first + len;
        let begin = if len == 0 { table.len() } else { table.part_of_value(first) };
        let parts = (begin..table.len()).take_while(move |part| table.values[*part] < end);
        parts.filter_map(move |part| {
            let (from, to) = (first.max(table.values[part]), end.min(table.values[part + 1]));
            let start = from.saturating_sub(table.values[part]) * width;
            (from < to).then(|| Piece { part, start, size: (to - from) * width })
        })
    }

    fn read<'a>(&'a self, piece: &Piece, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let size = at_once(piece.size)?;
        self.files.values(piece.part)?.read(piece.start, size, scratch)
    }

    fn as_values<'a>(&self, bytes: &'a [u8]) -> Values<'a> {
        let channels = self.files.stored.channels.unwrap_or(1);
        Values { bytes, element: self.schema.element, channels, decode: Decode::Plain }
    }

    fn prefetch(&self, piece: &Piece) {
        if piece.size > 0
            && let Ok(object) = self.files.values(piece.part)
        {
            object.prefetch(piece.start, piece.size);
        }
    }

    fn touch(&self, piece: &Piece) {
        if piece.size > 0
            && let Ok(object) = self.files.values(piece.part)
        {
            object.touch(piece.start, piece.size);
        }
    }

    fn locate(&self, piece: &Piece) -> Location {
        let file = self.files.name(piece.part, PartFile::Values);
        Location { file, start: piece.start, size: piece.size }
    }

    fn fingerprint(&self) -> u64 {
        let stored = self.files.stored;
        let mut hash = Xxh3::new();
        hash.update(PARTS.as_bytes());
        hash.update(stored.dtype.name().as_bytes());
        hash.update(&(stored.channels.unwrap_or(0) as u64).to_le_bytes());
        hash.update(&self.files.table.content.to_le_bytes());
        hash.digest()
    }
}

impl Lengths for Records {
    fn len(&self) -> u64 {
        self.0.files.table.n_records()
    }

    fn length(&self, record: u64) -> Result<u64> {
        let (part, local) = self.find(record)?;
        let length = self.0.files.lengths(part).and_then(|lengths| lengths.length(local));
        length.map_err(|e| e.record(record))
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let record = first.saturating_add(done as u64);
            let (part, local) = self.find(record)?;
            let left = self.0.files.table.records[part + 1] - record;
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(out.len() - done);
            let read =
                self.0.files.lengths(part).and_then(|own| own.lengths(local, &mut out[done..done + n]));
            read.map_err(|e| e.record(record))?;
            done += n;
        }
        Ok(())
    }
}

impl Source for Records {
    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.values(span.record, &self.piece(span)?, scratch)
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (part, first, length) = self.place(record)?;
        let width = self.0.files.stored.width();
        self.values(record, &Piece { part, start: first * width, size: length * width }, scratch)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok(piece) = self.piece(span) {
                self.0.prefetch(&piece);
            }
        }
    }

    fn touch(&self, span: Span) {
        if let Ok(piece) = self.piece(span) {
            self.0.touch(&piece);
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        Ok(vec![self.0.locate(&self.piece(span)?)])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.0.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        Ok(self.0.fingerprint())
    }

    fn format(&self) -> &'static str {
        PARTS
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        let (part, first, len) = self.place(record)?;
        Ok(Some(Stored { object: part as u64, start: first * self.0.files.stored.width(), len }))
    }

    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        self.0.files.values(usize::try_from(number).unwrap_or(usize::MAX))
    }

    fn joined(&self) -> Option<SharedSource> {
        // No records are no stream; an empty one would be a record.
        (self.0.files.table.n_records() > 0).then(|| Arc::new(Stream(self.0.clone())) as SharedSource)
    }
}

impl Lengths for Stream {
    fn len(&self) -> u64 {
        1
    }

    fn length(&self, record: u64) -> Result<u64> {
        match record {
            0 => Ok(self.0.files.table.n_values()),
            _ => Err(Error::out_of_range("record", record, 1)),
        }
    }
}

impl Source for Stream {
    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        check_span(span, self.length(span.record)?)?;
        let mut pieces = self.0.pieces(span.start, span.len).peekable();
        let failed = |e: Error| e.record(span.record);
        let Some(piece) = pieces.next() else { return Ok(self.0.as_values(&[])) };
        if pieces.peek().is_none() {
            return Ok(self.0.as_values(self.0.read(&piece, scratch).map_err(failed)?));
        }
        scratch.clear();
        let mut part = Vec::new();
        for piece in std::iter::once(piece).chain(pieces) {
            scratch.extend_from_slice(self.0.read(&piece, &mut part).map_err(failed)?);
        }
        Ok(self.0.as_values(scratch))
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if self.length(span.record).is_ok_and(|length| check_span(span, length).is_ok()) {
                self.0.pieces(span.start, span.len).for_each(|piece| self.0.prefetch(&piece));
            }
        }
    }

    fn touch(&self, span: Span) {
        if self.length(span.record).is_ok_and(|length| check_span(span, length).is_ok()) {
            self.0.pieces(span.start, span.len).take(1).for_each(|piece| self.0.touch(&piece));
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        check_span(span, self.length(span.record)?)?;
        Ok(self.0.pieces(span.start, span.len).map(|piece| self.0.locate(&piece)).collect())
    }

    fn files(&self) -> Vec<FileInfo> {
        self.0.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        Ok(self.0.fingerprint())
    }

    fn format(&self) -> &'static str {
        PARTS
    }
}
