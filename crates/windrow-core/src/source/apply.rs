//! Values scaled by known statistics.

use super::floats::{self, Precision};
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::record::{Decode, Values};

/// What turns a stored number into the scaled value, in the copy into the batch.
///
/// # Errors
/// `Unsupported` for records that are scaled already.
pub(super) fn scaled_by(
    [sub, div]: [f64; 2],
    precision: Precision,
    stored: Decode,
    record: u64,
) -> Result<Decode> {
    let (mul, add) = match stored {
        Decode::Plain | Decode::Single | Decode::Literal => (1.0, 0.0),
        Decode::Affine { mul, add, sub: 0.0, div: 1.0 } => (mul, add),
        _ => return Err(Error::unsupported("the records are scaled already").record(record)),
    };
    Ok(match precision {
        Precision::Double => Decode::Scaled { mul: mul.into(), add: add.into(), sub, div },
        Precision::Single => Decode::Affine { mul, add, sub: sub as f32, div: div as f32 },
    })
}

/// Values `[T, C]` whose channels are scaled each by its own row, as float64 in `scratch`.
///
/// # Errors
/// `Unsupported` for what cannot be scaled.
pub(super) fn scaled_by_channel<'a>(
    values: &Values<'_>,
    record: u64,
    rows: &[[f64; 2]],
    scratch: &'a mut Vec<u8>,
) -> Result<Values<'a>> {
    floats::check(values, record)?;
    let mut numbers = Vec::with_capacity(values.bytes.len() / values.element.dtype.size());
    floats::append(values, Precision::Double, &mut numbers);
    for value in numbers.chunks_exact_mut(rows.len()) {
        for (x, [sub, div]) in value.iter_mut().zip(rows) {
            *x = (*x - sub) / div;
        }
    }
    scratch.resize(numbers.len() * size_of::<f64>(), 0);
    let floats = scratch.as_chunks_mut::<{ size_of::<f64>() }>().0;
    floats.iter_mut().zip(numbers).for_each(|(out, x)| *out = x.to_le_bytes());
    Ok(Values {
        bytes: scratch,
        element: Element::little(DType::F64),
        channels: values.channels,
        decode: Decode::Plain,
    })
}
