//! Inputs and what is learned of them: `input_ids`, `labels`, and `loss_masks` where rows can be short.

use std::sync::Arc;

use super::borders::Part;
use super::casts::Casts;
use super::chunks::RowShape;
use super::learned::Learned;
use super::missing::missing_to_zero;
use super::{Chunks, Collate, Context, Field, Labels, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::Piece;
use crate::source::{SampleScale, Schema};
use crate::values::{fill_value, write_value};

/// Assembles `length + 1` values as `input_ids` (all but the last) and `labels` (all but the first); or, as [`NextToken::labels`]
/// says, `length` values as inputs that are their own labels or have none.
///
/// * `input_ids`, `labels`: `[length]` or `[length, C]`, int64 for whole numbers and float32 for floats unless another
///   dtype is asked for; missing values are the padding value.
/// * `loss_masks`: `[length]` int32, 1 where the label is a real value (the input, where there are no labels one later);
///   present when rows can be short, or when the source has a track `loss_mask` (whose 1 means "not learned").
///   [`NextToken::mask_nan`] and [`NextToken::learn_from`] take more positions out.
#[derive(Clone, Debug)]
pub struct NextToken {
    length: usize,
    dtype: DType,
    channels: Option<usize>,
    pad: i64,
    mask: Mask,
    labels: Labels,
    mask_nan: bool,
    learn_from: usize,
    to_longest: bool,
    buckets: Arc<[u64]>,
    own: Option<SampleScale>,
    casts: Casts,
    fields: Arc<[Field]>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    None,
    Real,
    Track(Learned),
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
        let mask = match Learned::of(&schema.tracks) {
            Some(learned) => Mask::Track(learned),
            None if short_rows => Mask::Real,
            None => Mask::None,
        };
        let layout = NextToken {
            length,
            dtype,
            channels: schema.channels,
            pad,
            mask,
            labels: Labels::Next,
            mask_nan: false,
            learn_from: 0,
            to_longest: false,
            buckets: Arc::new([]),
            own: None,
            casts: Casts::default(),
            fields: Arc::new([]),
        };
        Ok(layout.with_fields())
    }

    /// Sets these labels. Called last: what masks there are decides which labels there can be.
    ///
    /// # Errors
    /// `Config` for inputs as labels of an unsigned dtype in rows with masks.
    pub fn labels(mut self, labels: Labels) -> Result<Self> {
        if self.mask != Mask::None {
            labels.check(self.dtype)?;
        }
        self.labels = labels;
        Ok(self.with_fields())
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

    /// Scales each sample by statistics of its own first values.
    #[must_use]
    pub fn scaled_by_sample(mut self, own: SampleScale) -> Self {
        self.own = Some(own);
        self
    }

    /// Positions of a row.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The number of fields.
    pub(super) fn n_fields(&self) -> usize {
        self.fields.len()
    }

    fn with_masks(mut self) -> Self {
        if self.mask == Mask::None {
            self.mask = Mask::Real;
        }
        self.with_fields()
    }

    /// Makes the rows of a batch as long as its longest sample, `length` at most and 1 at least.
    #[must_use]
    pub fn to_longest(mut self) -> Self {
        self.to_longest = true;
        self
    }

    /// Makes the rows of a batch as long as the smallest of these lengths that holds its longest sample.
    ///
    /// # Errors
    /// `Config` for lengths that do not ascend, the last of which does not hold `length`, or one that no row can have.
    pub fn to_buckets(mut self, schema: &Schema, buckets: &[u64]) -> Result<Self> {
        let shown = || buckets.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let refused = |why: String| {
            Err(Error::config(format!("@pad=[{}]@: {why}", shown())).field("pad").hint(format!(
                "give lengths of rows, each above the one before, the last of them {} or more",
                self.length
            )))
        };
        if buckets.first().is_none_or(|first| *first == 0) || !buckets.is_sorted_by(|a, b| a < b) {
            return refused("expected lengths above 0 that ascend".to_string());
        }
        let longest = buckets.last().copied().unwrap_or(0);
        if longest < self.length as u64 {
            return refused(format!("rows have {} positions at most", self.length));
        }
        super::row_length(longest, schema, self.dtype)?;
        self.to_longest = true;
        self.buckets = buckets.into();
        Ok(self)
    }

    // As long as rows are whose longest has this length.
    fn padded(&self, longest: usize) -> usize {
        let bucket = self.buckets.partition_point(|bucket| *bucket < longest as u64);
        self.buckets.get(bucket).and_then(|bucket| usize::try_from(*bucket).ok()).unwrap_or(longest)
    }

    fn with_fields(mut self) -> Self {
        self.fields = self.fields_of(self.length);
        self
    }

    fn fields_of(&self, length: usize) -> Arc<[Field]> {
        let shape: Vec<usize> = [length].into_iter().chain(self.channels).collect();
        let values = |name| Field::new(name, self.dtype, shape.clone());
        let labels = (self.labels != Labels::None).then(|| values("labels"));
        let masks = (self.mask != Mask::None).then(|| Field::new("loss_masks", DType::I32, [length]));
        [Some(values("input_ids")), labels, masks].into_iter().flatten().collect()
    }

    // Positions that a sample fills.
    fn filled(&self, sample: &Sample<'_>) -> usize {
        let values: u64 = sample.pieces.iter().map(Piece::len).sum();
        usize::try_from(values).unwrap_or(usize::MAX).saturating_sub(self.labels.ahead())
    }

    // The number of `loss_masks`, where there are some.
    fn masks(&self) -> usize {
        LABELS + usize::from(self.labels != Labels::None)
    }
}

const INPUTS: usize = 0;
const LABELS: usize = 1;

impl Collate for NextToken {
    fn fields(&self, samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        if !self.to_longest {
            return Ok(self.fields.clone());
        }
        let longest = samples.map(|sample| self.filled(&sample)).max().unwrap_or(self.length);
        Ok(self.fields_of(self.padded(longest.clamp(1, self.length))))
    }

    fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    fn row_length(&self, values: u64) -> Option<u64> {
        let filled = values.saturating_sub(self.labels.ahead() as u64);
        self.to_longest.then(|| filled.clamp(1, self.length as u64))
    }

    // Without masks, all are learned.
    fn ignored_label(&self) -> Option<i64> {
        (self.mask == Mask::None).then_some(Labels::IGNORED)
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let channels = self.channels.unwrap_or(1);
        let size = self.dtype.size() * channels;
        // Of a batch that is as long as its longest sample, every row is.
        let length = if self.to_longest { row.bytes(INPUTS).len() / size } else { self.length };
        let masks = self.masks();
        // `at` counts values from the sample's first; value `at` is input `at`, and learned at `at - ahead`.
        let ahead = self.labels.ahead();
        let mut at = 0;
        for piece in sample.pieces {
            if at >= length + ahead {
                break;
            }
            if piece.is_empty() {
                continue;
            }
            let inputs = at.min(length)..(at + piece.len() as usize).min(length);
            let learned = at.saturating_sub(ahead)..(at + piece.len() as usize - ahead).min(length);
            // The first value of the sample is not a label of another one.
            let skip = if at == 0 { ahead } else { 0 };
            // The label of the last input is the one value that is not an input.
            let is_last = self.labels == Labels::Next && at + piece.len() as usize > length;
            let last = (length - 1) * size..length * size;
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, &mut scratch.bytes)?;
                    let values = match &self.own {
                        Some(own) => own.scaled(values, span.record, &mut scratch.more)?,
                        None => values,
                    };
                    if !inputs.is_empty() {
                        let out = &mut row.bytes(INPUTS)[inputs.start * size..inputs.end * size];
                        self.casts.copy(sample, span, &values, 0, out, self.dtype)?;
                    }
                    if is_last {
                        let out = &mut row.bytes(LABELS)[last];
                        self.casts.copy(sample, span, &values, length - at, out, self.dtype)?;
                    }
                    if let Mask::Track(track) = self.mask
                        && !learned.is_empty()
                    {
                        let out = &mut row.numbers::<i32>(masks)[learned];
                        track.fill(sample.source, *span, skip, out, &mut scratch.bytes)?;
                    }
                }
                Piece::Value(value) => {
                    let out = &mut row.bytes(INPUTS)[inputs.start * size..inputs.end * size];
                    write_value(out, self.dtype, *value)?;
                    if is_last {
                        write_value(&mut row.bytes(LABELS)[last], self.dtype, *value)?;
                    }
                    if let Mask::Track(_) = self.mask {
                        row.numbers::<i32>(masks)[learned].fill(1);
                    }
                }
                Piece::Fill(_) => return Err(super::no_fill()),
            }
            at += piece.len() as usize;
        }
        let learned = at.saturating_sub(ahead).min(length);
        fill_value(&mut row.bytes(INPUTS)[at.min(length) * size..], self.dtype, self.pad);
        if self.labels == Labels::Next {
            // Labels are the inputs one further: copied from there, many short records cost no more than a long one.
            let [inputs, labels] = row.several([INPUTS, LABELS]);
            let (shared, last) = labels.split_at_mut((length - 1) * size);
            shared.copy_from_slice(&inputs[size..]);
            if at <= length {
                fill_value(last, self.dtype, self.pad);
            }
        }
        if self.mask != Mask::None {
            let masks = row.numbers::<i32>(masks);
            masks[learned..].fill(0);
            if self.mask == Mask::Real {
                masks[..learned].fill(1);
            }
            masks[..self.learn_from].fill(0);
        }
        if self.mask_nan {
            let mut missing = Vec::new();
            missing_to_zero(row.bytes(INPUTS), self.dtype, channels, |at| missing.push(at));
            if self.labels == Labels::Next {
                missing.clear();
                missing_to_zero(row.bytes(LABELS), self.dtype, channels, |at| missing.push(at));
            }
            let masks = row.numbers::<i32>(masks);
            missing.into_iter().for_each(|at| masks[at] = 0);
        }
        if self.labels == Labels::Same {
            Labels::copy_inputs(row, [INPUTS, LABELS], (self.mask != Mask::None).then_some(masks));
        }
        Ok(())
    }

    fn in_context(&self, context: Context) -> Result<Arc<dyn Collate>> {
        if self.to_longest || self.mask_nan || self.learn_from > 0 || self.own.is_some() {
            return Err(Error::config(format!(
                "@context={context}@ of rows of series, or of several lengths"
            ))
            .field("context")
            .hint("rows of token IDs that all have the same length are divided"));
        }
        let is_masked = self.mask != Mask::None;
        let shape = RowShape {
            length: self.length,
            most: 1,
            multiple: None,
            dtype: self.dtype,
            channels: self.channels,
            pad: self.pad,
            labels: self.labels,
            none: self.pad,
            filled: self.pad,
            ignored: Labels::IGNORED,
            ignores: false,
            is_masked,
            track: if let Mask::Track(track) = self.mask { Some(track) } else { None },
        };
        let there = |part: &Part| match part {
            Part::Labels => self.labels != Labels::None,
            Part::Masks => is_masked,
            _ => true,
        };
        let parts = [Part::Inputs, Part::Labels, Part::Masks].into_iter().filter(there).collect();
        let rows = Chunks::new(shape, parts, self.casts.clone(), self.describe());
        Ok(Arc::new(rows.of_rank(context)?))
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
        let labels = self.labels.described();
        let buckets: Vec<String> = self.buckets.iter().map(u64::to_string).collect();
        let longest = match (self.to_longest, buckets.is_empty()) {
            (false, _) => String::new(),
            (true, true) => ",to=longest".to_string(),
            (true, false) => format!(",to={}", buckets.join("/")),
        };
        let own = self.own.as_ref().map_or(String::new(), |own| format!(",own={}", own.describe()));
        format!(
            "next_token(length={length},dtype={dtype},pad={pad},mask={mask}{nan}{from}{labels}{longest}{own})"
        )
    }
}
