//! The loops of the copy, one for each pair of types; the compiler makes vector loops of them.

use half::{bf16, f16};

use super::Rounded;
use super::number::{Cast, Float, Number};
use crate::array::DType;
use crate::record::Decode;

#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) big_endian: bool,
    pub(super) decode: Decode,
}

pub(super) enum Copied {
    Yes,
    TooLarge,
    Inexact(Rounded),
    Fraction,
}

pub(super) fn copy_from<S>(from: Stored<'_>, out: &mut [u8], dtype: DType) -> Copied
where
    S: Cast<u8> + Cast<u16> + Cast<u32> + Cast<u64> + Cast<i8> + Cast<i16> + Cast<i32> + Cast<i64>,
{
    match dtype {
        DType::U8 => copy_whole::<S, u8>(from, out),
        DType::U16 => copy_whole::<S, u16>(from, out),
        DType::U32 => copy_whole::<S, u32>(from, out),
        DType::U64 => copy_whole::<S, u64>(from, out),
        DType::I8 => copy_whole::<S, i8>(from, out),
        DType::I16 => copy_whole::<S, i16>(from, out),
        DType::I32 => copy_whole::<S, i32>(from, out),
        DType::I64 => copy_whole::<S, i64>(from, out),
        _ => copy_float::<S>(from, out, dtype),
    }
}

pub(super) fn copy_whole<S: Cast<T>, T: bytemuck::Pod>(from: Stored<'_>, out: &mut [u8]) -> Copied {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide<S: Cast<T>, T: bytemuck::Pod>(from: Stored<'_>, out: &mut [u8]) -> Copied {
            copy_whole_here::<S, T>(from, out)
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide::<S, T>(from, out) };
    }
    copy_whole_here::<S, T>(from, out)
}

// Compiled twice: for any processor, and for those with wider registers, where widening runs three times as fast.
#[inline(always)]
fn copy_whole_here<S: Cast<T>, T: bytemuck::Pod>(from: Stored<'_>, out: &mut [u8]) -> Copied {
    let out: &mut [T] = bytemuck::cast_slice_mut(out);
    let fits = match (from.decode, from.big_endian) {
        (Decode::Plain, false) => {
            each(from.bytes, out, S::little, |s: S| (s.cast(), !S::MAY_NOT_FIT || s.fits()))
        }
        (Decode::Plain, true) => {
            each(from.bytes, out, S::big, |s: S| (s.cast(), !S::MAY_NOT_FIT || s.fits()))
        }
        (Decode::Shift { bits }, big_endian) => {
            let convert = |s: S| {
                let s = s.shift(bits);
                (s.cast(), !S::MAY_NOT_FIT || s.fits())
            };
            // Two loops: one over a pointer to a function is not a vector loop.
            if big_endian {
                each(from.bytes, out, S::big, convert)
            } else {
                each(from.bytes, out, S::little, convert)
            }
        }
        (Decode::Single | Decode::Literal | Decode::Affine { .. } | Decode::Scaled { .. }, _) => {
            return Copied::Fraction;
        }
    };
    if fits { Copied::Yes } else { Copied::TooLarge }
}

pub(super) fn copy_float<S: Number>(from: Stored<'_>, out: &mut [u8], dtype: DType) -> Copied {
    match dtype {
        DType::F32 => {
            let out: &mut [f32] = bytemuck::cast_slice_mut(out);
            to_float(from, out, S::to_f32, |x: f32| x, |x: f64| x as f32);
            kept::<S, f32>(from, out)
        }
        DType::F64 => {
            let out: &mut [f64] = bytemuck::cast_slice_mut(out);
            to_float(from, out, S::to_f64, f64::from, |x: f64| x);
            kept::<S, f64>(from, out)
        }
        DType::F16 => {
            let out: &mut [f16] = bytemuck::cast_slice_mut(out);
            to_float(from, out, |s: S| f16::from_f32(s.to_f32()), f16::from_f32, f16::from_f64);
            kept::<S, f16>(from, out)
        }
        DType::Bf16 => {
            let out: &mut [bf16] = bytemuck::cast_slice_mut(out);
            to_float(from, out, |s: S| bf16::from_f32(s.to_f32()), bf16::from_f32, bf16::from_f64);
            kept::<S, bf16>(from, out)
        }
        _ => Copied::Fraction,
    }
}

// Whether whole numbers are the same ones still, and others finite still. What a scale makes of a number is not asked.
fn kept<S: Number, T: Float>(from: Stored<'_>, out: &[T]) -> Copied {
    let bits = match from.decode {
        Decode::Plain => 0,
        Decode::Shift { bits } => bits,
        Decode::Single | Decode::Literal => return whole_ones_kept::<S, T>(from, out),
        Decode::Scaled { .. } | Decode::Affine { .. } => return Copied::Yes,
    };
    let looks_kept = if S::WHOLE {
        S::LARGEST <= T::EXACT || !any(out, T::is_far)
    } else {
        S::LARGEST <= T::MOST || !any(out, T::is_infinite)
    };
    if looks_kept {
        return Copied::Yes;
    }
    let read = if from.big_endian { S::big } else { S::little };
    for (at, (x, stored)) in out.iter().zip(from.bytes.chunks_exact(S::SIZE)).enumerate() {
        let (result, stored) = (x.wide(), read(stored).shift(bits));
        if !stored.is_kept_as(result) {
            return stored
                .whole()
                .map_or(Copied::TooLarge, |stored| Copied::Inexact(Rounded { at, stored, result }));
        }
    }
    Copied::Yes
}

// Float64 has all whole numbers below.
const MOST_WHOLE: f64 = (1u64 << 53) as f64;

// Whether numbers that were written as text, whole or not, are kept.
fn whole_ones_kept<S: Number, T: Float>(from: Stored<'_>, out: &[T]) -> Copied {
    if !any(out, T::is_far) {
        return Copied::Yes;
    }
    let read = if from.big_endian { S::big } else { S::little };
    for (at, (x, stored)) in out.iter().zip(from.bytes.chunks_exact(S::SIZE)).enumerate() {
        let (result, stored) = (x.wide(), read(stored).to_f64());
        if stored.fract() == 0.0 && stored.abs() < MOST_WHOLE && result != stored {
            return Copied::Inexact(Rounded { at, stored: stored as i128, result });
        }
    }
    Copied::Yes
}

// A loop over vectors, as `Iterator::any` is not, in words as wide as a float: the row is in the processor's cache, and
// what is looked for is rare.
fn any<T: Copy>(out: &[T], is: impl Fn(T) -> bool) -> bool {
    out.iter().fold(0, |any, x| any | u32::from(is(*x))) != 0
}

fn to_float<S: Number, T: Copy>(
    from: Stored<'_>,
    out: &mut [T],
    plain: impl Fn(S) -> T + Copy,
    narrow: impl Fn(f32) -> T + Copy,
    round: impl Fn(f64) -> T + Copy,
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide<S: Number, T: Copy>(
            from: Stored<'_>,
            out: &mut [T],
            plain: impl Fn(S) -> T + Copy,
            narrow: impl Fn(f32) -> T + Copy,
            round: impl Fn(f64) -> T + Copy,
        ) {
            to_float_here(from, out, plain, narrow, round);
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide(from, out, plain, narrow, round) };
    }
    to_float_here(from, out, plain, narrow, round);
}

#[inline(always)]
fn to_float_here<S: Number, T: Copy>(
    from: Stored<'_>,
    out: &mut [T],
    plain: impl Fn(S) -> T + Copy,
    narrow: impl Fn(f32) -> T + Copy,
    round: impl Fn(f64) -> T + Copy,
) {
    match from.decode {
        Decode::Plain if !from.big_endian => each(from.bytes, out, S::little, |s| (plain(s), true)),
        Decode::Plain => each(from.bytes, out, S::big, |s| (plain(s), true)),
        Decode::Shift { bits } if !from.big_endian => {
            each(from.bytes, out, S::little, |s: S| (plain(s.shift(bits)), true))
        }
        Decode::Shift { bits } => each(from.bytes, out, S::big, |s: S| (plain(s.shift(bits)), true)),
        Decode::Single | Decode::Literal if !from.big_endian => {
            each(from.bytes, out, S::little, |s: S| (narrow(s.to_f32()), true))
        }
        Decode::Single | Decode::Literal => each(from.bytes, out, S::big, |s: S| (narrow(s.to_f32()), true)),
        Decode::Scaled { mul, add, sub, div } => {
            let scaled = |s: S| (round(((s.to_f64() * mul + add) - sub) / div), true);
            if from.big_endian {
                each(from.bytes, out, S::big, scaled)
            } else {
                each(from.bytes, out, S::little, scaled)
            }
        }
        // float32 throughout: the scalers' published definition.
        Decode::Affine { mul, add, sub, div } => {
            let affine = |s: S| (narrow(((s.to_f32() * mul + add) - sub) / div), true);
            if from.big_endian {
                each(from.bytes, out, S::big, affine)
            } else {
                each(from.bytes, out, S::little, affine)
            }
        }
    };
}

// One loop for all: the compiler makes a vector loop of each use. `fits` is folded without a branch for the same reason.
#[inline(always)]
fn each<S: Number, T: Copy>(
    bytes: &[u8],
    out: &mut [T],
    read: impl Fn(&[u8]) -> S,
    convert: impl Fn(S) -> (T, bool),
) -> bool {
    let mut all_fit = true;
    for (place, chunk) in out.iter_mut().zip(bytes.chunks_exact(S::SIZE)) {
        let (value, fits) = convert(read(chunk));
        *place = value;
        all_fit &= fits;
    }
    all_fit
}
