//! Pieces of records side by side in one row, each with its own labels: packed series.

use std::sync::Arc;

use super::learned::Learned;
use super::missing::missing_to_zero;
use super::{Collate, Field, Labels, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::Piece;
use crate::source::Schema;
use crate::values::{copy_span, fill_value};

/// Lays each piece of n + 1 values as n positions; or, as [`Pairs::labels`] says, each of n values as n positions that are
/// their own labels or have none. Per row of T positions:
///
/// * `input_ids` `[T]` or `[T, C]`: all values of the piece but the last, then those of the next piece, then zeros;
/// * `labels` `[T]` or `[T, C]`: all values but the first; or the inputs, of which the first of a record is not learned;
/// * `loss_masks` `[T]` int32: 1 where there is a label; where there are no labels, where the input is a value;
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
    labels: Labels,
    mask_nan: bool,
    fixed: Option<Arc<[Field]>>,
}

const INPUTS: usize = 0;
const LABELS: usize = 1;
// Those after the labels, counted with them.
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
            labels: Labels::Next,
            mask_nan: false,
            fixed: None,
        };
        pairs.fix();
        Ok(pairs)
    }

    /// Lays these labels.
    ///
    /// # Errors
    /// `Config` for inputs as labels of an unsigned dtype: the first of a record is not learned.
    pub fn labels(mut self, labels: Labels) -> Result<Self> {
        labels.check(self.dtype)?;
        self.labels = labels;
        self.fix();
        Ok(self)
    }

    fn fix(&mut self) {
        self.fixed = self.buckets.is_empty().then(|| self.fields_of(self.length));
    }

    /// Takes NaN and infinity as missing: 0 in `input_ids` and `labels`, and 0 in `loss_masks` where the label is one.
    #[must_use]
    pub fn mask_nan(mut self) -> Self {
        self.mask_nan = !self.dtype.is_integer();
        self
    }

    fn fields_of(&self, positions: usize) -> Arc<[Field]> {
        let shape: Vec<usize> = [positions].into_iter().chain(self.channels).collect();
        let all = [
            Some(Field::new("input_ids", self.dtype, shape.clone())),
            (self.labels != Labels::None).then(|| Field::new("labels", self.dtype, shape)),
            Some(Field::new("loss_masks", DType::I32, [positions])),
            Some(Field::new("segment_ids", DType::I32, [positions])),
            Some(Field::new("pack_bucket", DType::I32, [])),
        ];
        all.into_iter().flatten().collect()
    }

    // A row's own length: the smallest bucket that holds its pairs.
    fn target(&self, sample: &Sample<'_>) -> usize {
        let ahead = self.labels.ahead() as u64;
        let pairs: u64 = sample.pieces.iter().map(|piece| piece.len().saturating_sub(ahead)).sum();
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
        let channels = self.channels.unwrap_or(1);
        let size = self.dtype.size() * channels;
        let ahead = self.labels.ahead();
        let [masks, segments, bucket] =
            [MASKS, SEGMENTS, BUCKET].map(|field| field - usize::from(self.labels == Labels::None));
        let copied =
            if self.labels == Labels::Next { &[(INPUTS, 0), (LABELS, 1)][..] } else { &[(INPUTS, 0)] };
        let positions = row.bytes(masks).len() / size_of::<i32>();
        let mask = Learned::of(&sample.source.schema().tracks);
        let (mut at, mut segment) = (0, 0);
        for piece in sample.pieces {
            let Piece::Read(span) = piece else { continue };
            let end = (at + (span.len as usize).saturating_sub(ahead)).min(positions);
            if end == at {
                continue;
            }
            let values = sample.source.read(*span, &mut scratch.bytes)?;
            for &(field, skip) in copied {
                copy_span(span, &values, skip, &mut row.bytes(field)[at * size..end * size], self.dtype)?;
            }
            let learned = &mut row.numbers::<i32>(masks)[at..end];
            match mask {
                None => learned.fill(1),
                Some(mask) => mask.fill(sample.source, *span, ahead, learned, &mut scratch.bytes)?,
            }
            if self.labels == Labels::Same && span.start == 0 {
                // No value of this record tells it.
                learned[0] = 0;
            }
            row.numbers::<i32>(segments)[at..end].fill(segment);
            segment += 1;
            at = end;
        }
        for &(field, _) in copied {
            fill_value(&mut row.bytes(field)[at * size..], self.dtype, 0);
        }
        row.numbers::<i32>(masks)[at..].fill(0);
        row.numbers::<i32>(segments)[at..].fill(-1);
        row.numbers::<i32>(bucket)[0] = self.target(sample) as i32;
        if self.mask_nan {
            let mut missing = Vec::new();
            for &(field, _) in copied {
                // Where the label is missing: labels come last.
                missing.clear();
                missing_to_zero(row.bytes(field), self.dtype, channels, |at| missing.push(at));
            }
            let masks = row.numbers::<i32>(masks);
            missing.into_iter().for_each(|at| masks[at] = 0);
        }
        if self.labels == Labels::Same {
            Labels::copy_inputs(row, [INPUTS, LABELS], Some(masks));
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let nan = if self.mask_nan { ",nan=mask+inf" } else { "" };
        let buckets: Vec<_> = self.buckets.iter().map(usize::to_string).collect();
        let buckets =
            if buckets.is_empty() { String::new() } else { format!(",buckets={}", buckets.join("/")) };
        let labels = self.labels.described();
        format!("pairs(length={},dtype={}{buckets}{nan}{labels})", self.length, self.dtype)
    }
}
