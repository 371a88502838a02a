//! Whole records side by side in one row, with what keeps them apart: for attention within documents.

use std::sync::Arc;

use super::learned::Learned;
use super::{Collate, Field, Labels, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Piece, Span};
use crate::source::Schema;
use crate::values::{copy_span, fill_value};

/// Lays each piece of a sample as a segment of its own. Per row of `length` positions:
///
/// * `input_ids` `[length]`: the records one after the other, then padding;
/// * `labels` `[length]`: the next value of the same record; the last position of a record has none. Or, as
///   [`Segments::labels`] says, the inputs themselves, of which the first of a record is not learned; or none;
/// * `loss_masks` `[length]` int32: 1 where the label is real; where there are no labels, where the input is;
/// * `position_ids` `[length]` int32: 0, 1, … from the start of each record, 0 in padding;
/// * `segment_ids` `[length]` int32: 0, 1, … per record, -1 in padding;
/// * `cu_seqlens` `[most segments + 1]` int32: where segments start, and the end; the end is repeated to fill the row.
#[derive(Clone, Debug)]
pub struct Segments {
    length: usize,
    dtype: DType,
    pad: i64,
    labels: Labels,
    most: usize,
    fields: Arc<[Field]>,
}

const INPUTS: usize = 0;
const LABELS: usize = 1;
// Those after the labels, counted with them.
const MASKS: usize = 2;
const POSITIONS: usize = 3;
const SEGMENTS: usize = 4;
const ENDS: usize = 5;

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
            return Err(Error::config("records of shape [T, C] cannot be put side by side in bins"));
        }
        if i32::try_from(length).is_err() {
            return Err(Error::config(format!("a length of {length} does not fit the int32 of cu_seqlens")));
        }
        super::check_pad(pad, dtype)?;
        let most = usize::try_from(most_segments).unwrap_or(length).min(length);
        Ok(Segments { length, dtype, pad, labels: Labels::Next, most, fields: Arc::new([]) }.with_fields())
    }

    /// Lays these labels.
    ///
    /// # Errors
    /// `Config` for inputs as labels of an unsigned dtype: the first of a record is not learned.
    pub fn labels(mut self, labels: Labels) -> Result<Self> {
        labels.check(self.dtype)?;
        self.labels = labels;
        Ok(self.with_fields())
    }

    fn with_fields(mut self) -> Self {
        let values = |name| Field::new(name, self.dtype, [self.length]);
        let i32s = |name, len| Some(Field::new(name, DType::I32, [len]));
        let all = [
            Some(values("input_ids")),
            (self.labels != Labels::None).then(|| values("labels")),
            i32s("loss_masks", self.length),
            i32s("position_ids", self.length),
            i32s("segment_ids", self.length),
            i32s("cu_seqlens", self.most + 1),
        ];
        self.fields = all.into_iter().flatten().collect();
        self
    }
}

impl Collate for Segments {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size();
        let ahead = self.labels.ahead();
        let is_next = self.labels == Labels::Next;
        let [masks, positions, segments, ends] =
            [MASKS, POSITIONS, SEGMENTS, ENDS].map(|field| field - usize::from(self.labels == Labels::None));
        let mut at = 0usize;
        let mut segment = 0usize;
        row.numbers::<i32>(ends)[0] = 0;
        for piece in sample.pieces {
            let Piece::Read(span) = piece else { continue };
            if span.len == 0 {
                continue;
            }
            // A record that was cut to the row's length brings one value more: the last position's label.
            let inputs = (span.len as usize).min(self.length - at);
            let learned = (span.len as usize - ahead).min(inputs);
            let values = sample.source.read(*span, &mut scratch.bytes)?;
            let end = at + inputs;
            copy_span(span, &values, 0, &mut row.bytes(INPUTS)[at * size..end * size], self.dtype)?;
            if is_next {
                let labels = &mut row.bytes(LABELS)[at * size..end * size];
                let (labels, last) = labels.split_at_mut(learned * size);
                copy_span(span, &values, 1, labels, self.dtype)?;
                fill_value(last, self.dtype, self.pad);
            }
            row.numbers::<i32>(masks)[at..end].fill(0);
            self.mask(sample, *span, &mut row.numbers::<i32>(masks)[at..at + learned], scratch)?;
            if self.labels == Labels::Same && span.start == 0 && inputs > 0 {
                // No value of this record tells it.
                row.numbers::<i32>(masks)[at] = 0;
            }
            row.numbers::<i32>(positions)[at..end].iter_mut().zip(0..).for_each(|(p, i)| *p = i);
            row.numbers::<i32>(segments)[at..end].fill(segment as i32);
            segment += 1;
            row.numbers::<i32>(ends)[segment] = end as i32;
            at = end;
        }
        fill_value(&mut row.bytes(INPUTS)[at * size..], self.dtype, self.pad);
        if is_next {
            fill_value(&mut row.bytes(LABELS)[at * size..], self.dtype, self.pad);
        }
        row.numbers::<i32>(masks)[at..].fill(0);
        row.numbers::<i32>(positions)[at..].fill(0);
        row.numbers::<i32>(segments)[at..].fill(-1);
        row.numbers::<i32>(ends)[segment + 1..].fill(at as i32);
        if self.labels == Labels::Same {
            Labels::copy_inputs(row, [INPUTS, LABELS], Some(masks));
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let labels = self.labels.described();
        format!("segments(length={},dtype={},pad={}{labels})", self.length, self.dtype, self.pad)
    }
}

impl Segments {
    fn mask(&self, sample: &Sample<'_>, span: Span, out: &mut [i32], scratch: &mut Scratch) -> Result<()> {
        match Learned::of(&sample.source.schema().tracks) {
            None => out.fill(1),
            Some(mask) => {
                mask.fill(sample.source, span, self.labels.ahead(), out, &mut scratch.bytes)?;
            }
        }
        Ok(())
    }
}
