//! The fields of rows that keep documents apart: where each begins and ends, as attention within documents takes it.

use serde::{Deserialize, Serialize};

use super::{Field, Row};
use crate::array::DType;

/// What `position_ids` count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Positions {
    /// The first value of the document in this block.
    #[default]
    Block,
    /// The first value of the document, in whichever block it is.
    Document,
}

/// A field of rows that keep documents apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `input_ids`.
    Inputs,
    /// `labels`.
    Labels,
    /// `loss_masks`.
    Masks,
    /// Where documents are.
    Border(Border),
}

impl Part {
    /// All of them.
    pub(super) const ALL: [Part; 8] = [
        Part::Inputs,
        Part::Labels,
        Part::Masks,
        Part::Border(Border::Positions),
        Part::Border(Border::Segments),
        Part::Border(Border::Starts),
        Part::Border(Border::Longest),
        Part::Border(Border::Attention),
    ];

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Part::Inputs => "input_ids",
            Part::Labels => "labels",
            Part::Masks => "loss_masks",
            Part::Border(border) => border.name(),
        }
    }
}

/// A field that says where documents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Border {
    /// `position_ids` `[length]`: 0, 1, … in each document, 0 in padding.
    Positions,
    /// `segment_ids` `[length]`: 0, 1, … per document, -1 in padding.
    Segments,
    /// `cu_seqlens`: where documents start, and the end, which is repeated.
    Starts,
    /// `max_seqlen`: positions of the longest document.
    Longest,
    /// `attention_mask` `[length]` int64: 1, 0 in padding.
    Attention,
}

impl Border {
    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Border::Positions => "position_ids",
            Border::Segments => "segment_ids",
            Border::Starts => "cu_seqlens",
            Border::Longest => "max_seqlen",
            Border::Attention => "attention_mask",
        }
    }

    /// The field in rows of `length` positions that hold at most `most` documents.
    pub(super) fn field(self, length: usize, most: usize) -> Field {
        match self {
            Border::Starts => Field::new(self.name(), DType::I32, [most + 1]),
            Border::Longest => Field::new(self.name(), DType::I32, []),
            Border::Attention => Field::new(self.name(), DType::I64, [length]),
            Border::Positions | Border::Segments => Field::new(self.name(), DType::I32, [length]),
        }
    }

    /// Writes the field of a row whose documents end at `ends`.
    pub(super) fn fill(self, row: &mut Row<'_>, field: usize, ends: &[usize]) {
        let end = ends.last().copied().unwrap_or(0);
        let starts = || [0].into_iter().chain(ends.iter().copied());
        let documents = || starts().zip(ends).map(|(start, end)| start..*end);
        match self {
            Border::Positions => {
                let out = row.numbers::<i32>(field);
                for document in documents() {
                    out[document].iter_mut().zip(0..).for_each(|(place, position)| *place = position);
                }
                out[end..].fill(0);
            }
            Border::Segments => {
                let out = row.numbers::<i32>(field);
                documents().zip(0..).for_each(|(document, number)| out[document].fill(number));
                out[end..].fill(-1);
            }
            Border::Starts => {
                let out = row.numbers::<i32>(field);
                out.iter_mut().zip(starts()).for_each(|(place, start)| *place = start as i32);
                out[ends.len() + 1..].fill(end as i32);
            }
            Border::Longest => {
                let longest = documents().map(|document| document.len()).max();
                row.numbers::<i32>(field)[0] = longest.unwrap_or(0) as i32;
            }
            Border::Attention => {
                let out = row.numbers::<i64>(field);
                out[..end].fill(1);
                out[end..].fill(0);
            }
        }
    }
}
