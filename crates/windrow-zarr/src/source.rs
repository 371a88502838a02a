//! The sequences of a group, and all of them as one stream: IDs in the upper 31 bits, bit 0 marks a sequence's first.

use std::sync::Arc;

use windrow_core::source::{FileInfo, Location, Schema, SharedSource, Source, check_span};
use windrow_core::{Decode, Element, Error, Lengths, Result, Span, Values};

use crate::group::{Group, PART, numbers};
use crate::layout::NAME;

/// What both kinds of records share: the group, and what a number in it is.
#[derive(Clone)]
struct Shared {
    group: Arc<Group>,
    schema: Schema,
}

/// One record per sequence.
pub(crate) struct Sequences(Shared);

/// One record: all sequences, one after the other.
struct Joined(Shared);

impl Sequences {
    /// Of a group whose starts were checked; `vocab_size` is its tokenizer's, where that is known.
    pub(crate) fn new(group: Group, vocab_size: Option<u64>) -> Sequences {
        let least = group.max_id.saturating_add(1);
        let vocab_size = Some(vocab_size.map_or(least, |size| size.max(least)));
        let schema = Schema { vocab_size, ..Schema::numbers(group.tokens.element()) };
        Sequences(Shared { group: Arc::new(group), schema })
    }
}

impl Shared {
    fn values<'a>(&self, bytes: &'a [u8]) -> Values<'a> {
        Values { bytes, element: self.schema.element, channels: 1, decode: Decode::Shift { bits: 1 } }
    }
}

impl Lengths for Sequences {
    fn len(&self) -> u64 {
        self.0.group.sequences()
    }

    fn length(&self, record: u64) -> Result<u64> {
        Ok(self.0.group.place(record)?.1)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut first = first;
        for part in out.chunks_mut(PART as usize) {
            self.0.group.lengths(first, part)?;
            first += part.len() as u64;
        }
        Ok(())
    }
}

impl Source for Sequences {
    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let group = &self.0.group;
        let (start, length) = group.place(span.record)?;
        check_span(span, length)?;
        let from = start + span.start;
        let bytes = group.read(from, span.len, scratch).map_err(|e| e.record(span.record))?;
        let element = self.0.schema.element;
        let checked = match check_flags(bytes, element, span) {
            // With a chunk that is made up the mark of the sequence is gone, too.
            Err((0, _)) if span.start == 0 && group.is_made_up(from) => {
                let rest = Span { start: 1, len: span.len - 1, ..span };
                let bytes = bytes.get(element.dtype.size()..).unwrap_or_default();
                check_flags(bytes, element, rest).map_err(|(at, error)| (at + 1, error))
            }
            checked => checked,
        };
        checked.map_err(|(at, error)| group.at_token(error, from + at))?;
        Ok(self.0.values(bytes))
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (start, length) = self.0.group.place(span.record)?;
        check_span(span, length)?;
        self.0.group.tokens.locate(start + span.start, span.len)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((start, _)) = self.0.group.place(span.record) {
                self.0.group.tokens.prefetch(start.saturating_add(span.start), span.len);
            }
        }
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        let placed =
            spans.filter_map(|span| Some((self.0.group.place(span.record).ok()?.0 + span.start, span.len)));
        self.0.group.tokens.decode_ahead(placed);
    }

    fn joined(&self) -> Option<SharedSource> {
        Some(Arc::new(Joined(self.0.clone())))
    }

    fn files(&self) -> Vec<FileInfo> {
        self.0.group.files()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.0.group.fingerprint()
    }

    fn format(&self) -> &'static str {
        NAME
    }
}

impl Lengths for Joined {
    fn len(&self) -> u64 {
        1
    }

    fn length(&self, record: u64) -> Result<u64> {
        match record {
            0 => Ok(self.0.group.tokens.len()),
            _ => Err(Error::out_of_range("record", record, 1)),
        }
    }
}

impl Source for Joined {
    fn schema(&self) -> &Schema {
        &self.0.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        check_span(span, self.length(span.record)?)?;
        let bytes = self.0.group.read(span.start, span.len, scratch).map_err(|e| e.record(span.record))?;
        Ok(self.0.values(bytes))
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        check_span(span, self.length(span.record)?)?;
        self.0.group.tokens.locate(span.start, span.len)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        spans.for_each(|(span, _)| self.0.group.tokens.prefetch(span.start, span.len));
    }

    fn touch(&self, span: Span) {
        self.0.group.tokens.touch(span.start, span.len);
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        self.0.group.tokens.decode_ahead(spans.map(|span| (span.start, span.len)));
    }

    fn files(&self) -> Vec<FileInfo> {
        self.0.group.files()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.0.group.fingerprint()
    }

    fn format(&self) -> &'static str {
        NAME
    }
}

// The first token of a sequence is marked, and no other: so a chunk in the wrong place is found.
fn check_flags(bytes: &[u8], element: Element, span: Span) -> Result<(), (u64, Error)> {
    let is_marked = |number: u32| number & 1 == 1;
    let marked: u32 = numbers(bytes, element).map(|number| number & 1).sum();
    let first = numbers(bytes, element).next().is_some_and(is_marked);
    let begins = span.start == 0 && span.len > 0;
    if marked == u32::from(begins) && first == begins {
        return Ok(());
    }
    let wrong = (span.start..).zip(numbers(bytes, element)).find(|(at, n)| is_marked(*n) != (*at == 0));
    let at = wrong.map_or(span.start, |(at, _)| at);
    let what = if at == 0 { "is not marked as one" } else { "is marked as the first of a sequence" };
    let error = Error::corrupt(format!("token {at} of the sequence {what}, against seq_starts"));
    Err((at - span.start, error.record(span.record)))
}
