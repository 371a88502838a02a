//! Inputs and the values one later: `input_ids`, `labels`, and `loss_masks` where rows can be short.

use std::sync::Arc;

use super::copy::{copy_span, copy_values, fill_value, lay_value};
use super::missing::missing_to_zero;
use super::{Collate, Field, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::Result;
use crate::record::Piece;
use crate::source::Schema;

/// The name of a track that says which values are not learned: 1 = excluded from the loss.
pub const LOSS_MASK_TRACK: &str = "loss_mask";

/// Lays `length + 1` values as `input_ids` (all but the last) and `labels` (all but the first).
///
/// * `input_ids`, `labels`: `[length]` or `[length, C]`, int64 for whole numbers and float32 for floats unless another
///   dtype is asked for; missing values are the padding value.
/// * `loss_masks`: `[length]` int32, 1 where the label is a real value; present when rows can be short, or when the
///   source has a track `loss_mask` (whose 1 means "not learned"). [`NextToken::mask_nan`] and
///   [`NextToken::learn_from`] take more positions out.
#[derive(Clone, Debug)]
pub struct NextToken {
    length: usize,
    dtype: DType,
    channels: usize,
    pad: i64,
    mask: Mask,
    mask_nan: bool,
    learn_from: usize,
    fields: Arc<[Field]>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    None,
    Real,
    Track(usize),
}

impl NextToken {
    /// For rows of `length` positions from records of this schema.
    ///
    /// # Errors
    /// `Config` when the length is 0, when the dtype cannot hold the values, or the padding value not the dtype.
    pub fn new(
        schema: &Schema,
        length: u64,
        dtype: Option<DType>,
        short_rows: bool,
        pad: i64,
    ) -> Result<Self> {
        let dtype = super::numbers_dtype(schema, dtype)?;
        let length = super::row_length(length, schema, dtype)?;
        super::check_pad(pad, dtype)?;
        let mask = match schema.tracks.iter().position(|t| t.name == LOSS_MASK_TRACK) {
            Some(track) => Mask::Track(track),
            None if short_rows => Mask::Real,
            None => Mask::None,
        };
        let shape: Vec<usize> = [length].into_iter().chain(schema.channels).collect();
        let mut fields =
            vec![Field::new("input_ids", dtype, shape.clone()), Field::new("labels", dtype, shape)];
        if mask != Mask::None {
            fields.push(Field::new("loss_masks", DType::I32, [length]));
        }
        Ok(NextToken {
            length,
            dtype,
            channels: schema.channels.unwrap_or(1),
            pad,
            mask,
            mask_nan: false,
            learn_from: 0,
            fields: fields.into(),
        })
    }

    /// Takes NaN and infinity as missing: 0 in `input_ids` and `labels`, and 0 in `loss_masks` where the label is one (any channel of
    /// it). Changes nothing for whole numbers.
    #[must_use]
    pub fn mask_nan(mut self) -> Self {
        self.mask_nan = !self.dtype.is_integer();
        if self.mask_nan { self.with_masks() } else { self }
    }

    /// Sets `loss_masks` to 0 before this position: only what comes after a context is learned.
    #[must_use]
    pub fn learn_from(mut self, position: u64) -> Self {
        self.learn_from = usize::try_from(position).unwrap_or(self.length).min(self.length);
        if self.learn_from > 0 { self.with_masks() } else { self }
    }

    fn with_masks(mut self) -> Self {
        if self.mask == Mask::None {
            self.mask = Mask::Real;
            let masks = Field::new("loss_masks", DType::I32, [self.length]);
            self.fields = self.fields.iter().cloned().chain([masks]).collect();
        }
        self
    }
}

const INPUTS: usize = 0;
const LABELS: usize = 1;
const MASKS: usize = 2;

impl Collate for NextToken {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size() * self.channels;
        // `at` counts values from the sample's first; value `at` is input `at` and label `at - 1`.
        let mut at = 0;
        for piece in sample.pieces {
            if at > self.length {
                break;
            }
            if piece.is_empty() {
                continue;
            }
            let inputs = at.min(self.length)..(at + piece.len() as usize).min(self.length);
            let labels = at.saturating_sub(1)..(at + piece.len() as usize - 1).min(self.length);
            // The first value of the sample is nobody's label.
            let skip = usize::from(at == 0);
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, &mut scratch.bytes)?;
                    if !inputs.is_empty() {
                        let out = &mut row.bytes(INPUTS)[inputs.start * size..inputs.end * size];
                        copy_span(span, &values, 0, out, self.dtype)?;
                    }
                    if !labels.is_empty() {
                        let out = &mut row.bytes(LABELS)[labels.start * size..labels.end * size];
                        copy_span(span, &values, skip, out, self.dtype)?;
                    }
                    if let Mask::Track(track) = self.mask
                        && !labels.is_empty()
                    {
                        let excluded = sample.source.read_track(track, *span, &mut scratch.bytes)?;
                        let out = &mut row.numbers::<i32>(MASKS)[labels.clone()];
                        copy_values(&excluded, skip, bytemuck::cast_slice_mut(out), DType::I32)?;
                        out.iter_mut().for_each(|m| *m = i32::from(*m == 0));
                    }
                }
                Piece::Value(value) => {
                    for (field, at) in [(INPUTS, &inputs), (LABELS, &labels)] {
                        let out = &mut row.bytes(field)[at.start * size..at.end * size];
                        lay_value(out, self.dtype, *value)?;
                    }
                    if let Mask::Track(_) = self.mask {
                        row.numbers::<i32>(MASKS)[labels.clone()].fill(1);
                    }
                }
            }
            at += piece.len() as usize;
        }
        let inputs = at.min(self.length);
        let labels = at.saturating_sub(1).min(self.length);
        fill_value(&mut row.bytes(INPUTS)[inputs * size..], self.dtype, self.pad);
        fill_value(&mut row.bytes(LABELS)[labels * size..], self.dtype, self.pad);
        if self.mask != Mask::None {
            let masks = row.numbers::<i32>(MASKS);
            masks[labels..].fill(0);
            if self.mask == Mask::Real {
                masks[..labels].fill(1);
            }
            masks[..self.learn_from].fill(0);
        }
        if self.mask_nan {
            missing_to_zero(row.bytes(INPUTS), self.dtype, self.channels, |_| ());
            let mut missing = Vec::new();
            missing_to_zero(row.bytes(LABELS), self.dtype, self.channels, |at| missing.push(at));
            let masks = row.numbers::<i32>(MASKS);
            missing.into_iter().for_each(|at| masks[at] = 0);
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let mask = match self.mask {
            Mask::None => "none",
            Mask::Real => "real",
            Mask::Track(_) => "track",
        };
        let nan = if self.mask_nan { ",nan=mask+inf" } else { "" };
        let from = if self.learn_from > 0 { format!(",from={}", self.learn_from) } else { String::new() };
        let (length, dtype, pad) = (self.length, self.dtype, self.pad);
        format!("next_token(length={length},dtype={dtype},pad={pad},mask={mask}{nan}{from})")
    }
}
