//! Samples as rows, and one column of them as numbers.

use std::ops::Range;
use std::sync::Arc;

use super::Mds;
use super::encoding::{Encoding, Head, MOST_HEAD};
use super::index::{Column, Index};
use super::shards::{Shards, word};
use windrow_core::format::{Format, Options};
use windrow_core::source;
use windrow_core::source::{Extras, FileInfo, Location, Schema, Source, check_span};
use windrow_core::{DType, Element};
use windrow_core::{Decode, Lengths, Span, Values};
use windrow_core::{Error, Result};
use windrow_core::{Row, Value};

/// The samples of a data set.
pub(super) struct Samples {
    pub(super) shards: Shards,
    columns: Vec<Column>,
    hash: u64,
}

impl Samples {
    pub(super) fn new(shards: Shards, index: Index) -> Samples {
        Samples { shards, columns: index.columns, hash: index.hash }
    }

    /// The shard of a sample, and where the value of each column is in its file.
    fn places(&self, sample: u64) -> Result<(usize, Vec<Range<u64>>)> {
        let (shard, local) = self.shards.find(sample)?;
        let at = |e: Error| e.record(sample);
        let place = self.shards.place(shard, local).map_err(at)?;
        let object = self.shards.object(shard).map_err(at)?;
        let sizes = 4 * self.columns.iter().filter(|column| column.size.is_none()).count() as u64;
        let wrong = |found: String| {
            Error::corrupt(format!("{found} in a sample of {} bytes", place.end - place.start))
                .at(object.name())
                .record(sample)
                .byte(place.start)
                .hint("the shard is damaged: copy it again")
        };
        if sizes > place.end - place.start {
            return Err(wrong(format!("{sizes} bytes of sizes")));
        }
        let mut scratch = Vec::new();
        let words = object.read(place.start, sizes as usize, &mut scratch).map_err(at)?;
        let (mut start, mut variable) = (place.start + sizes, 0);
        let mut places = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let size = column.size.unwrap_or_else(|| {
                variable += 4;
                word(words, variable - 4)
            });
            let end = start.checked_add(size).filter(|end| *end <= place.end);
            let end = end.ok_or_else(|| wrong(format!("a value of {:?} of {size} bytes", column.name)))?;
            places.push(start..end);
            start = end;
        }
        match start == place.end {
            true => Ok((shard, places)),
            false => Err(wrong(format!("values of {} bytes", start - place.start))),
        }
    }

    fn value(&self, sample: u64, shard: usize, column: usize, place: &Range<u64>) -> Result<Value> {
        let column = &self.columns[column];
        let object = self.shards.object(shard)?;
        let mut scratch = Vec::new();
        let bytes = object.read(place.start, (place.end - place.start) as usize, &mut scratch)?;
        column
            .encoding
            .value(bytes)
            .map_err(|e| e.at(object.name()).record(sample).byte(place.start).field(column.name.clone()))
    }

    fn row(&self, sample: u64, columns: &[usize]) -> Result<Row> {
        let (shard, places) = self.places(sample)?;
        let named = columns.iter().map(|column| {
            let value = self.value(sample, shard, *column, &places[*column])?;
            Ok((self.columns[*column].name.clone(), value))
        });
        named.collect()
    }

    fn locate(&self, sample: u64, column: Option<usize>) -> Result<(String, Range<u64>)> {
        let (shard, places) = self.places(sample)?;
        let place = match column {
            Some(column) => places[column].clone(),
            None => {
                let (shard, local) = self.shards.find(sample)?;
                self.shards.place(shard, local)?
            }
        };
        Ok((self.shards.files.name(shard), place))
    }

    fn fingerprint(&self, of: &str) -> Result<u64> {
        self.shards.files.fingerprint(&[Mds.name().as_bytes(), &self.hash.to_le_bytes(), of.as_bytes()])
    }

    /// Reads what `prefetch` says of samples, without waiting.
    fn prefetch(&self, sample: u64) {
        let place = || {
            let (shard, local) = self.shards.find(sample).ok()?;
            Some((shard, self.shards.place(shard, local).ok()?))
        };
        if let Some((shard, place)) = place()
            && let Ok(object) = self.shards.object(shard)
        {
            object.prefetch(place.start, place.end - place.start);
        }
    }
}

/// Samples as rows of some columns.
pub(super) struct Rows {
    samples: Samples,
    columns: Vec<usize>,
    schema: Schema,
}

impl Rows {
    pub(super) fn new(samples: Samples, columns: Vec<usize>) -> Rows {
        let column = |number: &usize| {
            let Column { name, text, .. } = &samples.columns[*number];
            source::Column { name: name.clone(), holds: text.clone() }
        };
        let schema = Schema::rows(columns.iter().map(column).collect());
        Rows { samples, columns, schema }
    }
}

impl Lengths for Rows {
    fn len(&self) -> u64 {
        self.samples.shards.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        self.samples.shards.find(record).map(|_| 1)
    }

    fn uniform(&self) -> Option<u64> {
        Some(1)
    }
}

impl Source for Rows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, _scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        self.length(span.record)?;
        Err(self.schema.need_numbers().err().unwrap_or_else(|| Error::config("rows")).record(span.record))
    }

    fn row(&self, record: u64) -> Result<Row> {
        self.samples.row(record, &self.columns)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        spans.for_each(|(span, _)| self.samples.prefetch(span.record));
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (file, place) = self.samples.locate(span.record, None)?;
        Ok(vec![Location { file, start: place.start, size: place.end - place.start }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.samples.shards.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        let names: Vec<&str> = self.schema.columns.iter().map(|column| column.name.as_str()).collect();
        self.samples.fingerprint(&names.join("\0"))
    }

    fn format(&self) -> &'static str {
        Mds.name()
    }
}

/// One column of numbers; the others are metadata beside it.
pub(super) struct Numbers {
    samples: Arc<Samples>,
    column: usize,
    /// dtype of a column of bytes.
    dtype: Option<DType>,
    others: Vec<usize>,
    schema: Schema,
    uniform: Option<u64>,
}

impl Numbers {
    /// The column of this number.
    ///
    /// # Errors
    /// `Config` for one that holds no numbers; what reading the first sample says.
    pub(super) fn new(samples: Samples, column: usize, options: &Options) -> Result<Numbers> {
        let Column { name, encoding, text, .. } = &samples.columns[column];
        let dtype = match (encoding, options.dtype) {
            (Encoding::Array(..), _) => None,
            (Encoding::Bytes, Some(dtype)) => Some(dtype),
            (Encoding::Bytes, None) => {
                return Err(Error::config(format!("the column {name:?} is bytes"))
                    .field("dtype")
                    .hint("dtype= says which numbers they are: int64 in older data of LLM Foundry"));
            }
            _ => {
                return Err(Error::config(format!("the column {name:?} is {text}, not numbers"))
                    .field("column")
                    .hint("column= names an ndarray, or with dtype= a column of bytes"));
            }
        };
        // Pickles are left out: nothing is known of them.
        let others = (0..samples.columns.len())
            .filter(|other| *other != column && samples.columns[*other].encoding != Encoding::Pickle)
            .collect();
        let (declared, shape) = match encoding {
            Encoding::Array(dtype, shape) => (*dtype, shape.clone()),
            _ => (dtype, None),
        };
        let mut numbers = Numbers {
            column,
            dtype,
            others,
            schema: Schema::numbers(Element::little(declared.unwrap_or(DType::I64))),
            uniform: shape.as_ref().and_then(|shape| shape.first().copied()),
            samples: Arc::new(samples),
        };
        let first = match (shape, numbers.samples.shards.len()) {
            (Some(shape), _) => Some(shape),
            (None, 0) => None,
            (None, _) => {
                let (_, _, head) = numbers.head(0)?;
                // Whole numbers of all kinds are int64 beside each other, and any with a float among them float32.
                if declared.is_none() {
                    let dtype = if head.dtype.is_integer() { DType::I64 } else { DType::F32 };
                    numbers.schema.element = Element::little(dtype);
                    numbers.schema.own_dtypes = true;
                }
                Some(head.shape)
            }
        };
        numbers.schema.channels = match first.as_deref() {
            None | Some([_]) => None,
            Some([_, channels]) => Some(
                usize::try_from(*channels)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| Error::unsupported(format!("records of {channels} channels")))?,
            ),
            Some(shape) => {
                return Err(Error::unsupported(format!("arrays of {} axes", shape.len()))
                    .field("column")
                    .hint("records are [T] or [T, C]; columns= gives rows with arrays of any shape"));
            }
        };
        Ok(numbers)
    }

    // The shard of a record, where its value lies, and its head.
    fn head(&self, record: u64) -> Result<(usize, Range<u64>, Head)> {
        let (shard, places) = self.samples.places(record)?;
        let place = places[self.column].clone();
        let (object, size) = (self.samples.shards.object(shard)?, place.end - place.start);
        let named = |e: Error| {
            e.at(object.name())
                .record(record)
                .byte(place.start)
                .field(self.samples.columns[self.column].name.clone())
        };
        let head = match self.dtype {
            Some(dtype) => match size % dtype.size() as u64 {
                0 => Head { dtype, shape: vec![size / dtype.size() as u64], size: 0 },
                _ => return Err(named(Error::corrupt(format!("{size} bytes, expected {dtype} numbers")))),
            },
            None => {
                let mut scratch = Vec::new();
                let bytes = object.read(place.start, size.min(MOST_HEAD) as usize, &mut scratch)?;
                self.samples.columns[self.column].encoding.head(bytes, size).map_err(named)?
            }
        };
        Ok((shard, place, head))
    }

    // The same, of the shape that all records have.
    fn checked(&self, record: u64) -> Result<(usize, u64, Head)> {
        let (shard, place, head) = self.head(record)?;
        let fits = match (self.schema.channels, head.shape.as_slice()) {
            (None, [_]) => true,
            (Some(channels), [_, found]) => channels as u64 == *found,
            _ => false,
        };
        let is_kind =
            !self.schema.own_dtypes || self.schema.element.dtype == DType::F32 || head.dtype.is_integer();
        match fits && is_kind {
            true => Ok((shard, place.start + head.size, head)),
            false => {
                let channels = self.schema.channels.map_or("[T]".to_string(), |c| format!("[T, {c}]"));
                let of = self.schema.element.dtype;
                Err(Error::corrupt(format!(
                    "an array {} {:?}, the first is {of} {channels}",
                    head.dtype, head.shape
                ))
                .at(self.samples.shards.files.name(shard))
                .record(record)
                .byte(place.start)
                .hint("columns= gives rows with arrays of any shape"))
            }
        }
    }

    // The shard, the first byte and the number of bytes of a span, and the dtype of its numbers.
    fn place(&self, span: Span) -> Result<(usize, u64, u64, DType)> {
        let (shard, start, head) = self.checked(span.record)?;
        check_span(span, head.shape.first().copied().unwrap_or(0))?;
        // Within the value, whose bytes are there.
        let width = head.dtype.size() as u64 * self.schema.channels.unwrap_or(1) as u64;
        Ok((shard, start + span.start * width, span.len * width, head.dtype))
    }
}

impl Lengths for Numbers {
    fn len(&self) -> u64 {
        self.samples.shards.len()
    }

    fn length(&self, record: u64) -> Result<u64> {
        match self.uniform {
            Some(length) => self.samples.shards.find(record).map(|_| length),
            None => self.checked(record).map(|(_, _, head)| head.shape.first().copied().unwrap_or(0)),
        }
    }

    fn uniform(&self) -> Option<u64> {
        self.uniform
    }
}

impl Source for Numbers {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (shard, start, size, dtype) = self.place(span)?;
        let size = usize::try_from(size)
            .map_err(|_| Error::unsupported(format!("{} values at once on this machine", span.len)))?;
        let bytes = self.samples.shards.object(shard)?.read(start, size, scratch);
        let bytes = bytes.map_err(|e| e.record(span.record))?;
        let decode = match self.schema.own_dtypes && self.schema.element.dtype == DType::F32 {
            true if dtype != DType::F32 => Decode::Single,
            _ => Decode::Plain,
        };
        let channels = self.schema.channels.unwrap_or(1);
        Ok(Values { bytes, element: Element::little(dtype), channels, decode })
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        self.samples.row(record, &self.others)
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        spans.for_each(|(span, _)| self.samples.prefetch(span.record));
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (shard, start, size, _) = self.place(span)?;
        Ok(vec![Location { file: self.samples.shards.files.name(shard), start, size }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.samples.shards.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        let dtype = self.dtype.map_or(String::new(), |dtype| format!(":{dtype}"));
        self.samples.fingerprint(&format!("{}{dtype}", self.samples.columns[self.column].name))
    }

    fn format(&self) -> &'static str {
        Mds.name()
    }
}

/// The columns that hold arrays.
pub(super) fn arrays(index: &Index) -> usize {
    index.columns.iter().filter(|column| matches!(column.encoding, Encoding::Array(..))).count()
}
