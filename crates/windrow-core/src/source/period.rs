//! A part of each record in time.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::{Border, Extras, FileInfo, Fit, Location, Rows, Schema, SharedSource, Source, Stored};
use crate::error::{Error, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::Object;

/// Of each record the values from one border up to another, and `before` values that come before them, or fewer where the record
/// has fewer.
pub struct Period {
    inner: SharedSource,
    from: Border,
    to: Border,
    before: u64,
}

impl Period {
    /// Of T values those from `floor(T × from)` up to `floor(T × to)`.
    ///
    /// # Errors
    /// `Config` for what are not such fractions, and where records are not numbers.
    pub fn new(inner: SharedSource, from: f64, to: f64, before: u64) -> Result<Period> {
        let part = Fit::Fraction(from, to);
        if part.check().is_err() {
            return Err(Error::config(format!("{part} is not a part of a series"))
                .hint("give fractions of its length, 0 to 1, the second above the first"));
        }
        Period::between(inner, Border::Fraction(from), Border::Fraction(to), before)
    }

    /// The values between two borders; none of a record where the second one comes first.
    ///
    /// # Errors
    /// `Config` where records are not numbers.
    pub fn between(inner: SharedSource, from: Border, to: Border, before: u64) -> Result<Period> {
        inner.schema().need_numbers()?;
        Ok(Period { inner, from, to, before })
    }

    /// The number in its record there of a record's first value.
    ///
    /// # Errors
    /// As [`Lengths::length`].
    pub fn first(&self, record: u64) -> Result<u64> {
        Ok(self.of(record)?.0)
    }

    // The first value of a record there, and how many.
    fn of(&self, record: u64) -> Result<(u64, u64)> {
        Ok(self.part(record, self.inner.length(record)?))
    }

    fn part(&self, record: u64, length: u64) -> (u64, u64) {
        let end = self.to.of(record, length);
        let start = self.from.of(record, length).min(end).saturating_sub(self.before);
        (start, end - start)
    }

    fn span(&self, span: Span) -> Result<Span> {
        let (start, len) = self.of(span.record)?;
        super::check_span(span, len)?;
        Ok(Span { start: start + span.start, ..span })
    }
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Period {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        Ok(self.of(record)?.1)
    }

    fn uniform(&self) -> Option<u64> {
        let is_even = self.from.is_by_length() && self.to.is_by_length();
        Some(self.part(0, self.inner.uniform().filter(|_| is_even)?).1)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        self.inner.lengths(first, out)?;
        for (record, length) in (first..).zip(out) {
            *length = self.part(record, *length).1;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Period {
    crate::source::forward! { inner: schema text row value rows_from extras beside files format treatment object word cells }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.inner.read(self.span(span)?, scratch)
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (start, len) = self.of(record)?;
        self.inner.read(Span { record, start, len }, scratch)
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.inner.read_track(track, self.span(span)?, scratch)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        self.inner.prefetch(&mut spans.filter_map(|(span, step)| Some((self.span(span).ok()?, step))));
    }

    fn touch(&self, span: Span) {
        if let Ok(span) = self.span(span) {
            self.inner.touch(span);
        }
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        self.inner.decode_ahead(&mut spans.filter_map(|span| self.span(span).ok()));
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        self.inner.locate(self.span(span)?)
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        hash.update(format!("period=({}, {}),before={}", self.from, self.to, self.before).as_bytes());
        self.from.hash(&mut hash);
        self.to.hash(&mut hash);
        Ok(hash.digest())
    }

    // It does not say where it begins within the record there.
    fn stored(&self, _record: u64) -> Result<Option<Stored>> {
        Ok(None)
    }

    // What follows a part is not the next one.
    fn joined(&self) -> Option<SharedSource> {
        None
    }
}
