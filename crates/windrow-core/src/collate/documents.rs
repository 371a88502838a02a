//! Blocks of documents, with what keeps these apart: for attention within documents.

use std::sync::Arc;

use memchr::memchr_iter;
use serde::{Deserialize, Serialize};

use super::borders::{Border, Part};
use super::casts::Casts;
use super::chosen::chosen;
use super::chunks::{RowShape, not_filled};
use super::learned::Learned;
use super::starts::{mark_after, mark_starts, runs, values_before};
use super::{Chunks, Collate, Context, Field, Labels, Positions, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::Piece;
use crate::source::Schema;
use crate::values::{copy_span, fill_value, write_value};

/// How documents are kept apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DocumentsLayout {
    /// What positions count from.
    pub positions: Positions,
    /// The label of what is not learned: the first token of a document, predicted from the one before it; what a track excludes.
    pub ignore_index: i64,
}

impl Default for DocumentsLayout {
    fn default() -> Self {
        DocumentsLayout { positions: Positions::default(), ignore_index: Labels::IGNORED }
    }
}

/// Assembles blocks of `length` values, one row each:
///
/// * `input_ids` `[length]`, int64 unless another dtype is asked for;
/// * `labels` `[length]`: the value after each, or the input itself ([`Documents::labels`]); `ignore_index` where it is the
///   first of a document, where no input before it in the row tells it, and where a track excludes it;
/// * `loss_masks` `[length]` int32, where the source has a track for them: 1 where the label is learned;
/// * `position_ids` `[length]` int32: 0, 1, … in each document;
/// * `segment_ids` `[length]` int32: 0 for the document that the block begins in, 1 for the next one, …;
/// * `cu_seqlens` `[length + 1]` int32: where documents start in the block, and its end, which is repeated to fill the row;
/// * `max_seqlen` `[]` int32: the longest part of a document in the block;
/// * `attention_mask` `[length]` int64, only where it is asked for: 1, as a block has no padding.
///
/// A document starts with a record, after an end-of-sequence token, or where the stored numbers say so by their bit 0
/// (flat-tokens).
#[derive(Clone, Debug)]
pub struct Documents {
    length: usize,
    dtype: DType,
    eos: Option<i64>,
    layout: DocumentsLayout,
    labels: Labels,
    track: Option<Learned>,
    casts: Casts,
    parts: Vec<Part>,
    fields: Arc<[Field]>,
}

/// Only in the batch where it is asked for.
const ATTENTION: Part = Part::Border(Border::Attention);

impl Documents {
    /// For rows of `length` positions of which `eos` also ends a document.
    ///
    /// # Errors
    /// `Config` for `[T, C]` records, fractions, a length of 0 or more than 2^31, or a dtype that cannot hold the IDs or the
    /// label of what is not learned.
    pub fn new(
        schema: &Schema,
        length: u64,
        dtype: Option<DType>,
        eos: Option<i64>,
        layout: DocumentsLayout,
    ) -> Result<Self> {
        let dtype = super::numbers_dtype(schema, dtype)?;
        let length = super::row_length(length, schema, dtype)?;
        if schema.channels.is_some() || !schema.element.dtype.is_integer() || !dtype.is_integer() {
            return Err(Error::config("documents in packs are made of token IDs [T]"));
        }
        if i32::try_from(length).is_err() {
            return Err(Error::config(format!("a length of {length} does not fit the int32 of cu_seqlens")));
        }
        let track = Learned::of(&schema.tracks);
        let documents = Documents {
            length,
            dtype,
            eos,
            layout,
            labels: Labels::Next,
            track,
            casts: Casts::default(),
            parts: Vec::new(),
            fields: Arc::new([]),
        };
        documents.labels(Labels::Next)
    }

    /// Sets these labels, and takes all fields but `attention_mask`.
    ///
    /// # Errors
    /// `Config` where the dtype cannot hold the label of what is not learned.
    pub fn labels(self, labels: Labels) -> Result<Self> {
        let ignore = self.layout.ignore_index;
        if labels != Labels::None && !self.dtype.holds(ignore) {
            return Err(Error::config(format!(
                "@ignore_index={ignore}@ does not fit labels of {}",
                self.dtype
            ))
            .field("ignore_index")
            .hint("leave dtype out, or choose int32 or int64"));
        }
        let documents = Documents { labels, ..self };
        let usual = documents.there().filter(|part| *part != ATTENTION).collect();
        Ok(documents.with(usual))
    }

    /// Takes only these fields, in the order given.
    ///
    /// # Errors
    /// `Config` for a name that is not one of its fields or is there twice.
    pub fn only(self, names: &[impl AsRef<str>]) -> Result<Self> {
        let there: Vec<Part> = self.there().collect();
        let parts = chosen(&there, Part::name, names, "packs of documents")?;
        Ok(self.with(parts))
    }

    /// Assembles documents that are filled up to a multiple. There a document is a record, whatever tokens it holds: `pad` is the input of
    /// positions that fill it, `ignore_index` their label.
    ///
    /// # Errors
    /// `Config` for a `pad` that the dtype cannot hold.
    pub fn filled(&self, multiple: u64, pad: i64) -> Result<Chunks> {
        super::check_pad(pad, self.dtype)?;
        let ignored = self.layout.ignore_index;
        let shape = RowShape {
            length: self.length,
            most: self.length,
            multiple: Some(multiple),
            dtype: self.dtype,
            channels: None,
            pad,
            labels: self.labels,
            none: ignored,
            filled: ignored,
            ignored,
            ignores: true,
            is_masked: true,
            track: self.track,
        };
        let padded = if pad == 0 { String::new() } else { format!(",pad={pad}") };
        let described = self.describe() + &padded;
        let rows = Chunks::new(shape, self.parts.clone(), self.casts.clone(), described);
        Ok(rows.counting_from(self.layout.positions))
    }

    // What a batch can have.
    fn there(&self) -> impl Iterator<Item = Part> + use<> {
        let (labels, track) = (self.labels, self.track);
        Part::ALL.into_iter().filter(move |part| match part {
            Part::Labels => labels != Labels::None,
            Part::Masks => track.is_some(),
            _ => true,
        })
    }

    fn with(self, parts: Vec<Part>) -> Self {
        let fields = parts.iter().map(|part| match part {
            Part::Inputs | Part::Labels => Field::new(part.name(), self.dtype, [self.length]),
            Part::Masks => Field::new(part.name(), DType::I32, [self.length]),
            Part::Border(border) => border.field(self.length, self.length),
        });
        Documents { fields: fields.collect(), parts, ..self }
    }

    fn field_of(&self, part: Part) -> Option<usize> {
        self.parts.iter().position(|p| *p == part)
    }

    // Reads the row: inputs and labels to where they belong, what the track says of the labels, and where documents start.
    fn read(
        &self,
        sample: &Sample<'_>,
        row: &mut Row<'_>,
        scratch: &mut Vec<u8>,
        starts: &mut [u8],
        learned: &mut [i32],
    ) -> Result<()> {
        let (size, ahead) = (self.dtype.size(), self.labels.ahead());
        let [inputs, labels] = [Part::Inputs, Part::Labels].map(|part| self.field_of(part));
        let labels = labels.filter(|_| self.labels == Labels::Next);
        // Tokens as int64, where the batch does not have them so and they are to be looked through.
        let are_in_batch = inputs.is_some() && self.dtype == DType::I64;
        let mut ids = if self.eos.is_some() && !are_in_batch { vec![0i64; self.length] } else { Vec::new() };
        let mut at = 0;
        for piece in sample.pieces.iter().filter(|piece| !piece.is_empty()) {
            let end = (at + piece.len() as usize).min(self.length + ahead);
            if at >= end {
                break;
            }
            let given = at.min(self.length)..end.min(self.length);
            let labelled = at.saturating_sub(ahead)..end - ahead;
            // The first value of the sample is not a label of another one.
            let skip = if at == 0 { ahead } else { 0 };
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, scratch)?;
                    if let Some(field) = inputs {
                        let out = &mut row.bytes(field)[given.start * size..given.end * size];
                        self.casts.copy(sample, span, &values, 0, out, self.dtype)?;
                    }
                    if let Some(field) = labels
                        && !labelled.is_empty()
                    {
                        let out = &mut row.bytes(field)[labelled.start * size..labelled.end * size];
                        self.casts.copy(sample, span, &values, skip, out, self.dtype)?;
                    }
                    if !ids.is_empty() {
                        let out = bytemuck::cast_slice_mut(&mut ids[given]);
                        copy_span(span, &values, 0, out, DType::I64)?;
                    }
                    mark_starts(&values, *span, &mut starts[at..end]);
                    if let Some(track) = self.track
                        && !labelled.is_empty()
                    {
                        track.fill(sample.source, *span, skip, &mut learned[labelled], scratch)?;
                    }
                }
                Piece::Value(value) => {
                    if let Some(field) = inputs {
                        let out = &mut row.bytes(field)[given.start * size..given.end * size];
                        write_value(out, self.dtype, *value)?;
                    }
                    if let Some(field) = labels {
                        let out = &mut row.bytes(field)[labelled.start * size..labelled.end * size];
                        write_value(out, self.dtype, *value)?;
                    }
                    if !ids.is_empty() {
                        ids[given].fill(*value);
                    }
                    starts[at..end].fill(0);
                    if !learned.is_empty() {
                        learned[labelled].fill(1);
                    }
                }
                Piece::Fill(_) => return Err(super::no_fill()),
            }
            at = end;
        }
        if at < self.length + ahead {
            return Err(Error::corrupt(format!("a block of {at} values, expected {}", self.length + ahead)));
        }
        starts[at..].fill(0);
        if let Some(eos) = self.eos {
            let ids: &[i64] = match inputs.filter(|_| are_in_batch) {
                Some(field) => row.numbers::<i64>(field),
                None => &ids,
            };
            mark_after(ids, eos, &mut starts[1..]);
        }
        Ok(())
    }
}

impl Collate for Documents {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let Scratch { bytes, more: starts, places: ends, masks, .. } = scratch;
        let (size, ahead, length) = (self.dtype.size(), self.labels.ahead(), self.length);
        // One more than there are values: a token may say that a document starts after the last one.
        starts.resize(length + ahead + 1, 0);
        masks.resize(if self.track.is_some() { length } else { 0 }, 0);
        self.read(sample, row, bytes, starts, masks)?;
        ends.clear();
        ends.extend(runs(&starts[..length]).map(|run| run.end));
        // Label i is the value `i + ahead`. Nothing in the row tells the first of its inputs.
        let begins = (ahead == 0 && starts[0] == 0).then_some(0);
        let untold = begins.into_iter().chain(memchr_iter(1, &starts[ahead..ahead + length]));
        let ignored = self.layout.ignore_index;
        for (field, part) in self.parts.iter().enumerate() {
            match part {
                Part::Inputs => {}
                Part::Labels => {
                    if self.labels == Labels::Same {
                        self.same(sample, row, field, bytes)?;
                    }
                    let labels = row.bytes(field);
                    for at in untold.clone() {
                        fill_value(&mut labels[at * size..][..size], self.dtype, ignored);
                    }
                    if self.track.is_some() {
                        Labels::ignore(labels, self.dtype, masks, ignored);
                    }
                }
                Part::Masks => {
                    let out = row.numbers::<i32>(field);
                    out.copy_from_slice(masks);
                    if self.labels != Labels::None {
                        untold.clone().for_each(|at| out[at] = 0);
                    }
                }
                Part::Border(border) => {
                    border.fill(row, field, ends);
                    let continues = *border == Border::Positions
                        && self.layout.positions == Positions::Document
                        && starts[0] == 0;
                    if continues {
                        let before = values_before(sample, self.eos, bytes)?;
                        let last = before.saturating_add(ends[0] as u64);
                        let Ok(before) = i32::try_from(before).and_then(|n| i32::try_from(last).map(|_| n))
                        else {
                            return Err(Error::config(format!("position {last} does not fit int32"))
                                .hint("count positions from the start of the block"));
                        };
                        row.numbers::<i32>(field)[..ends[0]].iter_mut().for_each(|place| *place += before);
                    }
                }
            }
        }
        Ok(())
    }

    fn ignored_label(&self) -> Option<i64> {
        Some(self.layout.ignore_index)
    }

    fn in_context(&self, context: Context) -> Result<Arc<dyn Collate>> {
        Err(not_filled(context, 1))
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name()).collect();
        // The token that ends a document is the view's: rows with another one are assembled alike.
        let positions = match self.layout.positions {
            Positions::Block => "block",
            Positions::Document => "document",
        };
        let labels = self.labels.described();
        format!(
            "documents(length={},dtype={},positions={positions},ignore={}{labels},fields={})",
            self.length,
            self.dtype,
            self.layout.ignore_index,
            names.join("/")
        )
    }
}

impl Documents {
    // Labels that are the inputs: those in the batch, or where it has none the values once more.
    fn same(
        &self,
        sample: &Sample<'_>,
        row: &mut Row<'_>,
        labels: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(inputs) = self.field_of(Part::Inputs) {
            let [inputs, labels] = row.several([inputs, labels]);
            labels.copy_from_slice(inputs);
            return Ok(());
        }
        let (mut at, size) = (0, self.dtype.size());
        for piece in sample.pieces {
            let end = (at + piece.len() as usize).min(self.length);
            let out = &mut row.bytes(labels)[at * size..end * size];
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, scratch)?;
                    self.casts.copy(sample, span, &values, 0, out, self.dtype)?;
                }
                Piece::Value(value) => write_value(out, self.dtype, *value)?,
                Piece::Fill(_) => return Err(super::no_fill()),
            }
            at = end;
        }
        Ok(())
    }
}
