//! Rows that are assembled chunk by chunk: of documents that are filled up to a multiple, and the part of a row that a rank of a context
//! group holds.

use std::sync::Arc;

use super::borders::{Border, Part};
use super::casts::Casts;
use super::learned::Learned;
use super::{Collate, Context, Field, Labels, Positions, Row, Sample, Scratch};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Piece, Span};
use crate::values::{fill_value, write_value};

/// Consecutive positions of one document of a row, or of the padding behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The document's number in the row; `None` of padding.
    document: Option<u32>,
    /// Positions of the document in the row, all ranks together.
    of: u64,
    /// The first position, counted from the document's first one in the row.
    start: u64,
    /// How many.
    len: u64,
    /// Values of the document that come before the row.
    before: u64,
    /// Where its pieces end among those of the sample.
    end: usize,
}

/// Assembles the chunks of a row one after the other. Labels never come from another document.
#[derive(Clone, Debug)]
pub struct Chunks {
    shape: RowShape,
    context: Option<Context>,
    positions: Positions,
    /// The words of the layout of whole rows.
    described: String,
    casts: Casts,
    parts: Vec<Part>,
    fields: Arc<[Field]>,
}

/// What the layouts of whole rows differ in.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowShape {
    /// Positions of a whole row.
    pub(super) length: usize,
    /// Documents of a row at most.
    pub(super) most: usize,
    /// What the positions of a document are a multiple of, where each is a sequence by itself; `None` where a row is one.
    pub(super) multiple: Option<u64>,
    pub(super) dtype: DType,
    pub(super) channels: Option<usize>,
    /// The input where there is no value.
    pub(super) pad: i64,
    pub(super) labels: Labels,
    /// The label of a value that no value comes after, and the label of padding.
    pub(super) none: i64,
    /// The label of a position that fills a document.
    pub(super) filled: i64,
    /// The label of what is not learned, where `ignores` says that it has none of its own.
    pub(super) ignored: i64,
    pub(super) ignores: bool,
    /// Whether positions can be without something to learn.
    pub(super) is_masked: bool,
    pub(super) track: Option<Learned>,
}

impl Chunks {
    /// Rows of this shape with these fields.
    pub(super) fn new(shape: RowShape, parts: Vec<Part>, casts: Casts, described: String) -> Chunks {
        let chunks = Chunks {
            shape,
            context: None,
            positions: Positions::Block,
            described,
            casts,
            parts,
            fields: Arc::new([]),
        };
        chunks.with_fields()
    }

    /// Sets what positions count from.
    pub(super) fn counting_from(self, positions: Positions) -> Chunks {
        Chunks { positions, ..self }
    }

    fn with_fields(mut self) -> Chunks {
        let RowShape { length, most, dtype, channels, .. } = self.shape;
        let length = self.context.map_or(length, |context| context.part(length));
        let shape: Vec<usize> = [length].into_iter().chain(channels).collect();
        let field = |part: &Part| match part {
            Part::Inputs | Part::Labels => Field::new(part.name(), dtype, shape.clone()),
            Part::Masks => Field::new(part.name(), DType::I32, [length]),
            Part::Border(border) => border.field(length, most),
        };
        self.fields = self.parts.iter().map(field).collect();
        self
    }

    // The part of each row that a rank of a context group holds.
    pub(super) fn of_rank(&self, context: Context) -> Result<Chunks> {
        let (length, needed) = (self.shape.length as u64, context.multiple());
        if !length.is_multiple_of(needed) {
            let fitting = (length / needed * needed).max(needed);
            return Err(Error::config(format!("@context={context}@ of rows of {length} positions"))
                .field("context")
                .hint(format!(
                    "{} ranks need rows of a multiple of {needed}: choose a length of {fitting}",
                    context.size()
                )));
        }
        if let Some(multiple) = self.shape.multiple.filter(|multiple| !multiple.is_multiple_of(needed)) {
            return Err(not_filled(context, multiple));
        }
        Ok(Chunks { context: Some(context), ..self.clone() }.with_fields())
    }

    fn field_of(&self, part: Part) -> Option<usize> {
        self.parts.iter().position(|p| *p == part)
    }

    // Bytes of a value in a batch.
    fn size(&self) -> usize {
        self.shape.dtype.size() * self.shape.channels.unwrap_or(1)
    }

    // Writes the values of a chunk from position `at` of the row on, their labels, and which are learned. How many values it has, the one
    // after it among them, which is only a label.
    fn read(
        &self,
        sample: &Sample<'_>,
        (pieces, at, len): (&[Piece], usize, usize),
        row: &mut Row<'_>,
        masks: &mut [i32],
        scratch: &mut Vec<u8>,
    ) -> Result<usize> {
        let RowShape { dtype, labels, track, .. } = self.shape;
        let (size, ahead) = (self.size(), labels.ahead());
        let inputs = self.field_of(Part::Inputs);
        let following = self.field_of(Part::Labels).filter(|_| labels == Labels::Next);
        // Labels that are the inputs are copied from there, where a batch has some.
        let same = self.field_of(Part::Labels).filter(|_| labels == Labels::Same && inputs.is_none());
        let mut n = 0;
        for piece in pieces {
            let end = (n + piece.len() as usize).min(len + ahead);
            if n >= end {
                continue;
            }
            let given = at + n.min(len)..at + end.min(len);
            let labelled = at + n.saturating_sub(ahead)..at + end - ahead;
            let skip = if n == 0 { ahead } else { 0 };
            match piece {
                Piece::Read(span) => {
                    let values = sample.source.read(*span, scratch)?;
                    for field in [inputs, same].into_iter().flatten() {
                        let out = &mut row.bytes(field)[given.start * size..given.end * size];
                        self.casts.copy(sample, span, &values, 0, out, dtype)?;
                    }
                    if let Some(field) = following.filter(|_| !labelled.is_empty()) {
                        let out = &mut row.bytes(field)[labelled.start * size..labelled.end * size];
                        self.casts.copy(sample, span, &values, skip, out, dtype)?;
                    }
                    if !masks.is_empty() && !labelled.is_empty() {
                        let out = &mut masks[labelled];
                        match track {
                            Some(track) => track.fill(sample.source, *span, skip, out, scratch)?,
                            None => out.fill(1),
                        }
                    }
                }
                Piece::Value(value) => {
                    for field in [inputs, same].into_iter().flatten() {
                        let out = &mut row.bytes(field)[given.start * size..given.end * size];
                        write_value(out, dtype, *value)?;
                    }
                    if let Some(field) = following {
                        let out = &mut row.bytes(field)[labelled.start * size..labelled.end * size];
                        write_value(out, dtype, *value)?;
                    }
                    if !masks.is_empty() {
                        masks[labelled].fill(1);
                    }
                }
                Piece::Fill(_) => break,
            }
            n = end;
        }
        Ok(n)
    }

    // Writes what comes after the values of a chunk.
    fn fill_rest(&self, chunk: &Chunk, (at, n): (usize, usize), row: &mut Row<'_>, masks: &mut [i32]) {
        let RowShape { dtype, pad, labels, none, filled, multiple, .. } = self.shape;
        let (size, end) = (self.size(), at + chunk.len as usize);
        let given = (at + n).min(end);
        let labelled = (at + n.saturating_sub(labels.ahead())).min(end);
        for part in [Part::Inputs, Part::Labels] {
            if let Some(field) =
                self.field_of(part).filter(|_| part == Part::Inputs || labels == Labels::Same)
            {
                fill_value(&mut row.bytes(field)[given * size..end * size], dtype, pad);
            }
        }
        if let Some(field) = self.field_of(Part::Labels).filter(|_| labels == Labels::Next) {
            let out = row.bytes(field);
            let rest = if multiple.is_some() && chunk.document.is_some() { filled } else { none };
            fill_value(&mut out[labelled * size..given * size], dtype, none);
            fill_value(&mut out[given * size..end * size], dtype, rest);
        }
        if !masks.is_empty() {
            // No value before it in the row tells it.
            let is_first = multiple.is_some() && chunk.start == 0 && chunk.document.is_some();
            if labels == Labels::Same && is_first {
                masks[at] = 0;
            }
        }
    }

    fn fill_border(
        &self,
        border: Border,
        field: usize,
        sample: &Sample<'_>,
        row: &mut Row<'_>,
        ends: &[usize],
    ) -> Result<()> {
        if matches!(border, Border::Starts | Border::Longest) {
            border.fill(row, field, ends);
            return Ok(());
        }
        let mut at = 0;
        for chunk in sample.chunks {
            let places = at..at + chunk.len as usize;
            at = places.end;
            match (border, chunk.document) {
                (Border::Attention, document) => {
                    row.numbers::<i64>(field)[places].fill(i64::from(document.is_some()));
                }
                (Border::Segments, document) => {
                    row.numbers::<i32>(field)[places].fill(document.map_or(-1, |number| number as i32));
                }
                (_, None) => row.numbers::<i32>(field)[places].fill(0),
                (_, Some(_)) => {
                    let before = if self.positions == Positions::Document { chunk.before } else { 0 };
                    let first = i32::try_from(before.saturating_add(chunk.of))
                        .ok()
                        .map(|_| (before + chunk.start) as i32);
                    let first = first.ok_or_else(|| {
                        Error::config(format!(
                            "position {} does not fit int32",
                            before.saturating_add(chunk.of)
                        ))
                        .hint("count positions from the start of the block")
                    })?;
                    let out = &mut row.numbers::<i32>(field)[places];
                    out.iter_mut().zip(first..).for_each(|(place, position)| *place = position);
                }
            }
        }
        Ok(())
    }
}

impl Collate for Chunks {
    fn fields(&self, _samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>> {
        Ok(self.fields.clone())
    }

    fn cut(&self, first: usize, pieces: &mut Vec<Piece>, chunks: &mut Vec<Chunk>) {
        let (whole, ahead) = (self.shape.length as u64, self.shape.labels.ahead() as u64);
        let n = pieces.len();
        let (mut at, mut number, mut begin) = (0, 0, first);
        while at < whole {
            let mut end = n;
            let (mut of, mut document) = (whole - at, Some(number));
            if self.shape.multiple.is_some() {
                // Each document begins with what is read of its record, be it nothing.
                end = (begin + 1..n).find(|i| matches!(pieces[*i], Piece::Read(_))).unwrap_or(n);
                of = pieces[begin.min(n)..end].iter().map(Piece::len).sum::<u64>().min(of);
                if of == 0 && begin < n {
                    begin = end;
                    continue;
                }
            }
            if begin >= n && self.shape.multiple.is_some() {
                (of, document) = (whole - at, None);
            }
            let before = before(&pieces[begin.min(n)..end]);
            let all = self.context.is_none().then_some(0..of);
            let of_rank = self.context.into_iter().flat_map(|context| context.chunks(of));
            for positions in all.into_iter().chain(of_rank) {
                if self.context.is_some() {
                    clip(pieces, begin..end, positions.start..positions.end + ahead);
                }
                let end = if self.context.is_some() { pieces.len() - n } else { end - first };
                let (start, len) = (positions.start, positions.end - positions.start);
                chunks.push(Chunk { document, of, start, len, before, end });
            }
            at += of;
            number += 1;
            begin = end;
        }
        if self.context.is_some() {
            pieces.drain(first..n);
        }
    }

    fn ignored_label(&self) -> Option<i64> {
        let RowShape { labels, dtype, ignored, ignores, is_masked, .. } = self.shape;
        let is_said = !is_masked || labels.say_learned(dtype) || (ignores && labels == Labels::Next);
        is_said.then_some(ignored)
    }

    fn in_context(&self, context: Context) -> Result<Arc<dyn Collate>> {
        Ok(Arc::new(self.of_rank(context)?))
    }

    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()> {
        let Scratch { bytes, places: ends, masks, .. } = scratch;
        let RowShape { length, dtype, labels, ignored, ignores, is_masked, track, .. } = self.shape;
        let length = self.context.map_or(length, |context| context.part(length));
        let [learned, labels_field] = [Part::Masks, Part::Labels].map(|part| self.field_of(part));
        let is_ignored = match labels {
            Labels::Next => ignores && track.is_some(),
            Labels::Same => is_masked && labels.say_learned(dtype),
            Labels::None => false,
        };
        let ignoring = labels_field.filter(|_| is_ignored);
        masks.clear();
        masks.resize(if learned.or(ignoring).is_some() { length } else { 0 }, 0);
        ends.clear();
        let (mut at, mut begin, mut n_values, mut last) = (0, 0, 0, None);
        for chunk in sample.chunks {
            let len = chunk.len as usize;
            let n = self.read(sample, (&sample.pieces[begin..chunk.end], at, len), row, masks, bytes)?;
            self.fill_rest(chunk, (at, n), row, masks);
            if chunk.document.is_some() && chunk.document != last {
                ends.push(ends.last().copied().unwrap_or(0) + chunk.of as usize);
                last = chunk.document;
            }
            n_values += n.min(len);
            (at, begin) = (at + len, chunk.end);
        }
        if let Some(field) = ignoring.or(labels_field.filter(|_| labels == Labels::Same)) {
            if let Some(inputs) = self.field_of(Part::Inputs).filter(|_| labels == Labels::Same) {
                let [inputs, labels] = row.several([inputs, field]);
                labels.copy_from_slice(inputs);
            }
            if is_ignored {
                Labels::ignore(row.bytes(field), dtype, masks, ignored);
            }
        }
        if let Some(learned) = learned {
            row.numbers::<i32>(learned).copy_from_slice(masks);
        }
        for (field, part) in self.parts.iter().enumerate() {
            if let Part::Border(border) = part {
                self.fill_border(*border, field, sample, row, ends)?;
            }
        }
        row.note_values(n_values as u64);
        Ok(())
    }

    fn describe(&self) -> String {
        self.described.clone()
    }
}

/// The error of documents whose chunks would not be equal.
pub(super) fn not_filled(context: Context, multiple: u64) -> Error {
    let needed = context.multiple();
    let filled = match multiple {
        1 => "not filled up to a multiple".to_string(),
        multiple => format!("filled up to a multiple of {multiple}"),
    };
    Error::config(format!(
        "@context={context}@ of documents that are {filled}: {} ranks divide each into {needed} equal chunks",
        context.size()
    ))
    .field("context")
    .hint(format!("make the view with @multiple={needed}@, or a multiple of that"))
}

// Values of a document that come before these pieces of it.
fn before(pieces: &[Piece]) -> u64 {
    match pieces {
        [Piece::Read(Span { len: 0, .. }), Piece::Fill(span), ..] => span.start,
        [Piece::Read(span), ..] => span.start,
        _ => 0,
    }
}

// Appends what the pieces of a range have at some positions, counted from the first of them.
fn clip(pieces: &mut Vec<Piece>, of: std::ops::Range<usize>, positions: std::ops::Range<u64>) {
    let mut at = 0;
    for i in of {
        let piece = pieces[i];
        let (from, to) = (positions.start.max(at), positions.end.min(at + piece.len()));
        let part = |span: Span| Span { start: span.start + (from - at), len: to - from, ..span };
        if from < to {
            pieces.push(match piece {
                Piece::Read(span) => Piece::Read(part(span)),
                Piece::Fill(span) => Piece::Fill(part(span)),
                Piece::Value(value) => Piece::Value(value),
            });
        }
        at += piece.len();
        if at >= positions.end {
            return;
        }
    }
}
