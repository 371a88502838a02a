//! Records whose numbers are in memory already, such as columns of a table.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::{Extras, FileInfo, Location, Schema, Source, check_span};
use crate::array::Element;
use crate::error::{Error, Result};
use crate::record::{Decode, Lengths, Span, Values};
use crate::row::Value;
use crate::touch::touch;

/// Memory that holds the numbers of records.
pub type HeldBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Records of numbers that lie in memory, read where they are.
pub struct InMemory {
    name: &'static str,
    schema: Schema,
    records: Vec<(HeldBytes, Extras)>,
    size: u64,
    fingerprint: u64,
}

impl InMemory {
    /// Each record's numbers `[T]`, or `[T, C]` of `channels`, and what is beside them. They are read once, for the fingerprint,
    /// and must not change as long as the source is used.
    ///
    /// # Errors
    /// `Config` for bytes that are not a whole number of values.
    pub fn new(
        name: &'static str,
        element: Element,
        channels: Option<usize>,
        records: Vec<(HeldBytes, Extras)>,
    ) -> Result<InMemory> {
        let schema =
            Schema { channels, values_name: "values", beside: names(&records), ..Schema::numbers(element) };
        let value = element.size() * channels.unwrap_or(1);
        let mut hash = Xxh3::new();
        hash.update(format!("{}:{}:{channels:?}", element.dtype, element.big_endian).as_bytes());
        let mut size = 0;
        for (record, (bytes, extras)) in (0..).zip(&records) {
            let bytes = (**bytes).as_ref();
            if value == 0 || !bytes.len().is_multiple_of(value) {
                return Err(Error::config(format!("{} bytes for values of {value} bytes", bytes.len()))
                    .record(record));
            }
            size += bytes.len() as u64;
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
            for (name, value) in extras.iter() {
                hash.update(format!("{name}={};", value.shown()).as_bytes());
                // Of an array that tells only its shape.
                if let Value::Array(array) = value {
                    hash.update(&array.bytes);
                }
            }
        }
        Ok(InMemory { name, schema, records, size, fingerprint: hash.digest() })
    }

    fn record(&self, number: u64) -> Result<&(HeldBytes, Extras)> {
        let found = usize::try_from(number).ok().and_then(|number| self.records.get(number));
        found.ok_or_else(|| Error::out_of_range("record", number, self.len()))
    }

    fn value_size(&self) -> usize {
        self.schema.element.size() * self.schema.channels.unwrap_or(1)
    }

    fn bytes(&self, span: Span) -> Result<&[u8]> {
        let bytes = (*self.record(span.record)?.0).as_ref();
        let size = self.value_size();
        check_span(span, (bytes.len() / size) as u64)?;
        // Within the record, so within memory.
        Ok(&bytes[span.start as usize * size..][..span.len as usize * size])
    }

    fn file(&self) -> String {
        format!("memory:{}", self.name)
    }
}

impl Lengths for InMemory {
    fn len(&self) -> u64 {
        self.records.len() as u64
    }

    fn length(&self, record: u64) -> Result<u64> {
        let bytes = (*self.record(record)?.0).as_ref();
        Ok((bytes.len() / self.value_size()) as u64)
    }
}

impl Source for InMemory {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, _scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        Ok(Values {
            bytes: self.bytes(span)?,
            element: self.schema.element,
            channels: self.schema.channels.unwrap_or(1),
            decode: Decode::Plain,
        })
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        Ok(self.record(record)?.1.clone())
    }

    fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
        let extras =
            self.record(record)?.1.iter().filter(|(name, _)| names.iter().any(|asked| asked == name));
        Ok(Extras::of_distinct(extras.map(|(name, value)| (name.to_string(), value.clone())).collect()))
    }

    fn touch(&self, span: Span) {
        if let Ok(bytes) = self.bytes(span) {
            touch(bytes);
        }
    }

    // As if all records lay end to end.
    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let size = self.bytes(span)?.len() as u64;
        let before = self.records[..span.record as usize].iter();
        let before: u64 = before.map(|(bytes, _)| (**bytes).as_ref().len() as u64).sum();
        let start = before + span.start * self.value_size() as u64;
        Ok(vec![Location { file: self.file(), start, size }])
    }

    fn files(&self) -> Vec<FileInfo> {
        vec![FileInfo { file: self.file(), size: self.size }]
    }

    fn fingerprint(&self) -> Result<u64> {
        Ok(self.fingerprint)
    }

    fn format(&self) -> &'static str {
        self.name
    }
}

// The names beside each record, where all have the same.
fn names(records: &[(HeldBytes, Extras)]) -> Option<Vec<String>> {
    let mut all = records.iter().map(|(_, extras)| extras.names());
    let first = all.next().map(|names| names.map(str::to_string).collect::<Vec<_>>()).unwrap_or_default();
    all.all(|names| names.eq(first.iter().map(String::as_str))).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::DType;
    use crate::row::Row;
    use crate::source::conformance;

    fn source(records: &[&[u16]], channels: Option<usize>, id: &str) -> Result<InMemory> {
        let held = |numbers: &&[u16]| -> (HeldBytes, Extras) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            (Arc::new(bytes), [("item_id", Value::from(id))].into_iter().collect::<Row>())
        };
        InMemory::new("table", Element::little(DType::U16), channels, records.iter().map(held).collect())
    }

    #[test]
    fn it_is_a_source_like_any_other() {
        let all: Vec<u8> = [1u16, 2, 3, 4, 5, 6].iter().flat_map(|number| number.to_le_bytes()).collect();
        for channels in [None, Some(2)] {
            let source = source(&[&[1, 2], &[], &[3, 4, 5, 6]], channels, "a").unwrap();
            conformance::check(&source).unwrap();
            let bytes_at = |at: &Location| Ok(all[at.start as usize..(at.start + at.size) as usize].to_vec());
            conformance::check_located(&source, &bytes_at).unwrap();
        }
        assert!(source(&[&[1, 2, 3]], Some(2), "a").is_err());
    }

    #[test]
    fn its_fingerprint_is_that_of_its_values() {
        let of = |records: &[&[u16]], channels, id| source(records, channels, id).unwrap().fingerprint;
        let first = of(&[&[1, 2], &[3, 4]], None, "a");
        assert_eq!(first, of(&[&[1, 2], &[3, 4]], None, "a"));
        for other in [
            of(&[&[1, 2], &[3, 5]], None, "a"),
            of(&[&[1, 2, 3], &[4]], None, "a"),
            of(&[&[1, 2], &[3, 4]], Some(1), "a"),
            of(&[&[1, 2], &[3, 4]], None, "b"),
        ] {
            assert_ne!(first, other);
        }
    }
}
