//! Assembles samples into named tensors: one pass from the page cache to the batch.

mod batch;
mod beside;
mod borders;
mod calendar;
mod casts;
mod chosen;
mod chunks;
mod codes;
mod context;
mod covariates;
mod derived;
mod documents;
mod labels;
mod learned;
mod missing;
mod moments;
mod next_token;
mod outputs;
mod pairs;
mod raw;
mod rows;
mod segments;
mod shifted;
mod stack;
mod starts;

pub use batch::{Batch, Field, List, Pool, Row};
pub use beside::{Beside, BesideField, ScaledBy};
pub use borders::Positions;
pub use calendar::{Frequency, TimeFeature};
pub use chunks::{Chunk, Chunks};
pub use codes::{Codes, CodesLayout, Delays, Example, Masks, Tags, TextCut, Undelayed};
pub use context::Context;
pub use covariates::{Covariate, Covariates, OfSeries};
pub use documents::{Documents, DocumentsLayout};
pub use labels::Labels;
pub use learned::{LOSS_MASK_TRACK, LOSS_TRACK, is_mask, learned, mask_columns};
pub use moments::Moment;
pub use next_token::NextToken;
pub use outputs::OutputOptions;
pub(crate) use outputs::Outputs;
pub use pairs::Pairs;
pub use raw::Raw;
pub use rows::Rows;
pub(crate) use rows::{place_of, whole_span};
pub use segments::Segments;
pub use shifted::Shifted;

use std::sync::Arc;

use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Draw, Piece};
use crate::source::{Kind, Schema, Source};
use crate::values;

/// What one training example is made of.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    /// Where the values are.
    pub source: &'a dyn Source,
    /// Which values, in order.
    pub pieces: &'a [Piece],
    /// How they are divided, where [`Collate::cut`] does that.
    pub chunks: &'a [Chunk],
    /// The sample's random numbers.
    pub draw: Draw,
}

/// A way of assembling samples into named tensors.
pub trait Collate: Send + Sync {
    /// Names, dtypes and shapes of one row of a batch made of these samples. The same for every batch unless the
    /// layout pads to the longest sample.
    ///
    /// # Errors
    /// `Config` when the samples cannot be assembled this way.
    fn fields(&self, samples: &mut dyn Iterator<Item = Sample<'_>>) -> Result<Arc<[Field]>>;

    /// Writes one sample into its row. Every byte of the row must be written: rows are recycled, not zeroed.
    ///
    /// # Errors
    /// What reading the source says.
    fn fill(&self, sample: &Sample<'_>, row: &mut Row<'_>, scratch: &mut Scratch) -> Result<()>;

    /// Divides a sample, whose pieces come from `first` on, into the chunks that it assembles, and keeps only their pieces.
    fn cut(&self, _first: usize, _pieces: &mut Vec<Piece>, _chunks: &mut Vec<Chunk>) {}

    /// The part of each row that a rank of a context group holds, in words the same layout.
    ///
    /// # Errors
    /// `Config` for rows that are not divided, or not into equal chunks.
    fn in_context(&self, context: Context) -> Result<Arc<dyn Collate>> {
        Err(Error::config(format!("@context={context}@ of rows that are not divided")).field("context"))
    }

    /// Positions of the row of a sample that reads this many values, where a batch is as long as its longest row; `None` where all
    /// rows are equally long.
    fn row_length(&self, values: u64) -> Option<u64> {
        let _ = values;
        None
    }

    /// The lengths that rows can have, ascending, where a batch is as long as the smallest of them that holds its longest row: the
    /// longest over all ranks, so that they agree. None where there are no such lengths.
    fn buckets(&self) -> &[u64] {
        &[]
    }

    /// The label of what is not learned, where labels say everywhere whether they are: a mask can be made of them.
    fn ignored_label(&self) -> Option<i64> {
        None
    }

    /// This layout with rows as long as the longest of their batch, where it can have them so and does not.
    fn to_longest(&self) -> Option<Arc<dyn Collate>> {
        None
    }

    /// How whole records leave, where there are no tensors to fill: then [`Collate::fill`] is not called.
    fn rows(&self) -> Option<&Rows> {
        None
    }

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
    /// For texts beside the values.
    pub text: String,
    /// Where documents of the row end.
    pub places: Vec<usize>,
    /// Which positions of the row are learned.
    pub masks: Vec<i32>,
}

// The dtype in which numbers of this schema leave: as asked, else int64 for whole numbers and float32 for floats.
fn numbers_dtype(schema: &Schema, asked: Option<DType>) -> Result<DType> {
    if schema.kind == Kind::Json {
        return Err(Error::config("JSON records hold text, and a view cuts numbers")
            .hint("make tokens of it with `windrow tokenize`, or read records with @read_record@"));
    }
    schema.need_numbers()?;
    let stored = schema.element.dtype;
    match asked {
        None if stored.is_integer() => Ok(DType::I64),
        None => Ok(DType::F32),
        Some(DType::Bool) if stored != DType::Bool => {
            Err(Error::config(format!("{stored} values do not fit bool")))
        }
        Some(dtype) if dtype.is_integer() && !stored.is_integer() => {
            Err(Error::config(format!("{stored} values cannot be stored as {dtype}"))
                .hint("choose @as_dtype=float32@"))
        }
        Some(DType::Bool) => Ok(DType::U8),
        Some(dtype) => Ok(dtype),
    }
}

// What only documents have that are filled up to a multiple.
fn no_fill() -> Error {
    Error::unsupported("positions without a value in rows whose documents are not filled")
}

// What fills short rows is a number of the batch's dtype.
fn check_pad(pad: i64, dtype: DType) -> Result<()> {
    if values::holds(dtype, pad) {
        Ok(())
    } else {
        Err(Error::config(format!("the padding value {pad} does not fit {dtype}")))
    }
}

// A row's length as memory can hold it: 2^40 bytes are no row.
fn row_length(length: u64, schema: &Schema, dtype: DType) -> Result<usize> {
    let size = length.checked_mul(schema.channels.unwrap_or(1) as u64 * dtype.size() as u64);
    match usize::try_from(length) {
        Ok(length) if length > 0 && size.is_some_and(|s| s < 1 << 40) => Ok(length),
        _ => Err(Error::config(format!("a row of {length} values"))
            .hint("choose a length of at least 1 that fits memory")),
    }
}
