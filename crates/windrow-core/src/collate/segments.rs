//! Whole records side by side in one row, with what keeps them apart: for attention within documents.

use std::sync::Arc;

use super::copy::{copy_span, copy_values, fill_value};
use super::{Collate, Field, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Piece, Span};
use crate::source::Schema;

/// Lays each piece of a sample as a segment of its own. Per row of `length` positions:
///
/// * `input_ids` `[length]`: the records one after the other, then padding;
/// * `labels` `[length]`: the next value of the same record; the last position of a record has none;
/// * `loss_masks` `[length]` int32: 1 where the label is real;
/// * `position_ids` `[length]` int32: 0, 1, … from the start of each record, 0 in padding;
/// * `segment_ids` `[length]` int32: 0, 1, … per record, -1 in padding;
/// * `cu_seqlens` `[most segments + 1]` int32: where segments start, and the end; the end is repeated to fill the row.
#[derive(Clone, Debug)]
pub struct Segments {
    length: usize,
    dtype: DType,
    pad: i64,
    fields: Arc<[Field]>,
}

impl Segments {
    /// For rows of `length` positions that hold at most `most_segments` records.
    ///
    /// # Errors
    /// `Config` for `[T, C]` records, a length of 0 or more than 2^31, or a padding value that does not fit.
    pub fn new(
        schema: &Schema,
        length: u64,
        most_segments: u64,
        dtype: Option<DType>,
        pad: i64,
    ) -> Result<Self> {
        let dtype = super::numbers_dtype(schema, dtype)?;
        let length = super::row_length(length, schema, dtype)?;
        if schema.channels.is_some() {
            return Err(Error::config("records of shape [T, C] cannot be laid side by side in bins"));
        }
        if i32::try_from(length).is_err() {
            return Err(Error::config(format!("a length of {length} does not fit the int32 of cu_seqlens")));
        }
        super::check_pad(pad, dtype)?;
        let most = usize::try_from(most_segments).unwrap_or(length).min(length);
        let i32s = |name, len| Field::new(name, DType::I32, [len]);
        let fields = [
            Field::new("input_ids", dtype, [length]),
            Field::new("labels", dtype, [length]),
            i32s("loss_masks", length),
            i32s("position_ids", length),
            i32s("segment_ids", length),
            i32s("cu_seqlens", most + 1),
        ]
        .into();
        Ok(Segments { length, dtype, pad, fields })
    }
}

impl Collate for Segments {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size();
        let mut at = 0usize;
        let mut segment = 0usize;
        row.numbers::<i32>(5)[0] = 0;
        for piece in sample.pieces {
            let Piece::Read(span) = piece else { continue };
            if span.len == 0 {
                continue;
            }
            // A record that was cut to the row's length brings one value more: the last position's label.
            let inputs = (span.len as usize).min(self.length - at);
            let labels = (span.len as usize - 1).min(inputs);
            let values = sample.source.read(*span, &mut scratch.bytes)?;
            let end = at + inputs;
            copy_span(span, &values, 0, &mut row.bytes(0)[at * size..end * size], self.dtype)?;
            copy_span(span, &values, 1, &mut row.bytes(1)[at * size..(at + labels) * size], self.dtype)?;
            fill_value(&mut row.bytes(1)[(at + labels) * size..end * size], self.dtype, self.pad);
            row.numbers::<i32>(2)[at..end].fill(0);
            self.mask(sample, *span, &mut row.numbers::<i32>(2)[at..at + labels], scratch)?;
            row.numbers::<i32>(3)[at..end].iter_mut().zip(0..).for_each(|(p, i)| *p = i);
            row.numbers::<i32>(4)[at..end].fill(segment as i32);
            segment += 1;
            row.numbers::<i32>(5)[segment] = end as i32;
            at = end;
        }
        for field in [0, 1] {
            fill_value(&mut row.bytes(field)[at * size..], self.dtype, self.pad);
        }
        row.numbers::<i32>(2)[at..].fill(0);
        row.numbers::<i32>(3)[at..].fill(0);
        row.numbers::<i32>(4)[at..].fill(-1);
        row.numbers::<i32>(5)[segment + 1..].fill(at as i32);
        Ok(())
    }

    fn describe(&self) -> String {
        format!("segments(length={},dtype={},pad={})", self.length, self.dtype, self.pad)
    }
}

impl Segments {
    fn mask(&self, sample: &Sample<'_>, span: Span, out: &mut [i32], scratch: &mut Scratch) -> Result<()> {
        let tracks = &sample.source.schema().tracks;
        match tracks.iter().position(|t| t.name == super::LOSS_MASK_TRACK) {
            None => out.fill(1),
            Some(track) => {
                let excluded = sample.source.read_track(track, span, &mut scratch.bytes)?;
                copy_values(&excluded, 1, bytemuck::cast_slice_mut(out), DType::I32)?;
                out.iter_mut().for_each(|m| *m = i32::from(*m == 0));
            }
        }
        Ok(())
    }
}
