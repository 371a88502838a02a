//! Documents of no file: their lengths are in memory, their values by formula.

use std::sync::Arc;

use windrow::dev::source::{FileInfo, Location, Schema, Source};
use windrow::{DType, Dataset, Decode, Element, Lengths, Owner, Span, Values};

use crate::mix;

/// Documents of 500 to 1,523 tokens, whose lengths are in memory.
pub(crate) struct Documents(Vec<u16>);

impl Documents {
    pub(crate) fn new(n: u64) -> Documents {
        Documents((0..n).map(|i| 500 + (mix(i) % 1024) as u16).collect())
    }
}

impl Lengths for Documents {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn length(&self, record: u64) -> windrow::Result<u64> {
        let length = usize::try_from(record).ok().and_then(|record| self.0.get(record));
        length
            .map(|length| u64::from(*length))
            .ok_or_else(|| windrow::Error::out_of_range("record", record, self.len()))
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> windrow::Result<()> {
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let some = self.0.get(first..).and_then(|some| some.get(..out.len()));
        let some = some.ok_or_else(|| windrow::Error::out_of_range("record", first, self.len()))?;
        out.iter_mut().zip(some).for_each(|(length, stored)| *length = u64::from(*stored));
        Ok(())
    }
}

/// Documents that share one piece of memory: each begins somewhere in it, by formula.
pub(crate) struct Made {
    documents: Documents,
    memory: Vec<u8>,
    schema: Schema,
}

/// Far more than a cache holds, as the files of that number of documents are.
const MEMORY: usize = 1 << 30;

impl Made {
    // `n` documents.
    pub(crate) fn dataset(n: u64) -> windrow::Result<Dataset> {
        let memory = (0..MEMORY as u64 / 8).flat_map(|i| mix(i).to_le_bytes()).collect();
        let schema = Schema::numbers(Element::little(DType::U16));
        let made = Made { documents: Documents::new(n), memory, schema };
        Dataset::in_memory(Arc::new(made), Owner::new(()), &Default::default())
    }
}

impl Lengths for Made {
    fn len(&self) -> u64 {
        self.documents.len()
    }

    fn length(&self, record: u64) -> windrow::Result<u64> {
        self.documents.length(record)
    }

    fn lengths(&self, first: u64, out: &mut [u64]) -> windrow::Result<()> {
        self.documents.lengths(first, out)
    }
}

impl Made {
    fn bytes(&self, span: Span) -> &[u8] {
        // No document is longer than 1,523 tokens.
        let first = mix(span.record) as usize % (MEMORY - 4096) / 2 * 2;
        &self.memory[first + span.start as usize * 2..][..span.len as usize * 2]
    }
}

impl Source for Made {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, _scratch: &'a mut Vec<u8>) -> windrow::Result<Values<'a>> {
        let element = self.schema.element;
        Ok(Values { bytes: self.bytes(span), element, channels: 1, decode: Decode::Plain })
    }

    fn touch(&self, span: Span) {
        windrow::dev::touch(self.bytes(span));
    }

    fn locate(&self, _span: Span) -> windrow::Result<Vec<Location>> {
        Ok(Vec::new())
    }

    fn files(&self) -> Vec<FileInfo> {
        Vec::new()
    }

    fn fingerprint(&self) -> windrow::Result<u64> {
        Ok(self.len())
    }

    fn format(&self) -> &'static str {
        "made"
    }
}
