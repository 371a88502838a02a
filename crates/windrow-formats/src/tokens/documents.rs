//! The streams of token files cut at an EOS token: a document is a record, its EOS token the last of its values.

use std::ops::Range;

use windrow_core::source::{FileInfo, Location, Schema, Source, check_span};
use windrow_core::{Error, Lengths, Result, Span, Values};

use super::Streams;
use super::ends::Ends;
use crate::firsts::Firsts;

/// The documents of token files.
pub(super) struct Documents {
    streams: Streams,
    eos: i64,
    ends: Vec<Ends>,
    firsts: Firsts,
    uniform: Option<u64>,
}

impl Documents {
    /// Cuts streams at `eos`.
    ///
    /// # Errors
    /// `Config` when `eos` is not an ID of theirs; what reading says.
    pub(super) fn new(streams: Streams, eos: i64) -> Result<Documents> {
        if let Some(size) = streams.schema.vocab_size
            && u64::try_from(eos).is_ok_and(|eos| eos >= size)
        {
            return Err(Error::config(format!(
                "the EOS token {eos} is outside the vocabulary of {size} IDs"
            ))
            .field("document_eos"));
        }
        let dtype = streams.schema.element.dtype;
        let mut ends = Vec::with_capacity(streams.files.count());
        let mut firsts = Firsts::new();
        for file in 0..streams.files.count() {
            let found = Ends::of(streams.files.get(file)?, dtype, eos)?;
            firsts.push(found.count());
            ends.push(found);
        }
        if firsts.count() == ends.len() as u64 {
            windrow_core::warn!(
                "{}: the EOS token {eos} ends no document but the last",
                streams.files.name(0)
            );
        }
        let uniform =
            ends.first().and_then(|e| e.uniform).filter(|u| ends.iter().all(|e| e.uniform == Some(*u)));
        Ok(Documents { streams, eos, ends, firsts, uniform })
    }

    fn document(&self, record: u64) -> Result<(usize, Range<u64>)> {
        let (file, document) = self.firsts.find(record)?;
        let (start, length) = self.ends[file].place(document).map_err(|e| e.record(record))?;
        Ok((file, start..start + length))
    }

    // The span in the stream of its file.
    fn in_stream(&self, span: Span) -> Result<Span> {
        let (file, ids) = self.document(span.record)?;
        check_span(span, ids.end - ids.start)?;
        Ok(Span { record: file as u64, start: ids.start + span.start, len: span.len })
    }
}

impl Lengths for Documents {
    fn len(&self) -> u64 {
        self.firsts.count()
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.document(record).map(|(_, ids)| ids.end - ids.start)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let record = first + done as u64;
            let (file, document) = self.firsts.find(record)?;
            let left = usize::try_from(self.ends[file].count() - document).unwrap_or(usize::MAX);
            let n = left.min(out.len() - done);
            self.ends[file].lengths(document, &mut out[done..done + n]).map_err(|e| e.record(record))?;
            done += n;
        }
        Ok(())
    }

    fn uniform(&self) -> Option<u64> {
        self.uniform
    }
}

impl Source for Documents {
    fn schema(&self) -> &Schema {
        self.streams.schema()
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.streams.read(self.in_stream(span)?, scratch)
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (file, ids) = self.document(record)?;
        let span = Span { record: file as u64, start: ids.start, len: ids.end - ids.start };
        self.streams.read(span, scratch)
    }

    fn touch(&self, span: Span) {
        if let Ok(span) = self.in_stream(span) {
            self.streams.touch(span);
        }
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        let in_streams = |(span, step)| Some((self.in_stream(span).ok()?, step));
        self.streams.prefetch(&mut spans.filter_map(in_streams));
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        self.streams.locate(self.in_stream(span)?)
    }

    fn files(&self) -> Vec<FileInfo> {
        self.streams.files()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.streams.fingerprint_with(format!("eos={}", self.eos).as_bytes())
    }

    fn format(&self) -> &'static str {
        self.streams.format()
    }
}
