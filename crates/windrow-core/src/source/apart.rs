//! Each channel of records `[T, C]` as a record `[T]` of its own.

use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::{Cells, Extras, FileInfo, Location, Rows, Schema, SharedSource, Source, Stored, one_by_one};
use crate::error::{Error, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::Object;

/// The channels of all records: those of record 0 in their order, then those of record 1, …. What is beside a record is beside each of
/// its channels. Reading one reads the bytes of all.
pub struct Apart {
    inner: SharedSource,
    channels: u64,
    schema: Schema,
}

const TREATMENT: &str = "channels=apart";

impl Apart {
    /// Records `[T]` stay as they are.
    ///
    /// # Errors
    /// `Config` where records are not numbers; `Corrupt` for records without channels or more channels than can be counted.
    pub fn of(inner: SharedSource) -> Result<SharedSource> {
        inner.schema().need_numbers()?;
        let Some(channels) = inner.schema().channels else { return Ok(inner) };
        let channels = channels as u64;
        if channels == 0 || inner.len().checked_mul(channels).is_none() {
            return Err(Error::corrupt(format!(
                "{} records of {channels} channels cannot be taken apart",
                inner.len()
            )));
        }
        // What names one record names each of its channels.
        let schema = Schema { channels: None, unique: None, ..inner.schema().clone() };
        Ok(Arc::new(Apart { inner, channels, schema }))
    }

    // What `ask` says of the record that a channel is of; an error calls it by its number here.
    fn asked<T>(&self, record: u64, ask: impl FnOnce(u64) -> Result<T>) -> Result<T> {
        if record >= self.len() {
            return Err(Error::out_of_range("record", record, self.len()));
        }
        let whole = record / self.channels;
        ask(whole).map_err(|e| e.renumbered(whole, record))
    }

    fn whole(&self, span: Span) -> Span {
        Span { record: span.record / self.channels, ..span }
    }

    // The numbers of one channel.
    fn one<'a>(&self, record: u64, values: &Values<'_>, scratch: &'a mut Vec<u8>) -> Values<'a> {
        let size = values.element.size();
        let first = (record % self.channels) as usize * size;
        scratch.clear();
        for numbers in values.bytes.chunks_exact(size * values.channels) {
            scratch.extend_from_slice(&numbers[first..first + size]);
        }
        Values { bytes: scratch, element: values.element, channels: 1, decode: values.decode }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Apart {
    fn len(&self) -> u64 {
        self.inner.len() * self.channels
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.asked(record, |whole| self.inner.length(whole))
    }

    fn uniform(&self) -> Option<u64> {
        self.inner.uniform()
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        for (at, length) in out.iter_mut().enumerate() {
            *length = self.length(first.saturating_add(at as u64))?;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Apart {
    crate::source::forward! { inner: files format word }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let mut whole = Vec::new();
        let values =
            self.asked(span.record, |record| self.inner.read(Span { record, ..span }, &mut whole))?;
        Ok(self.one(span.record, &values, scratch))
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let mut whole = Vec::new();
        let values = self.asked(record, |record| self.inner.read_whole(record, &mut whole))?;
        Ok(self.one(record, &values, scratch))
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.asked(span.record, |record| self.inner.read_track(track, Span { record, ..span }, scratch))
    }

    fn row(&self, record: u64) -> Result<Row> {
        self.asked(record, |whole| self.inner.row(whole))
    }

    fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
        self.asked(record, |whole| self.inner.value(whole, columns))
    }

    fn rows_from(&self, first: u64) -> Rows<'_> {
        Box::new((first..self.len()).map(|record| self.row(record)))
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        self.asked(record, |whole| self.inner.extras(whole))
    }

    fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
        self.asked(record, |whole| self.inner.beside(whole, names))
    }

    fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
        self.asked(record, |whole| self.inner.text(whole, scratch))
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        self.inner.prefetch(&mut spans.map(|(span, step)| (self.whole(span), step)));
    }

    fn touch(&self, span: Span) {
        self.inner.touch(self.whole(span));
    }

    fn decode_ahead(&self, spans: &mut dyn Iterator<Item = Span>) {
        self.inner.decode_ahead(&mut spans.map(|span| self.whole(span)));
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        self.asked(span.record, |record| self.inner.locate(Span { record, ..span }))
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        hash.update(TREATMENT.as_bytes());
        Ok(hash.digest())
    }

    // Its numbers lie between those of other channels.
    fn stored(&self, _record: u64) -> Result<Option<Stored>> {
        Ok(None)
    }

    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        Err(Error::out_of_range("object", number, 0))
    }

    fn joined(&self) -> Option<SharedSource> {
        None
    }

    fn cells(
        &self,
        name: &str,
        records: Range<u64>,
        take: &mut dyn FnMut(u64, Cells<'_>) -> Result<()>,
    ) -> Result<()> {
        one_by_one(self, name, records, take)
    }

    fn treatment(&self) -> Option<String> {
        let inner = self.inner.treatment();
        Some(inner.map_or_else(|| TREATMENT.to_string(), |inner| format!("{inner},{TREATMENT}")))
    }
}
