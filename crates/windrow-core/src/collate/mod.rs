//! Lays samples into named tensors: one pass from the page cache to the batch.

mod batch;
mod copy;
mod next_token;
mod raw;
mod segments;

pub use batch::{Batch, Field, Pool, Row};
pub use copy::{copy_pieces, copy_values};
pub use next_token::NextToken;
pub use raw::Raw;
pub use segments::Segments;

use crate::error::Result;
use crate::record::{Draw, Piece};
use crate::source::Source;

/// What one training example is made of.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    /// Where the values are.
    pub source: &'a dyn Source,
    /// Which values, in order.
    pub pieces: &'a [Piece],
    /// The sample's random numbers.
    pub draw: Draw,
}

/// A way of laying samples into named tensors.
pub trait Collate: Send + Sync {
    /// Names, dtypes and shapes of one row of a batch made of these samples. The same for every batch unless the
    /// layout pads to the longest sample.
    ///
    /// # Errors
    /// `Config` when the samples cannot be laid this way.
    fn fields(&self, samples: &[Sample<'_>]) -> Result<Vec<Field>>;

    /// Lays one sample into its row. Every byte of the row must be written: rows are recycled, not zeroed.
    ///
    /// # Errors
    /// What reading the source says.
    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()>;

    /// What decides the tensors, in words that never change for the same layout.
    fn describe(&self) -> String;
}

/// Memory that one thread uses again for every row.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For sources that cannot lend their bytes.
    pub bytes: Vec<u8>,
    /// For layouts that need a second look.
    pub more: Vec<u8>,
}
