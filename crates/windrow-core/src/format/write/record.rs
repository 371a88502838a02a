//! One record as a writer is handed it.

use crate::array::{Buffer, DType, Element};
use crate::error::{Error, Result};
use crate::record::{Decode, Values};
use crate::row::Value;
use crate::source::Extras;
use crate::values::copy_values;

/// One record as it is stored, or a part of it.
pub struct Stored<'a> {
    /// Its number.
    pub number: u64,
    /// Little-endian numbers of the writer's dtype.
    pub bytes: &'a [u8],
    /// Values `T` of `[T]` or `[T, C]`, of the whole record.
    pub len: u64,
    /// What is kept beside the numbers.
    pub extras: &'a Extras,
    /// Number of the input that completed it.
    pub input: usize,
    /// The bytes beside the tokens, an array for each of [`Corpus::tracks`](super::Corpus::tracks).
    pub tracks: &'a [&'a [u8]],
    /// It begins here.
    pub is_first: bool,
    /// Nothing of it follows.
    pub is_last: bool,
}

impl Stored<'_> {
    /// A value of [`Stored::extras`] as JSON.
    ///
    /// # Errors
    /// `Config` where JSON has no word for it: bytes, arrays, NaN.
    pub fn json(&self, name: &str, value: &Value) -> Result<serde_json::Value> {
        value.to_json().ok_or_else(|| {
            Error::config(format!("the metadata {name:?} is {}, which JSON does not hold", value.shown()))
                .record(self.number)
                .field(name)
                .hint("leave that column out")
        })
    }
}

/// Stored numbers as float64, one after the other.
///
/// # Errors
/// `Corrupt` for a whole number that float64 does not hold.
pub fn each_number(bytes: &[u8], dtype: DType) -> Result<Vec<f64>> {
    let mut out = Buffer::zeroed(bytes.len() / dtype.size() * 8);
    let values = Values { bytes, element: Element::little(dtype), channels: 1, decode: Decode::Plain };
    copy_values(&values, 0, out.bytes_mut(), DType::F64)?;
    Ok(bytemuck::cast_slice(out.bytes()).to_vec())
}
