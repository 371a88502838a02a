//! Some of a source's records, in an order of their own, or all others in the order they have there.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::Xxh3;

use super::cells::Cells;
use super::{
    Chosen, Extras, FileInfo, LeftOut, Location, Numbers, Rows, Schema, SharedSource, Source, Stored, Words,
    word_of,
};
use crate::error::{Error, Result};
use crate::record::{Lengths, Span, Values};
use crate::row::{Row, Value};
use crate::store::Object;

/// The records with given numbers, or those without. Memory: that of [`Chosen`], or 8 bytes for each that is left out.
pub struct Subset {
    inner: SharedSource,
    which: Which,
    fingerprint: OnceLock<u64>,
}

enum Which {
    /// Those with these numbers.
    These(Arc<Chosen>),
    /// Those with these numbers, and what a plan says of how they were chosen.
    Named(Arc<Chosen>, Words),
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
                let which = match others {
                    true => Which::Others(LeftOut::new(numbers)),
                    false => {
                        Which::These(Arc::new(Chosen::new(Numbers::list(numbers.to_vec()), inner.len())?))
                    }
                };
                Ok(Subset { inner, which, fingerprint: OnceLock::new() })
            }
        }
    }

    /// Records that were chosen of these, in their order, and what a plan says of that behind the word of all.
    pub fn chosen(inner: SharedSource, chosen: Arc<Chosen>, words: Words) -> Subset {
        Subset { inner, which: Which::Named(chosen, words), fingerprint: OnceLock::new() }
    }

    // The record's number in the inner source.
    fn number(&self, record: u64) -> Result<u64> {
        if record >= self.len() {
            return Err(Error::out_of_range("record", record, self.len()));
        }
        Ok(match &self.which {
            Which::These(chosen) | Which::Named(chosen, _) => chosen.number(record),
            Which::Others(left_out) => left_out.number(record),
        })
    }

    fn span(&self, span: Span) -> Result<Span> {
        Ok(Span { record: self.number(span.record)?, ..span })
    }

    // How many records from this one on, at most `most`, follow each other there.
    fn run(&self, record: u64, most: usize) -> usize {
        match &self.which {
            Which::These(chosen) | Which::Named(chosen, _) => {
                let end = record.saturating_add(most as u64).min(chosen.len());
                chosen.run(record..end) as usize
            }
            Which::Others(_) => 1,
        }
    }

    // An error of one of `n` records that follow each other calls it by its number here.
    fn called(&self, error: Error, number: u64, record: u64, n: usize) -> Error {
        match error.place().record {
            Some(found) if (number..number + n as u64).contains(&found) => {
                error.record(record + (found - number))
            }
            _ => error,
        }
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
            Which::These(chosen) | Which::Named(chosen, _) => chosen.len(),
            Which::Others(left_out) => self.inner.len() - left_out.len(),
        }
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.asked(record, |number| self.inner.length(number))
    }

    fn uniform(&self) -> Option<u64> {
        self.inner.uniform()
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let record = first.saturating_add(done as u64);
            let number = self.number(record)?;
            let n = self.run(record, out.len() - done);
            let read = self.inner.lengths(number, &mut out[done..done + n]);
            read.map_err(|e| self.called(e, number, record, n))?;
            done += n;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[deny(clippy::missing_trait_methods)]
impl Source for Subset {
    crate::source::forward! { inner: schema files format object }

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

    // Where they follow each other there, they are read as such.
    fn rows_from(&self, first: u64) -> Rows<'_> {
        let left = self.len().saturating_sub(first);
        match self.number(first) {
            Ok(number) if self.run(first, left as usize) as u64 == left => {
                let rows = self.inner.rows_from(number).take(left as usize);
                Box::new(rows.map(move |row| row.map_err(|e| self.called(e, number, first, left as usize))))
            }
            _ => Box::new((first..self.len()).map(|record| self.row(record))),
        }
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
        if let Some(known) = self.fingerprint.get() {
            return Ok(*known);
        }
        let mut hash = Xxh3::new();
        hash.update(&self.inner.fingerprint()?.to_le_bytes());
        match &self.which {
            Which::These(chosen) => {
                hash.update(&[0]);
                chosen.numbers().hash_into(&mut hash);
            }
            Which::Named(chosen, _) => {
                hash.update(&[2]);
                hash.update(&chosen.hash().to_le_bytes());
            }
            Which::Others(left_out) => {
                hash.update(&[1]);
                left_out.numbers().iter().for_each(|number| hash.update(&number.to_le_bytes()));
            }
        }
        Ok(*self.fingerprint.get_or_init(|| hash.digest()))
    }

    fn treatment(&self) -> Option<String> {
        let inner = self.inner.treatment();
        match &self.which {
            Which::Named(chosen, words) => {
                let own = words.of(chosen);
                Some(inner.map_or(own.clone(), |inner| format!("{inner},{own}")))
            }
            _ => inner,
        }
    }

    fn word(&self) -> Result<String> {
        match &self.which {
            Which::Named(chosen, words) => Ok(format!("{}:{}", self.inner.word()?, words.of(chosen))),
            _ => word_of(self),
        }
    }

    fn cells(
        &self,
        name: &str,
        records: Range<u64>,
        take: &mut dyn FnMut(u64, Cells<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut record = records.start;
        while record < records.end {
            let number = self.number(record)?;
            let n = self.run(record, usize::try_from(records.end - record).unwrap_or(usize::MAX));
            let run = number..number + n as u64;
            let mut taken = |first: u64, cells: Cells<'_>| take(record + (first - number), cells);
            self.inner.cells(name, run, &mut taken).map_err(|e| self.called(e, number, record, n))?;
            record += n as u64;
        }
        Ok(())
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        self.asked(record, |number| self.inner.stored(number))
    }

    // Its records do not follow each other.
    fn joined(&self) -> Option<SharedSource> {
        None
    }
}
