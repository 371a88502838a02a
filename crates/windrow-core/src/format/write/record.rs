//! One record as a writer is handed it.

use crate::array::{Buffer, DType, Element};
use crate::error::{Error, Result};
use crate::record::{Decode, Values};
use crate::row::{Array, Row, Value};
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
    /// The bytes beside the tokens: an array for each of [`Corpus::tracks`](super::Corpus::tracks), or the mask of
    /// [`Begin::has_mask`](super::Begin::has_mask).
    pub tracks: &'a [&'a [u8]],
    /// It begins here.
    pub is_first: bool,
    /// Nothing of it follows.
    pub is_last: bool,
}

impl Stored<'_> {
    /// Its numbers as an array `[T]`, or `[T, C]` of `channels` channels.
    pub fn array(&self, dtype: DType, channels: Option<usize>, bytes: Vec<u8>) -> Array {
        let shape = [self.len].into_iter().chain(channels.map(|channels| channels as u64)).collect();
        Array { dtype, shape, bytes }
    }

    /// One row: the numbers first, in the column `column`, then the metadata.
    ///
    /// # Errors
    /// `Config` with `hint` when the metadata has a value of that name too.
    pub fn row(&self, column: &str, numbers: Array, hint: &str) -> Result<Row> {
        let mut row = Row::from_iter([(column.to_string(), numbers)]);
        for (name, value) in self.extras.iter() {
            if row.insert(name, value.clone()).is_some() {
                let what =
                    format!("the metadata of a record has {name:?}, which is also the name of its numbers");
                return Err(Error::config(what).record(self.number).field(name).hint(hint));
            }
        }
        Ok(row)
    }

    /// A value of [`Stored::extras`] as JSON; whole numbers `[T]`, as masks and labels are, as a list.
    ///
    /// # Errors
    /// `Config` where JSON has no word for it: bytes, other arrays, NaN.
    pub fn json(&self, name: &str, value: &Value) -> Result<serde_json::Value> {
        numbers_of(value).or_else(|| value.to_json()).ok_or_else(|| {
            Error::config(format!("the metadata {name:?} is {}, which JSON does not hold", value.shown()))
                .record(self.number)
                .field(name)
                .hint("leave that column out")
        })
    }
}

// A list of whole numbers, which lose nothing but their dtype.
fn numbers_of(value: &Value) -> Option<serde_json::Value> {
    let Value::Array(array) = value else { return None };
    if array.shape.len() != 1 || !array.dtype.is_integer() {
        return None;
    }
    let mut numbers = vec![0i64; array.bytes.len() / array.dtype.size()];
    let values = Values {
        bytes: &array.bytes,
        element: Element::little(array.dtype),
        channels: 1,
        decode: Decode::Plain,
    };
    copy_values(&values, 0, bytemuck::cast_slice_mut(&mut numbers), DType::I64).ok()?;
    Some(numbers.into())
}

/// How to mend that the numbers and some metadata have the same name, where `to_column=` is an option.
pub const TO_COLUMN_HINT: &str = "give the numbers another name with @to_column@";

/// The error that row `number` has other columns than the first one, which has these.
pub fn other_columns<'a>(number: u64, row: &Row, expected: impl Iterator<Item = &'a str>) -> Error {
    let found: Vec<&str> = row.names().collect();
    let expected: Vec<&str> = expected.collect();
    Error::config(format!("a row of {}; the first has {}", found.join(", "), expected.join(", ")))
        .record(number)
        .hint("all rows of a data set have the same columns")
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
