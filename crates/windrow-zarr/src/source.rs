//! The sequences of a group, and all of them as one stream: ids in the upper 31 bits, bit 0 marks a sequence's first.

use std::sync::Arc;

use windrow_core::source::{FileInfo, Location, Schema, SharedSource, Source, check_span};
use windrow_core::store::Object;
use windrow_core::{Decode, Element, Error, Lengths, Result, Span, Values};
use xxhash_rust::xxh3::Xxh3;

use crate::array::Array;
use crate::format::{FlatTokens, MAX_ID};

/// Up to so many sequences their starts are all looked at when the group is opened.
const MOST_CHECKED: u64 = 1 << 22;
/// Starts that are read at a time.
const PART: u64 = 1 << 16;

/// A group that was opened.
pub(crate) struct Group {
    pub(crate) tokens: Array,
    pub(crate) tokens_name: &'static str,
    pub(crate) starts: Array,
    pub(crate) attributes: Arc<dyn Object>,
    pub(crate) max_id: u64,
}

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

impl Group {
    fn sequences(&self) -> u64 {
        self.starts.len() - 1
    }

    // Starts `first..first + out.len()`.
    fn starts(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut scratch = Vec::new();
        let bytes = self.starts.read(first, out.len() as u64, &mut scratch)?;
        for (start, stored) in out.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut number = [0; 8];
            number.copy_from_slice(stored);
            *start = if self.starts.element().big_endian {
                u64::from_be_bytes(number)
            } else {
                u64::from_le_bytes(number)
            };
        }
        Ok(())
    }

    /// Tokens as they are stored, laid as this machine lays numbers.
    pub(crate) fn tokens_as_here(&self, start: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut scratch = Vec::new();
        let element = self.tokens.element();
        out.extend(numbers(self.read(start, count, &mut scratch)?, element).flat_map(u32::to_ne_bytes));
        Ok(())
    }

    /// The same of starts.
    pub(crate) fn starts_as_here(&self, start: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut starts = vec![0; count as usize];
        self.starts(start, &mut starts)?;
        out.extend(starts.into_iter().flat_map(u64::to_ne_bytes));
        Ok(())
    }

    /// # Errors
    /// `Corrupt` when the starts do not run from 0 to the number of tokens, upwards.
    pub(crate) fn check_starts(&self) -> Result<()> {
        let wrong = |what: String| Error::corrupt(what).at(self.starts.name());
        if self.starts.len() == 0 {
            return Err(wrong("no starts, expected at least the end of the last sequence".to_string()));
        }
        let mut ends = [[0], [0]];
        self.starts(0, &mut ends[0])?;
        self.starts(self.sequences(), &mut ends[1])?;
        let [[first], [last]] = ends;
        if (first, last) != (0, self.tokens.len()) {
            return Err(wrong(format!(
                "it runs from {first} to {last}, expected from 0 to the {} tokens there are",
                self.tokens.len()
            ))
            .hint("the copy, or the run that wrote it, looks unfinished"));
        }
        if self.sequences() <= MOST_CHECKED {
            let mut some = vec![0; PART.min(self.sequences()) as usize];
            let mut at = 0;
            while at < self.sequences() {
                let n = PART.min(self.sequences() - at);
                self.lengths(at, &mut some[..n as usize])?;
                at += n;
            }
        }
        Ok(())
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let end = first.checked_add(out.len() as u64).filter(|end| *end <= self.sequences());
        if end.is_none() {
            return Err(Error::out_of_range("record", first.max(self.sequences()), self.sequences()));
        }
        let mut starts = vec![0; out.len() + 1];
        self.starts(first, &mut starts)?;
        for (i, (length, pair)) in out.iter_mut().zip(starts.windows(2)).enumerate() {
            *length = self.length_of([pair[0], pair[1]], first + i as u64)?;
        }
        Ok(())
    }

    fn length_of(&self, [start, end]: [u64; 2], record: u64) -> Result<u64> {
        match end.checked_sub(start) {
            Some(length) if end <= self.tokens.len() => Ok(length),
            Some(_) => {
                Err(Error::corrupt(format!("it goes to {end}, and there are {} tokens", self.tokens.len()))
                    .at(self.starts.name())
                    .record(record))
            }
            None => Err(Error::corrupt(format!("it falls from {start} to {end}"))
                .at(self.starts.name())
                .record(record)),
        }
    }

    // Where a sequence begins, and its length.
    fn place(&self, record: u64) -> Result<(u64, u64)> {
        if record >= self.sequences() {
            return Err(Error::out_of_range("record", record, self.sequences()));
        }
        let mut pair = [0; 2];
        self.starts(record, &mut pair)?;
        Ok((pair[0], self.length_of(pair, record)?))
    }

    // Tokens as they are stored, every id within the largest one.
    fn read<'a>(&'a self, start: u64, count: u64, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let element = self.tokens.element();
        let bytes = self.tokens.read(start, count, scratch)?;
        // Ids are stored in 31 bits, so this fits.
        let most = (self.max_id * 2 + 1) as u32;
        if any_above(bytes, element, most) {
            let (at, number) =
                (0u64..).zip(numbers(bytes, element)).find(|(_, number)| *number > most).unwrap_or((0, most));
            return Err(self.at_token(
                Error::corrupt(format!(
                    "token {} is the id {}, {MAX_ID} is {}",
                    start + at,
                    number >> 1,
                    self.max_id
                )),
                start + at,
            ));
        }
        Ok(bytes)
    }

    // Whether the chunk of a token is missing and zeros stand for it.
    fn is_made_up(&self, token: u64) -> bool {
        self.tokens.locate(token, 1).is_ok_and(|places| places.is_empty())
    }

    fn at_token(&self, error: Error, token: u64) -> Error {
        let place = self.tokens.locate(token, 1).ok().and_then(|places| places.into_iter().next());
        match place {
            // One token is 4 bytes where it lies as it is.
            Some(place) if place.size == 4 => error.at(place.file).byte(place.start),
            Some(place) => error.at(place.file),
            None => error.at(self.tokens.name()),
        }
    }

    fn files(&self) -> Vec<FileInfo> {
        let attributes = FileInfo { file: self.attributes.name().to_string(), size: self.attributes.size() };
        [attributes].into_iter().chain(self.tokens.files()).chain(self.starts.files()).collect()
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(b"flat-tokens");
        hash.update(&self.max_id.to_le_bytes());
        for array in [&self.tokens, &self.starts] {
            array.fingerprint(&mut |bytes| hash.update(bytes))?;
        }
        Ok(hash.digest())
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

    fn advise(&self, spans: &[Span]) {
        for span in spans {
            if let Ok((start, _)) = self.0.group.place(span.record) {
                self.0.group.tokens.advise(start.saturating_add(span.start), span.len);
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
        windrow_core::format::Format::name(&FlatTokens)
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

    fn advise(&self, spans: &[Span]) {
        spans.iter().for_each(|span| self.0.group.tokens.advise(span.start, span.len));
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
        windrow_core::format::Format::name(&FlatTokens)
    }
}

fn numbers(bytes: &[u8], element: Element) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(move |stored| {
        let mut number = [0; 4];
        number.copy_from_slice(stored);
        if element.big_endian { u32::from_be_bytes(number) } else { u32::from_le_bytes(number) }
    })
}

/// Whether a number is larger than `most`.
fn any_above(bytes: &[u8], element: Element, most: u32) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        /// The same code with wider registers: rows that lie in memory as they are wait for nothing else.
        #[target_feature(enable = "avx2")]
        fn wide(bytes: &[u8], element: Element, most: u32) -> bool {
            any_above_here(bytes, element, most)
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide(bytes, element, most) };
    }
    any_above_here(bytes, element, most)
}

// A loop for each byte order, and without a way out in the middle: it would be no vector loop.
#[inline(always)]
fn any_above_here(bytes: &[u8], element: Element, most: u32) -> bool {
    let numbers = bytes.as_chunks::<4>().0.iter();
    match element.big_endian {
        false => numbers.fold(false, |any, stored| any | (u32::from_le_bytes(*stored) > most)),
        true => numbers.fold(false, |any, stored| any | (u32::from_be_bytes(*stored) > most)),
    }
}

// The first token of a sequence is marked, and no other: what tells a chunk in the wrong place.
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
