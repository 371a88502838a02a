//! One column of numbers; the others are metadata beside it.

use std::ops::Range;
use std::sync::Arc;

use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::format::Options;
use crate::record::{Decode, Lengths, Span, Values};
use crate::source::{Extras, FileInfo, Location, Schema, Source, Stored, check_span, one_by_one};
use crate::store::Object;

use super::{Column, Found, Kind, Samples, TakeCells};

/// One column of numbers.
pub(super) struct Numbers<S> {
    samples: S,
    column: usize,
    /// dtype of a column of bytes.
    dtype: Option<DType>,
    others: Vec<usize>,
    schema: Schema,
    uniform: Option<u64>,
}

impl<S: Samples> Numbers<S> {
    /// The column of this number.
    ///
    /// # Errors
    /// `Config` for one that holds no numbers; what reading the first sample says.
    pub(super) fn new(samples: S, column: usize, options: &Options) -> Result<Numbers<S>> {
        let Column { name, kind, holds, .. } = &samples.columns()[column];
        let dtype = match (kind, options.dtype) {
            (Kind::Array(..), _) => None,
            (Kind::Bytes, Some(dtype)) => Some(dtype),
            (Kind::Bytes, None) => {
                return Err(Error::config(format!("the column {name:?} is bytes"))
                    .field("dtype")
                    .hint("@dtype@ says which numbers they are: int64 in older data of LLM Foundry"));
            }
            _ => {
                return Err(Error::config(format!("the column {name:?} is {holds}, not numbers"))
                    .field("column")
                    .hint(
                        "@column@ names an ndarray, or with @dtype@ a column of bytes; a table of one number a row is read with pandas or polars \
                         and given to @from_frame@",
                    ));
            }
        };
        // Of what is left out nothing is known.
        let others: Vec<usize> = (0..samples.columns().len())
            .filter(|other| *other != column && samples.columns()[*other].kind != Kind::LeftOut)
            .collect();
        let (declared, shape) = match kind {
            Kind::Array(dtype, shape) => (*dtype, shape.clone()),
            _ => (dtype, None),
        };
        let mut schema = Schema::numbers(Element::little(declared.unwrap_or(DType::I64)));
        let uniform = shape.as_ref().and_then(|shape| shape.first().copied());
        let first = match (shape, samples.count()) {
            (Some(shape), _) => Some(shape),
            (None, 0) => None,
            (None, _) => {
                let found = first_array(&samples, column, dtype, declared.is_some())?;
                // Whole numbers of all kinds are int64 beside each other, and any with a float among them float32.
                if declared.is_none() {
                    let dtype = if found.dtype.is_integer() { DType::I64 } else { DType::F32 };
                    schema.element = Element::little(dtype);
                    schema.own_dtypes = true;
                }
                Some(found.shape.to_vec())
            }
        };
        schema.channels = match first.as_deref() {
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
                    .hint("records are [T] or [T, C]; @columns@ gives rows with arrays of any shape"));
            }
        };
        let names = others.iter().map(|other| samples.columns()[*other].name.clone());
        schema.beside = (!samples.have_own_names()).then(|| names.collect());
        Ok(Numbers { samples, column, dtype, others, schema, uniform })
    }

    // The array of a record, of the shape that all records have.
    fn found(&self, record: u64) -> Result<Found> {
        let found = self.samples.array(record, self.column, self.dtype)?;
        let fits = match (self.schema.channels, found.shape.as_slice()) {
            (None, [_]) => true,
            (Some(channels), [_, of_record]) => channels as u64 == *of_record,
            _ => false,
        };
        let is_kind =
            !self.schema.own_dtypes || self.schema.element.dtype == DType::F32 || found.dtype.is_integer();
        if fits && is_kind {
            Ok(found)
        } else {
            let channels = self.schema.channels.map_or("[T]".to_string(), |c| format!("[T, {c}]"));
            let of = self.schema.element.dtype;
            Err(Error::corrupt(format!(
                "an array {} {:?}, the first is {of} {channels}",
                found.dtype, found.shape
            ))
            .at(self.samples.files().name(found.file))
            .record(record)
            .byte(self.first_byte(record, &found)?)
            .hint("@columns@ gives rows with arrays of any shape"))
        }
    }

    // Where the array of a record begins in its file, or what it is made of.
    fn first_byte(&self, record: u64, found: &Found) -> Result<u64> {
        if self.samples.is_stored(self.column, found)? {
            Ok(found.start)
        } else {
            Ok(self.samples.locate(record, Some(self.column))?.1.start)
        }
    }

    // The array of a span, and its first byte and number of bytes.
    fn place(&self, span: Span) -> Result<(Found, u64, u64)> {
        // A span that leaves its record is that, also of a record that is damaged.
        if let Some(length) = self.uniform {
            self.samples.check(span.record)?;
            check_span(span, length)?;
        }
        let found = self.found(span.record)?;
        check_span(span, found.shape.first().copied().unwrap_or(0))?;
        // Within the array, whose bytes are there.
        let width = found.dtype.size() as u64 * self.schema.channels.unwrap_or(1) as u64;
        let start = found.start + span.start * width;
        Ok((found, start, span.len * width))
    }
}

// The first array there is. Where all have one dtype, a record that cannot be read is an error of that record alone.
fn first_array<S: Samples>(
    samples: &S,
    column: usize,
    dtype: Option<DType>,
    declared: bool,
) -> Result<Found> {
    const LOOKED_AT: u64 = 1000;
    let first = samples.array(0, column, dtype);
    match (first, declared) {
        (Err(e), true) => {
            let others =
                (1..samples.count().min(LOOKED_AT)).filter_map(|at| samples.array(at, column, dtype).ok());
            others.take(1).next().ok_or(e)
        }
        (first, _) => first,
    }
}

impl<S: Samples> Lengths for Numbers<S> {
    fn len(&self) -> u64 {
        self.samples.count()
    }

    fn length(&self, record: u64) -> Result<u64> {
        match self.uniform {
            Some(length) => self.samples.check(record).map(|()| length),
            None => self.found(record).map(|found| found.shape.first().copied().unwrap_or(0)),
        }
    }

    fn uniform(&self) -> Option<u64> {
        self.uniform
    }
}

impl<S: Samples> Source for Numbers<S> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (found, start, size) = self.place(span)?;
        let size = usize::try_from(size)
            .map_err(|_| Error::unsupported(format!("{} values at once on this machine", span.len)))?;
        let bytes = self.samples.bytes(span.record, self.column, &found, start, size, scratch);
        let bytes = bytes.map_err(|e| e.record(span.record))?;
        let is_float32 = self.schema.own_dtypes && self.schema.element.dtype == DType::F32;
        let decode = if is_float32 && found.dtype != DType::F32 { Decode::Single } else { Decode::Plain };
        let channels = self.schema.channels.unwrap_or(1);
        Ok(Values { bytes, element: Element::little(found.dtype), channels, decode })
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        self.samples.row(record, &self.others)
    }

    fn beside(&self, record: u64, names: &[String]) -> Result<Extras> {
        let columns = self.samples.columns();
        let is_asked = |other: &&usize| names.contains(&columns[**other].name);
        let asked: Vec<usize> = match &self.schema.beside {
            Some(_) => self.others.iter().filter(is_asked).copied().collect(),
            None => self.others.clone(),
        };
        let mut row = self.samples.row(record, &asked)?;
        row.retain(|name, _| names.iter().any(|asked| asked == name));
        Ok(row)
    }

    fn cells(&self, name: &str, records: Range<u64>, take: &mut TakeCells<'_>) -> Result<()> {
        let number = self.others.iter().find(|column| self.samples.columns()[**column].name == name);
        let read = number.and_then(|number| self.samples.cells(*number, records.clone(), take));
        read.unwrap_or_else(|| one_by_one(self, name, records, take))
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        spans.for_each(|(span, _)| self.samples.prefetch(span.record));
    }

    fn touch(&self, span: Span) {
        if let Ok((found, start, size)) = self.place(span)
            && let Ok(Some(object)) = self.samples.object(self.column, found.file)
        {
            object.touch(start, size);
        }
    }

    fn stored(&self, record: u64) -> Result<Option<Stored>> {
        let found = self.found(record)?;
        if found.start == 0 || self.samples.object(self.column, found.file)?.is_none() {
            return Ok(None);
        }
        // Values of many dtypes are read as one.
        let is_as_said = !self.schema.own_dtypes && found.dtype == self.schema.element.dtype;
        let len = found.shape.first().copied().unwrap_or(0);
        Ok(is_as_said.then_some(Stored { object: found.file as u64, start: found.start, len }))
    }

    fn object(&self, number: u64) -> Result<&Arc<dyn Object>> {
        let file = usize::try_from(number).unwrap_or(usize::MAX);
        let object = self.samples.object(self.column, file)?;
        object.ok_or_else(|| Error::out_of_range("object", number, 0))
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (found, start, size) = self.place(span)?;
        if self.samples.is_stored(self.column, &found)? {
            return Ok(vec![Location { file: self.samples.files().name(found.file), start, size }]);
        }
        // Numbers that are decoded have no place of their own: all that they are made of is read.
        let (file, place) = self.samples.locate(span.record, Some(self.column))?;
        Ok(vec![Location { file, start: place.start, size: place.end - place.start }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.samples.files().infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        let dtype = self.dtype.map_or(String::new(), |dtype| format!(":{dtype}"));
        self.samples.fingerprint(&format!("{}{dtype}", self.samples.columns()[self.column].name))
    }

    fn format(&self) -> &'static str {
        self.samples.format()
    }
}
