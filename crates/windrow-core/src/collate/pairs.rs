//! Pieces of records side by side in one row, each with its own labels: packed series.

use std::sync::Arc;

use super::borders::{Border, Part};
use super::casts::Casts;
use super::chosen::{chosen, described};
use super::learned::Learned;
use super::missing::missing_to_zero;
use super::{Collate, Field, Labels, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::Piece;
use crate::source::Schema;
use crate::values::fill_value;

/// Assembles each piece of n + 1 values as n positions; or, as [`Pairs::labels`] says, each of n values as n positions that are
/// their own labels or have none. Per row of T positions:
///
/// * `input_ids` `[T]` or `[T, C]`: all values of the piece but the last, then those of the next piece, then zeros;
/// * `labels` `[T]` or `[T, C]`: all values but the first; or the inputs, of which the first of a record is not learned;
/// * `loss_masks` `[T]` int32: 1 where there is a label; where there are no labels, where the input is a value;
/// * `segment_ids` `[T]` int32: 0, 1, … per piece, -1 in padding;
/// * `pack_bucket` int32: the row's own length.
///
/// Where [`Pairs::only`] asks for them, also `position_ids` `[T]`, `cu_seqlens` `[T + 1]`, `max_seqlen` and `attention_mask` `[T]`, as
/// [`Segments`](super::Segments) assembles them.
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
    casts: Casts,
    parts: Vec<PairPart>,
    is_chosen: bool,
    fixed: Option<Arc<[Field]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairPart {
    Of(Part),
    Bucket,
}

impl PairPart {
    fn name(self) -> &'static str {
        match self {
            PairPart::Of(part) => part.name(),
            PairPart::Bucket => "pack_bucket",
        }
    }
}

/// Those that are there where none are chosen, then the others.
const PARTS: [PairPart; 9] = [
    PairPart::Of(Part::Inputs),
    PairPart::Of(Part::Labels),
    PairPart::Of(Part::Masks),
    PairPart::Of(Part::Border(Border::Segments)),
    PairPart::Bucket,
    PairPart::Of(Part::Border(Border::Positions)),
    PairPart::Of(Part::Border(Border::Starts)),
    PairPart::Of(Part::Border(Border::Longest)),
    PairPart::Of(Part::Border(Border::Attention)),
];
const BY_DEFAULT: usize = 5;

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
            casts: Casts::default(),
            parts: PARTS[..BY_DEFAULT].to_vec(),
            is_chosen: false,
            fixed: None,
        };
        pairs.fix();
        Ok(pairs)
    }

    /// Sets these labels.
    ///
    /// # Errors
    /// `Config` for inputs as labels of an unsigned dtype: the first of a record is not learned.
    pub fn labels(mut self, labels: Labels) -> Result<Self> {
        labels.check(self.dtype)?;
        self.labels = labels;
        if labels == Labels::None {
            self.parts.retain(|part| *part != PairPart::Of(Part::Labels));
        }
        self.fix();
        Ok(self)
    }

    /// Takes only these fields, in the order given; those of the default where none is given. Called last.
    ///
    /// # Errors
    /// `Config` for a name that is not one of its fields or is there twice.
    pub fn only(mut self, names: &[impl AsRef<str>]) -> Result<Self> {
        if names.is_empty() {
            return Ok(self);
        }
        let is_there = |part: &PairPart| *part != PairPart::Of(Part::Labels) || self.labels != Labels::None;
        let there: Vec<PairPart> = PARTS.into_iter().filter(is_there).collect();
        self.parts = chosen(&there, PairPart::name, names, "segments")?;
        self.is_chosen = true;
        let [inputs, labels, masks] =
            [Part::Inputs, Part::Labels, Part::Masks].map(|part| self.field_of(part).is_some());
        let is_told = if self.labels == Labels::None { inputs } else { labels };
        if self.mask_nan && masks && !is_told {
            return Err(Error::config("loss_masks of missing values, without the values that are missing")
                .field("fields")
                .hint("choose labels too, or input_ids where there are no labels"));
        }
        self.fix();
        Ok(self)
    }

    fn field_of(&self, part: Part) -> Option<usize> {
        self.parts.iter().position(|p| *p == PairPart::Of(part))
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
        let field = |part: &PairPart| match part {
            PairPart::Of(Part::Inputs | Part::Labels) => Field::new(part.name(), self.dtype, shape.clone()),
            PairPart::Of(Part::Masks) => Field::new(part.name(), DType::I32, [positions]),
            PairPart::Of(Part::Border(border)) => border.field(positions, positions),
            PairPart::Bucket => Field::new(part.name(), DType::I32, []),
        };
        self.parts.iter().map(field).collect()
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
        let is_same = self.labels == Labels::Same;
        let [inputs, labels, learned] =
            [Part::Inputs, Part::Labels, Part::Masks].map(|part| self.field_of(part));
        let copied = [(inputs, 0), (labels, ahead)];
        let copied = || copied.into_iter().filter_map(|(field, skip)| Some((field?, skip)));
        // No row of a batch holds more than its own positions.
        let positions = self.target(sample);
        let Scratch { bytes, places: ends, masks, .. } = scratch;
        // Labels that are inputs are ignored where they are not learned.
        let is_masked = learned.is_some() || (labels.is_some() && is_same);
        masks.clear();
        masks.resize(if is_masked { positions } else { 0 }, 0);
        ends.clear();
        let track = Learned::of(&sample.source.schema().tracks);
        let mut at = 0;
        for piece in sample.pieces {
            let Piece::Read(span) = piece else { continue };
            let end = (at + (span.len as usize).saturating_sub(ahead)).min(positions);
            if end == at {
                continue;
            }
            if copied().next().is_some() {
                let values = sample.source.read(*span, bytes)?;
                for (field, skip) in copied() {
                    let out = &mut row.bytes(field)[at * size..end * size];
                    self.casts.copy(sample, span, &values, skip, out, self.dtype)?;
                }
            }
            if is_masked {
                let labelled = &mut masks[at..end];
                match track {
                    None => labelled.fill(1),
                    Some(track) => track.fill(sample.source, *span, ahead, labelled, bytes)?,
                }
                if is_same && span.start == 0 {
                    // No value of this record tells it.
                    labelled[0] = 0;
                }
            }
            ends.push(end);
            at = end;
        }
        for (field, _) in copied() {
            fill_value(&mut row.bytes(field)[at * size..], self.dtype, 0);
        }
        if self.mask_nan {
            let mut missing = Vec::new();
            for (field, _) in copied() {
                // Where the label is missing: labels come last.
                missing.clear();
                missing_to_zero(row.bytes(field), self.dtype, channels, |at| missing.push(at));
            }
            if is_masked {
                missing.into_iter().for_each(|at| masks[at] = 0);
            }
        }
        if let Some(labels) = labels.filter(|_| is_same && self.dtype.is_integer()) {
            let labels = row.bytes(labels);
            Labels::ignore(&mut labels[..positions * size], self.dtype, masks, Labels::IGNORED);
            fill_value(&mut labels[positions * size..], self.dtype, Labels::IGNORED);
        }
        if let Some(learned) = learned {
            let learned = row.numbers::<i32>(learned);
            learned[..positions].copy_from_slice(masks);
            learned[positions..].fill(0);
        }
        for (field, part) in self.parts.iter().enumerate() {
            match part {
                PairPart::Of(Part::Border(border)) => border.fill(row, field, ends),
                PairPart::Bucket => row.numbers::<i32>(field)[0] = positions as i32,
                PairPart::Of(_) => {}
            }
        }
        Ok(())
    }

    fn ignored_label(&self) -> Option<i64> {
        self.labels.say_learned(self.dtype).then_some(Labels::IGNORED)
    }

    fn describe(&self) -> String {
        let nan = if self.mask_nan { ",nan=mask+inf" } else { "" };
        let buckets: Vec<_> = self.buckets.iter().map(usize::to_string).collect();
        let buckets =
            if buckets.is_empty() { String::new() } else { format!(",buckets={}", buckets.join("/")) };
        let labels = self.labels.described();
        let fields = if self.is_chosen { described(&self.fields_of(self.length)) } else { String::new() };
        format!("pairs(length={},dtype={}{buckets}{nan}{labels}{fields})", self.length, self.dtype)
    }
}
