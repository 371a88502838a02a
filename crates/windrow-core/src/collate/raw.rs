//! Values as they are, with how many of them are real: `values`, `lengths`.

use std::sync::Arc;

use super::casts::Casts;
use super::{Collate, Field, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::Result;
use crate::record::Piece;
use crate::source::Schema;
use crate::values::write_value;

/// Assembles up to `length` values: `values` `[length]` or `[length, C]`, padded with zeros at the end, and `lengths`
/// (int64, one per row), how many are real. dtype: the source's, unless another is asked for. [`Collate::to_longest`] has `values` as
/// long as the longest row of a batch.
#[derive(Clone, Debug)]
pub struct Raw {
    length: usize,
    dtype: DType,
    channels: Option<usize>,
    to_longest: bool,
    casts: Casts,
    fields: Arc<[Field]>,
}

impl Raw {
    /// For rows of `length` values from records of this schema.
    ///
    /// # Errors
    /// `Config` when the length is 0 or the dtype cannot hold the values.
    pub fn new(schema: &Schema, length: u64, dtype: Option<DType>) -> Result<Self> {
        let dtype = super::numbers_dtype(schema, Some(dtype.unwrap_or(schema.element.dtype)))?;
        let length = super::row_length(length, schema, dtype)?;
        let channels = schema.channels;
        let fields = fields_of(length, dtype, channels);
        Ok(Raw { length, dtype, channels, to_longest: false, casts: Casts::default(), fields })
    }
}

fn fields_of(length: usize, dtype: DType, channels: Option<usize>) -> Arc<[Field]> {
    let shape: Vec<usize> = [length].into_iter().chain(channels).collect();
    [Field::new("values", dtype, shape), Field::new("lengths", DType::I64, [])].into()
}

impl Collate for Raw {
    fn fields(&self, samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        if !self.to_longest {
            return Ok(self.fields.clone());
        }
        let values = samples.map(|sample| sample.pieces.iter().map(Piece::len).sum()).max();
        let longest = values.and_then(|values: u64| usize::try_from(values).ok()).unwrap_or(self.length);
        Ok(fields_of(longest.clamp(1, self.length), self.dtype, self.channels))
    }

    fn row_length(&self, values: u64) -> Option<u64> {
        self.to_longest.then(|| values.clamp(1, self.length as u64))
    }

    fn to_longest(&self) -> Option<Arc<dyn Collate>> {
        (!self.to_longest).then(|| Arc::new(Raw { to_longest: true, ..self.clone() }) as Arc<dyn Collate>)
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size() * self.channels.unwrap_or(1);
        let length = row.bytes(0).len() / size;
        let mut at = 0;
        for piece in sample.pieces {
            let end = (at + piece.len() as usize).min(length);
            let out = &mut row.bytes(0)[at * size..end * size];
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, &mut scratch.bytes)?;
                    self.casts.copy(sample, span, &values, 0, out, self.dtype)?;
                }
                Piece::Value(value) => write_value(out, self.dtype, *value)?,
                Piece::Fill(_) => return Err(super::no_fill()),
            }
            at = end;
        }
        row.bytes(0)[at * size..].fill(0);
        row.numbers::<i64>(1)[0] = at as i64;
        Ok(())
    }

    fn describe(&self) -> String {
        let longest = if self.to_longest { ",pad=longest" } else { "" };
        format!("raw(length={},dtype={}{longest})", self.length, self.dtype)
    }
}
