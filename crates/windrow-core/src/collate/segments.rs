//! Whole records side by side in one row, with what keeps them apart: for attention within documents.

use std::sync::Arc;

use super::borders::Part;
use super::casts::Casts;
use super::chosen::{chosen, described};
use super::chunks::{RowShape, not_filled};
use super::learned::Learned;
use super::{Chunks, Collate, Context, Field, Labels, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::Piece;
use crate::source::Schema;
use crate::values::fill_value;

/// Assembles each piece of a sample as a segment of its own. Per row of `length` positions:
///
/// * `input_ids` `[length]`: the records one after the other, then padding;
/// * `labels` `[length]`: the next value of the same record; the last position of a record has none. Or, as
///   [`Segments::labels`] says, the inputs themselves, of which the first of a record is not learned; or none;
/// * `loss_masks` `[length]` int32: 1 where the label is real; where there are no labels, where the input is;
/// * `position_ids` `[length]` int32: 0, 1, … from the start of each record, 0 in padding;
/// * `segment_ids` `[length]` int32: 0, 1, … per record, -1 in padding;
/// * `cu_seqlens` `[most segments + 1]` int32: where segments start, and the end; the end is repeated to fill the row.
///
/// Where [`Segments::only`] asks for them, also `max_seqlen` int32, the positions of the longest segment, and
/// `attention_mask` `[length]` int64, 1 where there is a value.
#[derive(Clone, Debug)]
pub struct Segments {
    length: usize,
    dtype: DType,
    pad: i64,
    labels: Labels,
    most: usize,
    casts: Casts,
    parts: Vec<Part>,
    is_chosen: bool,
    fields: Arc<[Field]>,
}

/// Those of all fields that are there where none are chosen.
const BY_DEFAULT: usize = 6;

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
        let parts = Part::ALL[..BY_DEFAULT].to_vec();
        let segments = Segments {
            length,
            dtype,
            pad,
            labels: Labels::Next,
            most,
            casts: Casts::default(),
            parts,
            is_chosen: false,
            fields: Arc::new([]),
        };
        Ok(segments.with_fields())
    }

    /// Sets these labels.
    ///
    /// # Errors
    /// `Config` for inputs as labels of an unsigned dtype: the first of a record is not learned.
    pub fn labels(mut self, labels: Labels) -> Result<Self> {
        labels.check(self.dtype)?;
        self.labels = labels;
        if labels == Labels::None {
            self.parts.retain(|part| *part != Part::Labels);
        }
        Ok(self.with_fields())
    }

    /// Takes only these fields, in the order given; those of the default where none is given. Called after the labels.
    ///
    /// # Errors
    /// `Config` for a name that is not one of its fields or is there twice.
    pub fn only(mut self, names: &[impl AsRef<str>]) -> Result<Self> {
        if names.is_empty() {
            return Ok(self);
        }
        let there = Part::ALL.into_iter().filter(|part| *part != Part::Labels || self.labels != Labels::None);
        self.parts = chosen(&there.collect::<Vec<_>>(), Part::name, names, "bins")?;
        self.is_chosen = true;
        Ok(self.with_fields())
    }

    /// Assembles records that are filled up to a multiple. The label of positions that fill one is [`Labels::IGNORED`], of
    /// fractions the padding value.
    ///
    /// # Errors
    /// `Config` for unsigned labels, which cannot hold it.
    pub fn filled(&self, schema: &Schema, multiple: u64) -> Result<Chunks> {
        let is_whole = self.dtype.is_integer();
        if self.labels == Labels::Next && is_whole && !self.dtype.holds(Labels::IGNORED) {
            return Err(Error::config(format!(
                "@multiple={multiple}@ as {}, which cannot hold the label {} of positions that fill a record",
                self.dtype,
                Labels::IGNORED
            ))
            .field("multiple")
            .hint("leave dtype out, or choose int32 or int64"));
        }
        let shape = RowShape {
            length: self.length,
            most: self.most,
            multiple: Some(multiple),
            dtype: self.dtype,
            channels: None,
            pad: self.pad,
            labels: self.labels,
            none: self.pad,
            filled: if is_whole { Labels::IGNORED } else { self.pad },
            ignored: Labels::IGNORED,
            ignores: false,
            is_masked: true,
            track: Learned::of(&schema.tracks),
        };
        Ok(Chunks::new(shape, self.parts.clone(), self.casts.clone(), self.describe()))
    }

    fn with_fields(mut self) -> Self {
        let field = |part: &Part| match part {
            Part::Inputs | Part::Labels => Field::new(part.name(), self.dtype, [self.length]),
            Part::Masks => Field::new(part.name(), DType::I32, [self.length]),
            Part::Border(border) => border.field(self.length, self.most),
        };
        self.fields = self.parts.iter().map(field).collect();
        self
    }

    fn field_of(&self, part: Part) -> Option<usize> {
        self.parts.iter().position(|p| *p == part)
    }
}

impl Collate for Segments {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let size = self.dtype.size();
        let ahead = self.labels.ahead();
        let is_same = self.labels == Labels::Same;
        let [inputs, labels, learned] =
            [Part::Inputs, Part::Labels, Part::Masks].map(|part| self.field_of(part));
        let Scratch { bytes, places: ends, masks, .. } = scratch;
        // Labels that are inputs are ignored where they are not learned.
        let is_masked = learned.is_some() || (labels.is_some() && is_same);
        masks.clear();
        masks.resize(if is_masked { self.length } else { 0 }, 0);
        ends.clear();
        let track = Learned::of(&sample.source.schema().tracks);
        let mut at = 0usize;
        for piece in sample.pieces {
            let Piece::Read(span) = piece else { continue };
            if span.len == 0 {
                continue;
            }
            // A record that was cut to the row's length brings one value more: the last position's label.
            let read = (span.len as usize).min(self.length - at);
            let labelled = (span.len as usize - ahead).min(read);
            let end = at + read;
            if inputs.or(labels).is_some() {
                let values = sample.source.read(*span, bytes)?;
                if let Some(inputs) = inputs {
                    let out = &mut row.bytes(inputs)[at * size..end * size];
                    self.casts.copy(sample, span, &values, 0, out, self.dtype)?;
                }
                if let Some(labels) = labels {
                    let labelled = if is_same { read } else { labelled };
                    let labels = &mut row.bytes(labels)[at * size..end * size];
                    let (labels, last) = labels.split_at_mut(labelled * size);
                    self.casts.copy(sample, span, &values, ahead, labels, self.dtype)?;
                    fill_value(last, self.dtype, self.pad);
                }
            }
            if is_masked {
                let learned = &mut masks[at..at + labelled];
                match track {
                    None => learned.fill(1),
                    Some(track) => track.fill(sample.source, *span, ahead, learned, bytes)?,
                }
                if let (true, Some(first)) = (is_same, learned.first_mut()) {
                    // No value before it in this segment tells it.
                    *first = 0;
                }
            }
            ends.push(end);
            at = end;
        }
        if let Some(inputs) = inputs {
            fill_value(&mut row.bytes(inputs)[at * size..], self.dtype, self.pad);
        }
        if let Some(labels) = labels {
            let labels = row.bytes(labels);
            fill_value(&mut labels[at * size..], self.dtype, self.pad);
            if is_same && self.dtype.is_integer() {
                Labels::ignore(labels, self.dtype, masks, Labels::IGNORED);
            }
        }
        if let Some(learned) = learned {
            row.numbers::<i32>(learned).copy_from_slice(masks);
        }
        for (field, part) in self.parts.iter().enumerate() {
            if let Part::Border(border) = part {
                border.fill(row, field, ends);
            }
        }
        Ok(())
    }

    fn in_context(&self, context: Context) -> Result<Arc<dyn Collate>> {
        Err(not_filled(context, 1))
    }

    fn ignored_label(&self) -> Option<i64> {
        self.labels.say_learned(self.dtype).then_some(Labels::IGNORED)
    }

    fn describe(&self) -> String {
        let labels = self.labels.described();
        let fields = if self.is_chosen { described(&self.fields) } else { String::new() };
        format!("segments(length={},dtype={},pad={}{labels}{fields})", self.length, self.dtype, self.pad)
    }
}
