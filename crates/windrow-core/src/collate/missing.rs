//! What is not finite as a missing value: 0 in the batch, with its place reported.

use half::{bf16, f16};

use crate::array::DType;

/// Writes 0 over every NaN and infinity of a row of values with `channels` channels, and calls `tell` with the number of each
/// value that had one.
pub(super) fn missing_to_zero(row: &mut [u8], dtype: DType, channels: usize, tell: impl FnMut(usize)) {
    match dtype {
        DType::F16 => each(bytemuck::cast_slice_mut(row), channels, f16::is_finite, tell),
        DType::Bf16 => each(bytemuck::cast_slice_mut(row), channels, bf16::is_finite, tell),
        DType::F32 => each(bytemuck::cast_slice_mut(row), channels, f32::is_finite, tell),
        DType::F64 => each(bytemuck::cast_slice_mut(row), channels, f64::is_finite, tell),
        // Whole numbers are all there.
        _ => {}
    }
}

fn each<T: bytemuck::Pod>(
    row: &mut [T],
    channels: usize,
    is_finite: impl Fn(T) -> bool,
    mut tell: impl FnMut(usize),
) {
    for (at, number) in row.iter_mut().enumerate().filter(|(_, number)| !is_finite(**number)) {
        *number = T::zeroed();
        tell(at / channels.max(1));
    }
}
