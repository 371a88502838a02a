//! Numbers as they are stored and as a batch takes them, and which of them fit which type.

use half::{bf16, f16};

/// A number as stored.
pub trait Number: Copy {
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
    /// Whether the float that it was cast to keeps it: a whole number to its last digit, another one as finite.
    fn is_kept_as(self, float: f64) -> bool {
        match self.whole() {
            // Infinity becomes the largest i128, which no number here is.
            Some(whole) => float as i128 == whole,
            None => !float.is_infinite() || !self.to_f64().is_finite(),
        }
    }
}

/// A number of a float type, as a batch has it.
pub(super) trait Float: Copy {
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
pub trait Cast<T>: Number {
    /// Some values of this type have no place in `T`.
    const MAY_NOT_FIT: bool;
    /// The number in `T`, cut to its bits where it does not fit.
    fn cast(self) -> T;
    /// Whether `T` holds it.
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
macro_rules! batch_float {
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
batch_float!(
    f16: 11, LARGEST_F16, |x: f16| (0x6800..=0x7c00).contains(&(x.to_bits() & 0x7fff)), f16::to_f64;
    bf16: 8, LARGEST_BF16, |x: bf16| (0x4380..=0x7f80).contains(&(x.to_bits() & 0x7fff)), bf16::to_f64;
    f32: 24, f32::MAX as f64, |x: f32| x.abs() >= <f32 as Float>::EXACT as f32, f64::from;
    f64: 53, f64::MAX, |x: f64| x.abs() >= <f64 as Float>::EXACT, |x| x
);
