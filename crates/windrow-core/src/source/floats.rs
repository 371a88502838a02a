//! Stored numbers as float32, de-normalised where the record says so: what every scaler starts from.

use half::{bf16, f16};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Decode, Values};

/// Refuses numbers that carry flags in their low bits: they are ids, and their mean says nothing.
///
/// # Errors
/// `Unsupported` naming the record.
pub(super) fn check(values: &Values<'_>, record: u64) -> Result<()> {
    match values.decode {
        Decode::Shift { .. } => Err(Error::unsupported("ids with flag bits cannot be scaled")
            .record(record)
            .hint("scalers are for series: leave scaler out")),
        _ => Ok(()),
    }
}

/// Appends all numbers of `values` to `out`.
pub(super) fn append(values: &Values<'_>, out: &mut Vec<f32>) {
    macro_rules! each {
        ($number:ty, $to_f32:expr) => {{
            const SIZE: usize = size_of::<$number>();
            let to_f32: fn($number) -> f32 = $to_f32;
            let numbers = values.bytes.chunks_exact(SIZE).map(|chunk| {
                let mut bytes = [0; SIZE];
                bytes.copy_from_slice(chunk);
                if values.element.big_endian {
                    bytes.reverse();
                }
                <$number>::from_le_bytes(bytes)
            });
            match values.decode {
                // Flag bits are refused before: see `check`.
                Decode::Plain | Decode::Single | Decode::Shift { .. } => out.extend(numbers.map(to_f32)),
                // As the copy into the batch does it, float32 throughout.
                Decode::Affine { mul, add, sub, div } => {
                    out.extend(numbers.map(|x| ((to_f32(x) * mul + add) - sub) / div));
                }
            }
        }};
    }
    match values.element.dtype {
        DType::Bool | DType::U8 => each!(u8, |x| f32::from(x)),
        DType::U16 => each!(u16, |x| f32::from(x)),
        DType::U32 => each!(u32, |x| x as f32),
        DType::U64 => each!(u64, |x| x as f32),
        DType::I8 => each!(i8, |x| f32::from(x)),
        DType::I16 => each!(i16, |x| f32::from(x)),
        DType::I32 => each!(i32, |x| x as f32),
        DType::I64 => each!(i64, |x| x as f32),
        DType::F16 => each!(f16, f16::to_f32),
        DType::Bf16 => each!(bf16, bf16::to_f32),
        DType::F32 => each!(f32, |x| x),
        DType::F64 => each!(f64, |x| x as f32),
    }
}
