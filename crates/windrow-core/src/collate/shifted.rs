//! Every value a target, and the one before it its input: 0 where a row or a sequence begins.

use std::ops::Range;
use std::sync::Arc;

use memchr::memchr_iter;

use super::copy::{copy_values, fill_value};
use super::{Collate, Field, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Decode, Piece, Span, Values};
use crate::source::Schema;

/// Lays `length` values per row:
///
/// * `targets` `[length]`: the values, int64 unless another dtype is asked for;
/// * `inputs` `[length]`: the value before each, 0 in the first column and where a sequence starts;
/// * `is_seq_start` `[length]` bool: where a sequence starts;
/// * `segment_ids` `[length]` int32: how many sequences have started in this row, 0 for what goes on from the row before;
/// * `position_ids` `[length]` int32: 0, 1, … from the start of the row and of each sequence.
///
/// A sequence starts where the stored numbers say so by their bit 0 (flat-tokens), else with a record.
#[derive(Clone, Debug)]
pub struct Shifted {
    length: usize,
    dtype: DType,
    fields: Arc<[Field]>,
}

const TARGETS: usize = 0;
const INPUTS: usize = 1;
const STARTS: usize = 2;
const SEGMENTS: usize = 3;
const POSITIONS: usize = 4;

impl Shifted {
    /// For rows of `length` positions.
    ///
    /// # Errors
    /// `Config` for `[T, C]` records, fractions, a length of 0 or more than 2^31, or a dtype that cannot hold ids.
    pub fn new(schema: &Schema, length: u64, dtype: Option<DType>) -> Result<Self> {
        let dtype = super::numbers_dtype(schema, dtype)?;
        let length = super::row_length(length, schema, dtype)?;
        if schema.channels.is_some() || !schema.element.dtype.is_integer() || !dtype.is_integer() {
            return Err(Error::config("rows with shifted inputs are made of token ids [T]"));
        }
        if i32::try_from(length).is_err() {
            return Err(Error::config(format!(
                "a length of {length} does not fit the int32 of position_ids"
            )));
        }
        let fields = [
            Field::new("targets", dtype, [length]),
            Field::new("inputs", dtype, [length]),
            Field::new("is_seq_start", DType::Bool, [length]),
            Field::new("segment_ids", DType::I32, [length]),
            Field::new("position_ids", DType::I32, [length]),
        ]
        .into();
        Ok(Shifted { length, dtype, fields })
    }
}

impl Collate for Shifted {
    fn fields(&self, _samples: &[Sample<'_>]) -> Result<Vec<Field>> {
        Ok(self.fields.to_vec())
    }

    fn fixed_fields(&self) -> Option<Arc<[Field]>> {
        Some(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size();
        let mut at = 0usize;
        for piece in sample.pieces {
            let len = (piece.len() as usize).min(self.length - at);
            let end = at + len;
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, &mut scratch.bytes)?;
                    copy_values(&values, 0, &mut row.bytes(TARGETS)[at * size..end * size], self.dtype)?;
                    mark_starts(&values, *span, &mut row.bytes(STARTS)[at..end]);
                }
                Piece::Value(value) => {
                    if !self.dtype.holds(*value) {
                        return Err(Error::config(format!(
                            "the id {value} between records does not fit {}, the dtype of the batch",
                            self.dtype
                        ))
                        .hint("choose a wider dtype="));
                    }
                    fill_value(&mut row.bytes(TARGETS)[at * size..end * size], self.dtype, *value);
                    row.bytes(STARTS)[at..end].fill(0);
                }
            }
            at = end;
        }
        for field in [TARGETS, STARTS] {
            let width = if field == TARGETS { size } else { 1 };
            row.bytes(field)[at * width..].fill(0);
        }
        scratch.bytes.clear();
        scratch.bytes.extend_from_slice(row.bytes(STARTS));
        let starts = &scratch.bytes[..];
        scratch.more.clear();
        scratch.more.extend_from_slice(row.bytes(TARGETS));
        let inputs = row.bytes(INPUTS);
        inputs[..size].fill(0);
        inputs[size..].copy_from_slice(&scratch.more[..(self.length - 1) * size]);
        for start in memchr_iter(1, starts) {
            inputs[start * size..][..size].fill(0);
        }
        for (segment, run) in runs(starts).enumerate() {
            // A row begins in segment 0, unless a sequence begins with it.
            let segment = segment as i32 + i32::from(starts.first() == Some(&1));
            row.numbers::<i32>(SEGMENTS)[run].fill(segment);
        }
        for run in runs(starts) {
            for (position, place) in row.numbers::<i32>(POSITIONS)[run].iter_mut().enumerate() {
                *place = position as i32;
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        format!("shifted(length={},dtype={})", self.length, self.dtype)
    }
}

// The row cut where sequences start; nothing before a start at its beginning.
fn runs(starts: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let ends = memchr_iter(1, starts).skip_while(|start| *start == 0).chain([starts.len()]);
    ends.scan(0, |from, end| {
        let run = *from..end;
        *from = end;
        Some(run)
    })
}

fn mark_starts(values: &Values<'_>, span: Span, out: &mut [u8]) {
    match values.decode {
        Decode::Shift { .. } => {
            let width = values.element.size();
            // The byte that holds bit 0.
            let low = if values.element.big_endian { width - 1 } else { 0 };
            // Of a width that the compiler knows it makes a vector loop, and flat-tokens have this one.
            if (width, low) == (4, 0) {
                for (start, stored) in out.iter_mut().zip(values.bytes.as_chunks::<4>().0) {
                    *start = stored[0] & 1;
                }
                return;
            }
            for (start, stored) in out.iter_mut().zip(values.bytes.chunks_exact(width)) {
                *start = stored[low] & 1;
            }
        }
        _ => {
            out.fill(0);
            if let (Some(first), 0) = (out.first_mut(), span.start) {
                *first = 1;
            }
        }
    }
}
