//! Pieces of records side by side in one row, each with its own labels: packed series.

use std::sync::Arc;

use super::copy::{copy_span, copy_values, fill_value};
use super::missing::missing_to_zero;
use super::{Collate, Field, LOSS_MASK_TRACK, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::Piece;
use crate::source::Schema;

/// Lays each piece of n + 1 values as n positions. Per row of T positions:
///
/// * `input_ids` `[T]` or `[T, C]`: all values of the piece but the last, then those of the next piece, then zeros;
/// * `labels` `[T]` or `[T, C]`: all values but the first;
/// * `loss_masks` `[T]` int32: 1 where there is a label;
/// * `segment_ids` `[T]` int32: 0, 1, … per piece, -1 in padding;
/// * `pack_bucket` int32: the row's own length.
///
/// Without buckets T is the length; with buckets it is that of the longest row in the batch.
#[derive(Clone, Debug)]
pub struct Pairs {
    length: usize,
    buckets: Vec<usize>,
    dtype: DType,
    channels: Option<usize>,
    mask_nan: bool,
    fixed: Option<Arc<[Field]>>,
}

const INPUTS: usize = 0;
const LABELS: usize = 1;
const MASKS: usize = 2;
const SEGMENTS: usize = 3;
const BUCKET: usize = 4;

impl Pairs {
    /// For rows of `length` positions, or of one of the `buckets` where there are some.
    ///
    /// # Errors
    /// `Config` when a length is 0 or more than 2^31, or the dtype cannot hold the values.
    pub fn new(schema: &Schema, length: u64, buckets: &[u64], dtype: Option<DType>) -> Result<Self> {
        let dtype = super::numbers_dtype(schema, dtype)?;
        let checked = |length: u64| match i32::try_from(length) {
            Ok(_) => super::row_length(length, schema, dtype),
            Err(_) => {
                Err(Error::config(format!("a length of {length} does not fit the int32 of pack_bucket")))
            }
        };
        let mut sorted = buckets.iter().map(|&b| checked(b)).collect::<Result<Vec<_>>>()?;
        sorted.sort_unstable();
        let mut pairs = Pairs {
            length: checked(length)?,
            buckets: sorted,
            dtype,
            channels: schema.channels,
            mask_nan: false,
            fixed: None,
        };
        if pairs.buckets.is_empty() {
            pairs.fixed = Some(pairs.fields_of(pairs.length));
        }
        Ok(pairs)
    }

    /// Takes NaN and infinity as missing: 0 in `input_ids` and `labels`, and 0 in `loss_masks` where the label is one.
    #[must_use]
    pub fn mask_nan(mut self) -> Self {
        self.mask_nan = !self.dtype.is_integer();
        self
    }

    fn fields_of(&self, positions: usize) -> Arc<[Field]> {
        let shape: Vec<usize> = [positions].into_iter().chain(self.channels).collect();
        Arc::new([
            Field::new("input_ids", self.dtype, shape.clone()),
            Field::new("labels", self.dtype, shape),
            Field::new("loss_masks", DType::I32, [positions]),
            Field::new("segment_ids", DType::I32, [positions]),
            Field::new("pack_bucket", DType::I32, []),
        ])
    }

    // A row's own length: the smallest bucket that holds its pairs.
    fn target(&self, sample: &Sample<'_>) -> usize {
        let pairs: u64 = sample.pieces.iter().map(|piece| piece.len().saturating_sub(1)).sum();
        let fitting = self.buckets.iter().find(|bucket| **bucket as u64 >= pairs);
        fitting.or(self.buckets.last()).copied().unwrap_or(self.length)
    }
}

impl Collate for Pairs {
    fn fields(&self, samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        if let Some(fixed) = &self.fixed {
            return Ok(fixed.clone());
        }
        let longest = self.buckets.last().copied().unwrap_or(self.length);
        Ok(self.fields_of(samples.map(|sample| self.target(&sample)).max().unwrap_or(longest)))
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size() * self.channels.unwrap_or(1);
        let positions = row.bytes(MASKS).len() / size_of::<i32>();
        let track = sample.source.schema().tracks.iter().position(|t| t.name == LOSS_MASK_TRACK);
        let (mut at, mut segment) = (0, 0);
        for piece in sample.pieces {
            let Piece::Read(span) = piece else { continue };
            let end = (at + (span.len as usize).saturating_sub(1)).min(positions);
            if end == at {
                continue;
            }
            let values = sample.source.read(*span, &mut scratch.bytes)?;
            for (field, skip) in [(INPUTS, 0), (LABELS, 1)] {
                copy_span(span, &values, skip, &mut row.bytes(field)[at * size..end * size], self.dtype)?;
            }
            let masks = &mut row.numbers::<i32>(MASKS)[at..end];
            match track {
                None => masks.fill(1),
                Some(track) => {
                    let excluded = sample.source.read_track(track, *span, &mut scratch.bytes)?;
                    copy_values(&excluded, 1, bytemuck::cast_slice_mut(masks), DType::I32)?;
                    masks.iter_mut().for_each(|m| *m = i32::from(*m == 0));
                }
            }
            row.numbers::<i32>(SEGMENTS)[at..end].fill(segment);
            segment += 1;
            at = end;
        }
        for field in [INPUTS, LABELS] {
            fill_value(&mut row.bytes(field)[at * size..], self.dtype, 0);
        }
        row.numbers::<i32>(MASKS)[at..].fill(0);
        row.numbers::<i32>(SEGMENTS)[at..].fill(-1);
        row.numbers::<i32>(BUCKET)[0] = self.target(sample) as i32;
        if self.mask_nan {
            let mut missing = Vec::new();
            missing_to_zero(row.bytes(INPUTS), self.dtype, self.channels.unwrap_or(1), |_| ());
            missing_to_zero(row.bytes(LABELS), self.dtype, self.channels.unwrap_or(1), |at| missing.push(at));
            let masks = row.numbers::<i32>(MASKS);
            missing.into_iter().for_each(|at| masks[at] = 0);
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let nan = if self.mask_nan { ",nan=mask+inf" } else { "" };
        let buckets: Vec<_> = self.buckets.iter().map(usize::to_string).collect();
        let buckets =
            if buckets.is_empty() { String::new() } else { format!(",buckets={}", buckets.join("/")) };
        format!("pairs(length={},dtype={}{buckets}{nan})", self.length, self.dtype)
    }
}
