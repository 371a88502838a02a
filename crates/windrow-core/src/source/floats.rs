//! Stored numbers as floats, de-normalised where the record says so: what every scaler starts from.

use half::{bf16, f16};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Decode, Values};

/// How values are rounded on their way through a scaler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Statistics and scaling in float64; rounded once, to the dtype of the batch.
    #[default]
    Double,
    /// Every value is the float32 next to it before it is scaled, as foundation_ts does it.
    Single,
}

impl Precision {
    /// What sums of a record's values are taken around, given one of them; the published scalers take off nothing.
    pub(super) fn offset(self, value: f64) -> f64 {
        match self {
            Precision::Double => value,
            Precision::Single => 0.0,
        }
    }
}

/// Refuses numbers that carry flags in their low bits (they are IDs, and their mean says nothing), and scaled ones.
///
/// # Errors
/// `Unsupported` naming the record.
pub(super) fn check(values: &Values<'_>, record: u64) -> Result<()> {
    match values.decode {
        Decode::Shift { .. } => Err(Error::unsupported("token IDs with flag bits cannot be scaled")
            .record(record)
            .hint("scalers are for series: leave scaler out")),
        Decode::Scaled { .. } => Err(Error::unsupported("the records are scaled already").record(record)),
        Decode::Affine { sub, div, .. } if (sub, div) != (0.0, 1.0) => {
            Err(Error::unsupported("the records are scaled already").record(record))
        }
        _ => Ok(()),
    }
}

/// Appends all numbers of `values` to `out`.
pub(super) fn append(values: &Values<'_>, precision: Precision, out: &mut Vec<f64>) {
    macro_rules! each {
        ($number:ty, $to_f32:expr, $to_f64:expr) => {{
            const SIZE: usize = size_of::<$number>();
            let (to_f32, to_f64): (fn($number) -> f32, fn($number) -> f64) = ($to_f32, $to_f64);
            let numbers = values.bytes.chunks_exact(SIZE).map(|chunk| {
                let mut bytes = [0; SIZE];
                bytes.copy_from_slice(chunk);
                if values.element.big_endian {
                    bytes.reverse();
                }
                <$number>::from_le_bytes(bytes)
            });
            match (values.decode, precision) {
                (Decode::Affine { mul, add, .. }, Precision::Double) => {
                    let (mul, add) = (f64::from(mul), f64::from(add));
                    out.extend(numbers.map(|x| to_f64(x) * mul + add));
                }
                // As the copy into the batch does it, float32 throughout.
                (Decode::Affine { mul, add, .. }, Precision::Single) => {
                    out.extend(numbers.map(|x| f64::from(to_f32(x) * mul + add)));
                }
                // Flag bits, and what is scaled already, are refused before: see `check`.
                (_, Precision::Double) => out.extend(numbers.map(to_f64)),
                (_, Precision::Single) => out.extend(numbers.map(|x| f64::from(to_f32(x)))),
            }
        }};
        ($number:ty) => {
            each!($number, |x| f32::from(x), |x| f64::from(x))
        };
    }
    match values.element.dtype {
        DType::Bool | DType::U8 => each!(u8),
        DType::U16 => each!(u16),
        DType::U32 => each!(u32, |x| x as f32, f64::from),
        DType::U64 => each!(u64, |x| x as f32, |x| x as f64),
        DType::I8 => each!(i8),
        DType::I16 => each!(i16),
        DType::I32 => each!(i32, |x| x as f32, f64::from),
        DType::I64 => each!(i64, |x| x as f32, |x| x as f64),
        DType::F16 => each!(f16, f16::to_f32, f16::to_f64),
        DType::Bf16 => each!(bf16, bf16::to_f32, bf16::to_f64),
        DType::F32 => each!(f32, |x| x, f64::from),
        DType::F64 => each!(f64, |x| x as f32, |x| x),
    }
}
