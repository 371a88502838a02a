//! What is stored (records, their lengths), which part of it a sample takes (spans, pieces), and the draws that may
//! decide which.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::array::Element;
use crate::error::Result;

/// How many records there are and how long each is. All that a view may know of a source.
pub trait Lengths: Send + Sync {
    /// Number of records.
    fn len(&self) -> u64;

    /// Values in one record (`T` of `[T]` or `[T, C]`). O(1).
    ///
    /// # Errors
    /// `OutOfRange`, or `Corrupt` when an index on disk is wrong at this record.
    fn length(&self, record: u64) -> Result<u64>;

    /// The lengths of consecutive records from `first` on, one for each place of `out`: for one pass over many.
    ///
    /// # Errors
    /// What [`Lengths::length`] says.
    fn lengths(&self, first: u64, out: &mut [u64]) -> Result<()> {
        for (record, length) in (first..self.len()).zip(&mut *out) {
            *length = self.length(record)?;
        }
        match first.checked_add(out.len() as u64) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(crate::error::Error::out_of_range("record", first.max(self.len()), self.len())),
        }
    }

    /// The length of every record, where all are known to be equal.
    fn uniform(&self) -> Option<u64> {
        None
    }

    /// No records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Consecutive values of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Record number.
    pub record: u64,
    /// First value.
    pub start: u64,
    /// Number of values.
    pub len: u64,
}

/// A part of a sample, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Values of a record.
    Read(Span),
    /// One value that is in no record: an end-of-sequence ID that the view puts between records.
    Value(i64),
    /// Positions without a value, at the end of a document that is filled up to a multiple. They are numbered like values that the
    /// record would have there.
    Fill(Span),
}

impl Piece {
    /// Positions of this piece.
    pub fn len(&self) -> u64 {
        match self {
            Piece::Read(span) | Piece::Fill(span) => span.len,
            Piece::Value(_) => 1,
        }
    }

    /// Has no position.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Values as a source hands them out: borrowed from the map or from the caller's scratch.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// `len × channels` numbers.
    pub bytes: &'a [u8],
    /// Their type and byte order.
    pub element: Element,
    /// Numbers per value: 1 for `[T]`, `C` for `[T, C]`.
    pub channels: usize,
    /// What turns a stored number into the value; done while it is copied into the batch.
    pub decode: Decode,
}

/// What turns a stored number into the value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decode {
    /// It is the value.
    Plain,
    /// The value is the float32 next to it, in float64 the number itself: records of other types among those of float32.
    Single,
    /// A number that was written without a dtype, in text, kept with all its digits: the value is the float32 next to it, in float64
    /// the number itself.
    Literal,
    /// An unsigned integer whose low bits are flags: `value = stored >> bits`.
    Shift {
        /// How many flag bits.
        bits: u32,
    },
    /// `((stored * mul + add) - sub) / div` in float64, rounded once to the dtype of the batch: de-normalising, then scaling
    /// by record statistics.
    Scaled {
        /// Factor, 1 to leave it.
        mul: f64,
        /// Summand, 0 to leave it.
        add: f64,
        /// Subtrahend, 0 to leave it.
        sub: f64,
        /// Divisor, 1 to leave it.
        div: f64,
    },
    /// `((stored * mul + add) - sub) / div` in float32 throughout: de-normalising as shards of float32 define it, and the published
    /// scalers.
    Affine {
        /// Factor, 1 to leave it.
        mul: f32,
        /// Summand, 0 to leave it.
        add: f32,
        /// Subtrahend, 0 to leave it.
        sub: f32,
        /// Divisor, 1 to leave it.
        div: f32,
    },
}

/// One time through the samples of a view: what an order of its documents may depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pass {
    /// The seed of the run.
    pub seed: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// How many times the view was gone through before in this epoch: 0 outside of mixtures.
    pub pass: u64,
    /// The number of the view in its plan: 0 of a view by itself.
    pub view: u64,
}

impl Pass {
    /// The draws of one of its samples.
    pub fn draw(self, sample: u64) -> Draw {
        Draw { of: self, sample }
    }
}

/// The random numbers a sample may use: a counter keyed by (seed, epoch, pass, sample), never a generator with state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    of: Pass,
    sample: u64,
}

impl Draw {
    /// The draws of one sample in one pass of one epoch, of a view by itself.
    pub fn new(seed: u64, epoch: u64, pass: u64, sample: u64) -> Self {
        Pass { seed, epoch, pass, view: 0 }.draw(sample)
    }

    /// The pass in which they are drawn.
    pub fn pass(&self) -> Pass {
        self.of
    }

    /// A number in `0..n`, another one for each `stream`; 0 when `n` is 0.
    pub fn below(&self, n: u64, stream: u64) -> u64 {
        let Pass { seed, epoch, pass, .. } = self.of;
        // Hashed here, not in `new`: most samples draw nothing.
        let hash = keyed_hash(keyed_hash(seed, [epoch, pass, self.sample]), [stream, 0, 0]);
        ((u128::from(hash) * u128::from(n)) >> 64) as u64
    }
}

/// XXH3-64 of three numbers under a seed: the one hash behind every draw and every order.
pub fn keyed_hash(seed: u64, numbers: [u64; 3]) -> u64 {
    let mut bytes = [0u8; 24];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    xxh3_64_with_seed(&bytes, seed)
}

/// Records by lengths given in memory; for tests, and for views over what is not on disk.
impl Lengths for Vec<u64> {
    fn len(&self) -> u64 {
        <[u64]>::len(self) as u64
    }

    fn length(&self, record: u64) -> Result<u64> {
        let n = <[u64]>::len(self) as u64;
        usize::try_from(record)
            .ok()
            .and_then(|i| self.get(i).copied())
            .ok_or_else(|| crate::error::Error::out_of_range("record", record, n))
    }
}
