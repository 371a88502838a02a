//! Numbers that a float of another dtype does not hold: whole ones that would become others, finite ones that would become
//! infinite.

use crate::array::DType;
use crate::collate::copy_values;
use crate::error::Result;
use crate::record::{Decode, Values};

/// The first of `values` that `stored`, the same numbers as `dtype`, does not hold.
///
/// # Errors
/// What copying says.
pub(super) fn first(values: &Values<'_>, stored: &[u8], dtype: DType) -> Result<Option<usize>> {
    let from = values.element.dtype;
    if from == dtype || dtype.is_integer() || dtype == DType::Bool || values.decode != Decode::Plain {
        return Ok(None);
    }
    let count = stored.len() / dtype.size();
    let wide = |values: &Values<'_>, dtype: DType| {
        let mut numbers = vec![0u64; count];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut numbers);
        copy_values(values, 0, bytes, dtype).map(|()| numbers)
    };
    if from.is_integer() || from == DType::Bool {
        // How many binary digits a float of this dtype has, and the largest whole number it reaches.
        let (digits, most) = match dtype {
            DType::F16 => (11, 65_504),
            DType::Bf16 => (8, u64::MAX),
            DType::F32 => (24, u64::MAX),
            _ => (53, u64::MAX),
        };
        let is_signed = from != DType::U64;
        let numbers = wide(values, if is_signed { DType::I64 } else { DType::U64 })?;
        return Ok(numbers.iter().position(|number| {
            let size = if is_signed { number.cast_signed().unsigned_abs() } else { *number };
            size > most || size != 0 && 64 - size.leading_zeros() - size.trailing_zeros() > digits
        }));
    }
    let element = crate::array::Element { dtype, big_endian: false };
    let laid = wide(&Values { bytes: stored, element, ..*values }, DType::F64)?;
    if laid.iter().all(|number| f64::from_bits(*number).is_finite()) {
        return Ok(None);
    }
    let given = wide(values, DType::F64)?;
    let is_lost = |(given, laid): (&u64, &u64)| {
        f64::from_bits(*given).is_finite() && !f64::from_bits(*laid).is_finite()
    };
    Ok(given.iter().zip(&laid).position(is_lost))
}
