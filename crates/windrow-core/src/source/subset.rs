//! Some of a source's records, or all others, in the order they have there.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::{Extras, FileInfo, LeftOut, Location, Rows, Schema, SharedSource, Source, Stored};
use crate::error::{Error, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::Object;

/// The records with given numbers, or those without. Memory: 8 bytes per given number, for either.
pub struct Subset {
    inner: SharedSource,
    which: Which,
}

/// Numbers ascend, each once.
enum Which {
    /// Those with these numbers.
    These(Arc<[u64]>),
    /// All others.
    Others(LeftOut),
}

impl Subset {
    /// The records that `numbers` names, or with `others` all that it does not name. Numbers ascend.
    ///
    /// # Errors
    /// `Config` when they do not ascend; `OutOfRange` when the source has no such record.
    pub fn new(inner: SharedSource, numbers: Arc<[u64]>, others: bool) -> Result<Subset> {
        if numbers.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::config("record numbers must ascend, each once"));
        }
        match numbers.last() {
            Some(last) if *last >= inner.len() => Err(Error::out_of_range("record", last, inner.len())),
            _ => {
                let which = if others { Which::Others(LeftOut::new(numbers)) } else { Which::These(numbers) };
                Ok(Subset { inner, which })
            }
        }
    }

    // The record's number in the inner source.
    fn number(&self, record: u64) -> Result<u64> {
        if record >= self.len() {
            return Err(Error::out_of_range("record", record, self.len()));
        }
        Ok(match &self.which {
            Which::These(numbers) => numbers[record as usize],
            Which::Others(left_out) => left_out.number(record),
        })
    }

    fn span(&self, span: Span) -> Result<Span> {
        Ok(Span { record: self.number(span.record)?, ..span })
    }

    // What `ask` says of a record by its number in the inner source; an error calls it by its number here.
    fn asked<T>(&self, record: u64, ask: impl FnOnce(u64) -> Result<T>) -> Result<T> {
        let number = self.number(record)?;
        ask(number).map_err(|e| e.renumbered(number, record))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Lengths for Subset {
    fn len(&self) -> u64 {
        match &self.which {
            Which::These(numbers) => numbers.len() as u64,
            Which::Others(left_out) => self.inner.len() - left_out.len(),
        }
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.asked(record, |number| self.inner.length(number))
    }

    fn uniform(&self) -> Option<u64> {
        self.inner.uniform()
    }

    // Neighbours here are strangers there.
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
impl Source for Subset {
    crate::source::forward! { inner: schema files format treatment object }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.asked(span.record, |record| self.inner.read(Span { record, ..span }, scratch))
    }

    fn read_whole<'a>(&'a self, record: u64, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.asked(record, |number| self.inner.read_whole(number, scratch))
    }

    fn read_track<'a>(&'a self, track: usize, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.asked(span.record, |record| self.inner.read_track(track, Span { record, ..span }, scratch))
    }

    fn text<'a>(&'a self, record: u64, scratch: &'a mut String) -> Result<&'a str> {
        self.asked(record, |number| self.inner.text(number, scratch))
    }

    fn row(&self, record: u64) -> Result<Row> {
        self.asked(record, |number| self.inner.row(number))
    }

    fn value(&self, record: u64, columns: Option<&[usize]>) -> Result<Value> {
        self.asked(record, |number| self.inner.value(number, columns))
    }

    // Its records do not follow each other there.
    fn rows_from(&self, first: u64) -> Rows<'_> {
        Box::new((first..self.len()).map(|record| self.row(record)))
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        self.asked(record, |number| self.inner.extras(number))
    }

    fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
        self.asked(record, |number| self.inner.beside(number, names))
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
        self.asked(span.record, |record| self.inner.locate(Span { record, ..span }))
    }

    fn fingerprint(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        let (others, numbers) = match &self.which {
            Which::These(numbers) => (false, &numbers[..]),
            Which::Others(left_out) => (true, left_out.numbers()),
        };
        hash.update(&[u8::from(others)]);
        numbers.iter().for_each(|number| hash.update(&number.to_le_bytes()));
        Ok(hash.digest())
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        self.asked(record, |number| self.inner.stored(number))
    }

    // Its records do not follow each other.
    fn joined(&self) -> Option<SharedSource> {
        None
    }
}
