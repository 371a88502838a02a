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
/// (int64, one per row), how many are real. dtype: the source's, unless another is asked for.
#[derive(Clone, Debug)]
pub struct Raw {
    length: usize,
    dtype: DType,
    channels: usize,
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
        let shape: Vec<usize> = [length].into_iter().chain(schema.channels).collect();
        let fields = [Field::new("values", dtype, shape), Field::new("lengths", DType::I64, [])].into();
        let channels = schema.channels.unwrap_or(1);
        Ok(Raw { length, dtype, channels, casts: Casts::default(), fields })
    }
}

impl Collate for Raw {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size() * self.channels;
        let mut at = 0;
        for piece in sample.pieces {
            let end = (at + piece.len() as usize).min(self.length);
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
        format!("raw(length={},dtype={})", self.length, self.dtype)
    }
}
