//! The one copy between the page cache and the batch: widening, byte order, flags, scaling, all in the same pass.

use half::{bf16, f16};

use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Decode, Span, Values};

/// Lays values `skip..skip + n` into `out`, where `n × channels` numbers of `dtype` fill `out` exactly.
///
/// Whole numbers go to whole numbers or floats, floats to floats. A whole number that the target cannot hold exactly is an
/// error, never another number: 257 is no bfloat16. Fractions are rounded, and one that would become infinite is an error.
///
/// # Errors
/// `Config` for a float that would become a whole number; `Corrupt` for a number that does not fit.
pub fn copy_values(values: &Values<'_>, skip: usize, out: &mut [u8], dtype: DType) -> Result<()> {
    if out.is_empty() {
        // Nothing is of any type.
        return Ok(());
    }
    let width = values.element.size();
    let count = out.len() / dtype.size();
    let bytes = &values.bytes[skip * values.channels * width..][..count * width];
    let from = Stored { bytes, big_endian: values.element.big_endian, decode: values.decode };
    let fits = match values.element.dtype {
        DType::Bool if dtype == DType::Bool => lay_whole::<u8, u8>(from, out),
        DType::Bool | DType::U8 => lay_from::<u8>(from, out, dtype),
        DType::U16 => lay_from::<u16>(from, out, dtype),
        DType::U32 => lay_from::<u32>(from, out, dtype),
        DType::U64 => lay_from::<u64>(from, out, dtype),
        DType::I8 => lay_from::<i8>(from, out, dtype),
        DType::I16 => lay_from::<i16>(from, out, dtype),
        DType::I32 => lay_from::<i32>(from, out, dtype),
        DType::I64 => lay_from::<i64>(from, out, dtype),
        DType::F16 => lay_float::<f16>(from, out, dtype),
        DType::Bf16 => lay_float::<bf16>(from, out, dtype),
        DType::F32 => lay_float::<f32>(from, out, dtype),
        DType::F64 => lay_float::<f64>(from, out, dtype),
    };
    match fits {
        Laid::Yes => Ok(()),
        Laid::TooLarge => Err(Error::corrupt(format!(
            "a {} number does not fit {dtype}, the dtype of the batch",
            values.element.dtype
        ))
        .hint("choose a wider dtype=")),
        Laid::Inexact { stored, laid } => Err(Error::corrupt(format!(
            "the number {stored} does not fit {dtype}, the dtype of the batch: it would become {laid}"
        ))
        .hint("leave dtype= out for int64, or choose one with more digits")),
        Laid::Fraction => {
            Err(Error::config(format!("{} values cannot be laid into {dtype}", values.element.dtype))
                .hint("choose dtype=\"float32\""))
        }
    }
}

/// The same of the values that stand in `span`, whose record an error names.
///
/// # Errors
/// As [`copy_values`].
pub(super) fn copy_span(
    span: &Span,
    values: &Values<'_>,
    skip: usize,
    out: &mut [u8],
    dtype: DType,
) -> Result<()> {
    copy_values(values, skip, out, dtype).map_err(|e| e.record(span.record))
}

/// Fills `out` with the number `value` of type `dtype`.
pub fn fill_value(out: &mut [u8], dtype: DType, value: i64) {
    fn each<const N: usize>(out: &mut [u8], number: [u8; N]) {
        if number == [0; N] {
            out.fill(0);
        } else {
            out.chunks_exact_mut(N).for_each(|place| place.copy_from_slice(&number));
        }
    }
    // Padding and end ids are checked against the dtype where they are chosen; `as` only narrows what fits.
    match dtype {
        DType::Bool => each(out, [u8::from(value != 0)]),
        DType::U8 => each(out, (value as u8).to_ne_bytes()),
        DType::I8 => each(out, (value as i8).to_ne_bytes()),
        DType::U16 => each(out, (value as u16).to_ne_bytes()),
        DType::I16 => each(out, (value as i16).to_ne_bytes()),
        DType::U32 => each(out, (value as u32).to_ne_bytes()),
        DType::I32 => each(out, (value as i32).to_ne_bytes()),
        DType::U64 => each(out, (value as u64).to_ne_bytes()),
        DType::I64 => each(out, value.to_ne_bytes()),
        DType::F16 => each(out, f16::from_f64(value as f64).to_ne_bytes()),
        DType::Bf16 => each(out, bf16::from_f64(value as f64).to_ne_bytes()),
        DType::F32 => each(out, (value as f32).to_ne_bytes()),
        DType::F64 => each(out, (value as f64).to_ne_bytes()),
    }
}

/// The same of a value that stands in no record: an end id.
///
/// # Errors
/// `Config` when `dtype` does not hold it exactly.
pub(super) fn lay_value(out: &mut [u8], dtype: DType, value: i64) -> Result<()> {
    if !holds(dtype, value) {
        return Err(Error::config(format!(
            "the id {value} between records does not fit {dtype}, the dtype of the batch"
        ))
        .hint("choose a wider dtype="));
    }
    fill_value(out, dtype, value);
    Ok(())
}

/// Whether a batch of `dtype` holds the whole number `value` and not one near it.
pub(super) fn holds(dtype: DType, value: i64) -> bool {
    let laid = match dtype {
        DType::F16 => f16::from_f64(value as f64).to_f64(),
        DType::Bf16 => bf16::from_f64(value as f64).to_f64(),
        DType::F32 => f64::from(value as f32),
        DType::F64 => value as f64,
        whole => return whole.holds(value),
    };
    value.is_kept_as(laid)
}

#[derive(Clone, Copy)]
struct Stored<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    decode: Decode,
}

enum Laid {
    Yes,
    TooLarge,
    Inexact { stored: i128, laid: f64 },
    Fraction,
}

/// A number as stored.
pub(super) trait Number: Copy {
    const SIZE: usize;
    /// Of a type without fractions.
    const WHOLE: bool;
    /// No number is further from 0, but for infinity.
    const LARGEST: f64;
    fn little(bytes: &[u8]) -> Self;
    fn big(bytes: &[u8]) -> Self;
    fn shift(self, bits: u32) -> Self;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    /// As a whole number, where it is of such a type.
    fn whole(self) -> Option<i128>;
    /// Whether the float it was laid as tells it: a whole number to its last digit, another one as finite.
    fn is_kept_as(self, laid: f64) -> bool {
        match self.whole() {
            // Infinity becomes the largest i128, which no number here is.
            Some(whole) => laid as i128 == whole,
            None => !laid.is_infinite() || !self.to_f64().is_finite(),
        }
    }
}

/// A number of a float type as it is laid.
trait Float: Copy {
    /// Whole numbers below this are all exact.
    const EXACT: f64;
    /// No number is further from 0, but for infinity.
    const MOST: f64;
    /// Whether it is `EXACT` or further from 0, and a number.
    fn is_far(self) -> bool;
    fn is_infinite(self) -> bool;
    fn wide(self) -> f64;
}

/// A whole number to a whole number.
pub(super) trait Cast<T>: Number {
    /// Some values of this type have no place in `T`.
    const MAY_NOT_FIT: bool;
    fn cast(self) -> T;
    fn fits(self) -> bool;
}

macro_rules! whole {
    ($($s:ty),*) => {$(
        impl Number for $s {
            const SIZE: usize = size_of::<$s>();
            const WHOLE: bool = true;
            // The magnitude of a signed type's smallest number is one more.
            const LARGEST: f64 = <$s>::MAX as f64 + 1.0;
            #[inline(always)]
            fn little(bytes: &[u8]) -> Self {
                let mut b = [0; size_of::<$s>()];
                b.copy_from_slice(bytes);
                <$s>::from_le_bytes(b)
            }
            #[inline(always)]
            fn big(bytes: &[u8]) -> Self { Self::little(bytes).swap_bytes() }
            #[inline(always)]
            fn shift(self, bits: u32) -> Self { self >> bits }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn whole(self) -> Option<i128> { Some(self.into()) }
        }
        whole!(@to $s: u8, u16, u32, u64, i8, i16, i32, i64);
    )*};
    (@to $s:ty: $($t:ty),*) => {$(
        impl Cast<$t> for $s {
            const MAY_NOT_FIT: bool =
                (<$s>::MIN as i128) < (<$t>::MIN as i128) || (<$s>::MAX as i128) > (<$t>::MAX as i128);
            #[inline(always)]
            fn cast(self) -> $t { self as $t }
            #[inline(always)]
            fn fits(self) -> bool { (self as $t) as i128 == self as i128 }
        }
    )*};
}
whole!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! float {
    ($($s:ty: $largest:expr, $f32:expr, $f64:expr);*) => {$(
        impl Number for $s {
            const SIZE: usize = size_of::<$s>();
            const WHOLE: bool = false;
            const LARGEST: f64 = $largest;
            #[inline(always)]
            fn little(bytes: &[u8]) -> Self {
                let mut b = [0; size_of::<$s>()];
                b.copy_from_slice(bytes);
                <$s>::from_le_bytes(b)
            }
            #[inline(always)]
            fn big(bytes: &[u8]) -> Self {
                let mut b = [0; size_of::<$s>()];
                b.copy_from_slice(bytes);
                <$s>::from_be_bytes(b)
            }
            #[inline(always)]
            fn shift(self, _bits: u32) -> Self { self }
            #[inline(always)]
            fn to_f32(self) -> f32 { $f32(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { $f64(self) }
            #[inline(always)]
            fn whole(self) -> Option<i128> { None }
        }
    )*};
}
float!(
    f16: LARGEST_F16, f16::to_f32, f16::to_f64;
    bf16: LARGEST_BF16, bf16::to_f32, bf16::to_f64;
    f32: f32::MAX as f64, |x| x, f64::from;
    f64: f64::MAX, |x| x as f32, |x| x
);

const LARGEST_F16: f64 = 65_504.0;
// 1.1111111₂ · 2¹²⁷
const LARGEST_BF16: f64 = (2.0 - 1.0 / 128.0) * (1u128 << 127) as f64;

// Of the short floats the bits are compared: widening each number takes longer than all else.
macro_rules! laid {
    ($($t:ty: $digits:expr, $largest:expr, $is_far:expr, $wide:expr);*) => {$(
        impl Float for $t {
            const EXACT: f64 = (1u64 << $digits) as f64;
            const MOST: f64 = $largest;
            #[inline(always)]
            fn is_far(self) -> bool { $is_far(self) }
            #[inline(always)]
            fn is_infinite(self) -> bool { <$t>::is_infinite(self) }
            #[inline(always)]
            fn wide(self) -> f64 { $wide(self) }
        }
    )*};
}
laid!(
    f16: 11, LARGEST_F16, |x: f16| (0x6800..=0x7c00).contains(&(x.to_bits() & 0x7fff)), f16::to_f64;
    bf16: 8, LARGEST_BF16, |x: bf16| (0x4380..=0x7f80).contains(&(x.to_bits() & 0x7fff)), bf16::to_f64;
    f32: 24, f32::MAX as f64, |x: f32| x.abs() >= <f32 as Float>::EXACT as f32, f64::from;
    f64: 53, f64::MAX, |x: f64| x.abs() >= <f64 as Float>::EXACT, |x| x
);

fn lay_from<S>(from: Stored<'_>, out: &mut [u8], dtype: DType) -> Laid
where
    S: Cast<u8> + Cast<u16> + Cast<u32> + Cast<u64> + Cast<i8> + Cast<i16> + Cast<i32> + Cast<i64>,
{
    match dtype {
        DType::U8 => lay_whole::<S, u8>(from, out),
        DType::U16 => lay_whole::<S, u16>(from, out),
        DType::U32 => lay_whole::<S, u32>(from, out),
        DType::U64 => lay_whole::<S, u64>(from, out),
        DType::I8 => lay_whole::<S, i8>(from, out),
        DType::I16 => lay_whole::<S, i16>(from, out),
        DType::I32 => lay_whole::<S, i32>(from, out),
        DType::I64 => lay_whole::<S, i64>(from, out),
        _ => lay_float::<S>(from, out, dtype),
    }
}

fn lay_whole<S: Cast<T>, T: bytemuck::Pod>(from: Stored<'_>, out: &mut [u8]) -> Laid {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide<S: Cast<T>, T: bytemuck::Pod>(from: Stored<'_>, out: &mut [u8]) -> Laid {
            lay_whole_here::<S, T>(from, out)
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide::<S, T>(from, out) };
    }
    lay_whole_here::<S, T>(from, out)
}

// Compiled twice: for any processor, and for those with wider registers, where widening runs three times as fast.
#[inline(always)]
fn lay_whole_here<S: Cast<T>, T: bytemuck::Pod>(from: Stored<'_>, out: &mut [u8]) -> Laid {
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
            // Two loops: one over a pointer to a function is no vector loop.
            match big_endian {
                false => each(from.bytes, out, S::little, convert),
                true => each(from.bytes, out, S::big, convert),
            }
        }
        (Decode::Single | Decode::Literal | Decode::Affine { .. } | Decode::Scaled { .. }, _) => {
            return Laid::Fraction;
        }
    };
    if fits { Laid::Yes } else { Laid::TooLarge }
}

fn lay_float<S: Number>(from: Stored<'_>, out: &mut [u8], dtype: DType) -> Laid {
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
        _ => Laid::Fraction,
    }
}

// Whether whole numbers are the same ones still, and others finite still. What a scale makes of a number is not asked.
fn kept<S: Number, T: Float>(from: Stored<'_>, out: &[T]) -> Laid {
    let bits = match from.decode {
        Decode::Plain => 0,
        Decode::Shift { bits } => bits,
        Decode::Single | Decode::Literal | Decode::Scaled { .. } | Decode::Affine { .. } => return Laid::Yes,
    };
    let looks_kept = match S::WHOLE {
        true => S::LARGEST <= T::EXACT || !any(out, T::is_far),
        false => S::LARGEST <= T::MOST || !any(out, T::is_infinite),
    };
    if looks_kept {
        return Laid::Yes;
    }
    let read = if from.big_endian { S::big } else { S::little };
    for (x, stored) in out.iter().zip(from.bytes.chunks_exact(S::SIZE)) {
        let (laid, stored) = (x.wide(), read(stored).shift(bits));
        if !stored.is_kept_as(laid) {
            return stored.whole().map_or(Laid::TooLarge, |stored| Laid::Inexact { stored, laid });
        }
    }
    Laid::Yes
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
            match from.big_endian {
                false => each(from.bytes, out, S::little, scaled),
                true => each(from.bytes, out, S::big, scaled),
            }
        }
        // float32 throughout: the scalers' published definition.
        Decode::Affine { mul, add, sub, div } => {
            let affine = |s: S| (narrow(((s.to_f32() * mul + add) - sub) / div), true);
            match from.big_endian {
                false => each(from.bytes, out, S::little, affine),
                true => each(from.bytes, out, S::big, affine),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Element;

    fn lay(bytes: &[u8], element: Element, decode: Decode, dtype: DType) -> Result<Vec<u8>> {
        let mut out = crate::array::Buffer::zeroed(bytes.len() / element.size() * dtype.size());
        let values = Values { bytes, element, channels: 1, decode };
        copy_values(&values, 0, out.bytes_mut(), dtype)?;
        Ok(out.bytes().to_vec())
    }

    fn i64s(bytes: &[u8]) -> Vec<i64> {
        bytes.chunks(8).map(|c| i64::from_le_bytes(c.try_into().unwrap())).collect()
    }

    fn f32s(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
    }

    #[test]
    fn u16_widens_to_i64_in_either_byte_order() {
        let little = lay(&[1, 0, 255, 255], Element::little(DType::U16), Decode::Plain, DType::I64).unwrap();
        assert_eq!(i64s(&little), [1, 65535]);
        let big = Element { dtype: DType::U16, big_endian: true };
        assert_eq!(i64s(&lay(&[0, 1, 255, 254], big, Decode::Plain, DType::I64).unwrap()), [1, 65534]);
    }

    #[test]
    fn a_number_that_does_not_fit_is_an_error() {
        let e = lay(&3_000_000_000u32.to_le_bytes(), Element::little(DType::U32), Decode::Plain, DType::I32)
            .unwrap_err();
        assert_eq!(e.kind(), crate::Kind::Corrupt);
        assert!(lay(&(-1i64).to_le_bytes(), Element::little(DType::I64), Decode::Plain, DType::U64).is_err());
        assert!(
            lay(&u64::MAX.to_le_bytes(), Element::little(DType::U64), Decode::Plain, DType::I64).is_err()
        );
        assert!(lay(&(-1i8).to_le_bytes(), Element::little(DType::I8), Decode::Plain, DType::U16).is_err());
    }

    #[test]
    fn floats_do_not_become_whole_numbers() {
        let e =
            lay(&1.5f32.to_le_bytes(), Element::little(DType::F32), Decode::Plain, DType::I64).unwrap_err();
        assert_eq!(e.kind(), crate::Kind::Config);
    }

    #[test]
    fn a_finite_number_does_not_become_infinite() {
        let too_large = [
            (70_000u32.to_le_bytes().to_vec(), DType::U32, DType::F16),
            (u16::MAX.to_le_bytes().to_vec(), DType::U16, DType::F16),
            (1e6f32.to_le_bytes().to_vec(), DType::F32, DType::F16),
            (f32::MAX.to_le_bytes().to_vec(), DType::F32, DType::Bf16),
            (1e300f64.to_le_bytes().to_vec(), DType::F64, DType::F32),
        ];
        for (bytes, stored, dtype) in too_large {
            let e = lay(&bytes, Element::little(stored), Decode::Plain, dtype).unwrap_err();
            assert_eq!(e.kind(), crate::Kind::Corrupt, "{stored} to {dtype}");
        }
        // What is infinite, or no number, stays so; what only loses digits is rounded.
        let stored: Vec<u8> = [f64::INFINITY, f64::NEG_INFINITY, 0.1].map(f64::to_le_bytes).concat();
        let laid = lay(&stored, Element::little(DType::F64), Decode::Plain, DType::F32).unwrap();
        assert_eq!(f32s(&laid), [f32::INFINITY, f32::NEG_INFINITY, 0.1]);
        let nan =
            lay(&f64::NAN.to_le_bytes(), Element::little(DType::F64), Decode::Plain, DType::F32).unwrap();
        assert!(f32s(&nan)[0].is_nan());
    }

    #[test]
    fn a_whole_number_is_laid_exactly_or_not_at_all() {
        // The first whole number that a float of so many digits does not have, and its even neighbour, which it has.
        let digits = [(DType::Bf16, 8), (DType::F16, 11), (DType::F32, 24), (DType::F64, 53)];
        for (dtype, digits) in digits {
            for stored in [DType::U16, DType::I16, DType::U32, DType::I32, DType::U64, DType::I64] {
                let bits = stored.size() * 8 - usize::from(stored.name().starts_with('i'));
                if bits <= digits {
                    continue;
                }
                for big_endian in [false, true] {
                    let element = Element { dtype: stored, big_endian };
                    let bytes = |numbers: &[u64]| -> Vec<u8> {
                        let of = |number: &u64| match big_endian {
                            false => number.to_le_bytes()[..stored.size()].to_vec(),
                            true => number.to_be_bytes()[8 - stored.size()..].to_vec(),
                        };
                        numbers.iter().flat_map(of).collect()
                    };
                    let odd = (1u64 << digits) + 1;
                    let even = bytes(&[0, odd - 2, odd - 1, 1 << (bits - 1)]);
                    let kept = lay(&even, element, Decode::Plain, dtype);
                    // 2^16 and more are no float16.
                    assert_eq!(kept.is_ok(), dtype != DType::F16 || bits <= 16, "{stored} to {dtype}");
                    for (numbers, decode) in
                        [([0, odd, 3], Decode::Plain), ([0, 2 * odd, 6], Decode::Shift { bits: 1 })]
                    {
                        let most = u64::MAX >> (64 - bits);
                        if numbers.iter().any(|number| *number > most) {
                            continue;
                        }
                        let e = lay(&bytes(&numbers), element, decode, dtype).unwrap_err();
                        assert_eq!(e.kind(), crate::Kind::Corrupt, "{stored} to {dtype}");
                        assert!(
                            e.message().contains(&format!("the number {odd} does not fit {dtype}")),
                            "{e}"
                        );
                    }
                }
            }
        }
        // The largest numbers of 64 bits, which rounding makes larger than any of them.
        for (bytes, stored) in [(u64::MAX.to_le_bytes(), DType::U64), (i64::MAX.to_le_bytes(), DType::I64)] {
            for dtype in [DType::F32, DType::F64] {
                assert!(lay(&bytes, Element::little(stored), Decode::Plain, dtype).is_err());
            }
        }
        let least = lay(&i64::MIN.to_le_bytes(), Element::little(DType::I64), Decode::Plain, DType::F32);
        assert_eq!(f32s(&least.unwrap()), [i64::MIN as f32]);
        for (dtype, exact, inexact) in [
            (DType::Bf16, 1 << 20, 257),
            (DType::F16, -2050, 70_000),
            (DType::F32, 1 << 40, -16_777_217),
            (DType::F64, i64::MIN, i64::MAX),
        ] {
            assert!(holds(dtype, exact) && !holds(dtype, inexact), "{dtype}");
        }
    }

    #[test]
    fn flags_are_shifted_away_and_scales_applied() {
        let shifted =
            lay(&[7, 0, 0, 0], Element::little(DType::U32), Decode::Shift { bits: 1 }, DType::I64).unwrap();
        assert_eq!(i64s(&shifted), [3]);
        let affine = Decode::Affine { mul: 2.0, add: 1.0, sub: 3.0, div: 4.0 };
        let scaled = lay(&[5u8, 9], Element::little(DType::U8), affine, DType::F32).unwrap();
        assert_eq!(f32s(&scaled), [2.0, 4.0]);
        let scaled = Decode::Scaled { mul: 2.0, add: 1e9, sub: 1e9 + 3.0, div: 4.0 };
        assert_eq!(
            f32s(&lay(&[5u8, 9], Element::little(DType::U8), scaled, DType::F32).unwrap()),
            [1.75, 3.75]
        );
        let single =
            lay(&16_777_217i64.to_le_bytes(), Element::little(DType::I64), Decode::Single, DType::F64);
        assert_eq!(single.unwrap(), 16_777_216f64.to_le_bytes());
        let half = f16::from_f32(1.5).to_le_bytes();
        assert_eq!(f32s(&lay(&half, Element::little(DType::F16), Decode::Plain, DType::F32).unwrap()), [1.5]);
    }

    #[test]
    fn fill_writes_the_number_in_every_dtype() {
        for dtype in [DType::U8, DType::I16, DType::U32, DType::I64] {
            let mut out = vec![9u8; 2 * dtype.size()];
            fill_value(&mut out, dtype, 5);
            assert_eq!(out[0], 5);
            assert_eq!(out[dtype.size()], 5);
            assert_eq!(out.iter().filter(|b| **b == 5).count(), 2);
        }
        let mut out = [0u8; 4];
        fill_value(&mut out, DType::F32, -1);
        assert_eq!(f32::from_ne_bytes(out), -1.0);
    }
}
