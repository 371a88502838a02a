//! Which pieces of which records make sample i. Integers only: no IO, no generator, no clock.

mod allocate;
mod bins;
mod crop;
mod cursor;
mod ends;
mod fit;
mod lengths;
mod pack;
mod records;
mod reshuffle;
mod rows;
mod segments;
mod share;
mod window;

use std::ops::Range;

pub use bins::{Bins, Overlong};
pub use crop::{Crop, Mode};
pub use cursor::Cursor;
pub use fit::Strategy;
pub use pack::Pack;
pub use records::Records;
pub use rows::Rows;
pub use segments::Segments;
pub use share::RowLength;
pub use window::{Starts, Tail, Windows};

use crate::error::Result;
use crate::record::{Draw, Pass, Piece};

/// A way of cutting records into samples.
pub trait View: Send + Sync {
    /// Number of samples.
    fn len(&self) -> u64;

    /// Appends the pieces of `sample`, in order, to `out`. `sample < len()`.
    ///
    /// # Errors
    /// `OutOfRange`; `Corrupt` when an index on disk is wrong at one of the records.
    fn pieces(&self, sample: u64, draw: Draw, out: &mut Vec<Piece>) -> Result<()>;

    /// How many values the samples from `first` on read, one number for each place of `out`; the same in every pass.
    ///
    /// # Errors
    /// As for [`View::pieces`].
    fn values(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let mut pieces = Vec::new();
        for (sample, values) in (first..).zip(out) {
            pieces.clear();
            self.pieces(sample, Draw::new(0, 0, 0, sample), &mut pieces)?;
            *values = pieces.iter().map(Piece::len).sum();
        }
        Ok(())
    }

    /// Appends the lengths of the documents in a sample that is made of these pieces: how many positions of its row each fills, with
    /// the EOS token after it. A document without any is not in it.
    fn documents(&self, pieces: &[Piece], out: &mut Vec<u64>) {
        let (mut room, before) = (self.positions(), out.len());
        // What an EOS token ends, if it ends anything but itself.
        let mut open = 0;
        for piece in pieces {
            let len = piece.len().min(room);
            room -= len;
            match piece {
                Piece::Read(_) => {
                    out.extend((open > 0).then_some(open));
                    open = len;
                }
                Piece::Value(_) => {
                    out.extend((open + len > 0).then_some(open + len));
                    open = 0;
                }
                // Up to a multiple: a part of the document in front of it.
                Piece::Fill(_) => match out[before..].last_mut() {
                    Some(last) if open == 0 => *last += len,
                    _ => open += len,
                },
            }
        }
        out.extend((open > 0).then_some(open));
    }

    /// Asks the processor for what says which pieces `sample` has: they are asked for soon.
    fn touch(&self, _sample: u64) {}

    /// Whether it depends on the pass which records a sample reads, and in which order; else all passes are alike but for draws.
    fn is_reshuffled(&self) -> bool {
        false
    }

    /// Whether the first sample of a pass waits for work over all records, which [`View::prepare`] does before.
    fn has_preparation(&self) -> bool {
        false
    }

    /// Does before a pass what its first sample would wait for, as long as `is_wanted` says so.
    ///
    /// # Errors
    /// `Corrupt` as for [`View::pieces`].
    fn prepare(&self, _pass: Pass, _is_wanted: &dyn Fn() -> bool) -> Result<()> {
        Ok(())
    }

    /// The inverse: the samples that may read from `record` in a pass, as a range of sample numbers.
    ///
    /// # Errors
    /// `OutOfRange`, or `Corrupt` as for [`View::pieces`].
    fn samples_of(&self, record: u64, pass: Pass) -> Result<Range<u64>>;

    /// Positions that a sample fills at most, counted in model inputs (`labels` are one value later).
    fn positions(&self) -> u64;

    /// What of the source is seen in one pass.
    ///
    /// # Errors
    /// `Corrupt` when an index on disk is wrong.
    fn coverage(&self, pass: Pass) -> Result<Coverage>;

    /// What decides the cut, in words that never change for the same cut: part of the plan's identity.
    fn describe(&self) -> String;

    /// Samples that are padded because their record is too short for one, where a view counts them.
    fn short(&self) -> u64 {
        0
    }

    /// Records that are longer than a sample can be, where a view counts them.
    fn overlong(&self) -> u64 {
        0
    }

    /// No samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What one epoch of a view sees of its source, in values. `used + unseen` is all values there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Coverage {
    /// Values that are in at least one sample.
    pub used: u64,
    /// Values read again by a later sample (overlapping windows, the one value that neighbouring packs share).
    pub repeated: u64,
    /// Positions filled with padding.
    pub padded: u64,
    /// Values that are in no sample.
    pub unseen: u64,
    /// Records none of whose values is used.
    pub skipped_records: u64,
}
