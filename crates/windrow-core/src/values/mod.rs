//! The one copy between the page cache and the batch: widening, byte order, flags, scaling, all in the same pass.

mod loops;
mod number;

use half::{bf16, f16};
use loops::{Copied, Stored, copy_float, copy_from, copy_whole};
pub use number::Cast;
use number::Number;

use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Decode, Span, Values};

/// Copies values `skip..skip + n` into `out`, where `n × channels` numbers of `dtype` fill `out` exactly.
///
/// Whole numbers go to whole numbers or floats, floats to floats. A whole number that the target cannot hold exactly is an
/// error, never another number: 257 is not bfloat16. Fractions are rounded, and one that would become infinite is an error.
/// Float64 has the digits of what is read as float32 but was stored with more.
///
/// # Errors
/// `Config` for a float that would become a whole number; `Corrupt` for a number that does not fit.
pub fn copy_values(values: &Values<'_>, skip: usize, out: &mut [u8], dtype: DType) -> Result<()> {
    match cast_values(values, skip, out, dtype)? {
        None => Ok(()),
        // Read as float32, which has been reported.
        Some(_) if dtype != DType::F64 && matches!(values.decode, Decode::Single | Decode::Literal) => Ok(()),
        Some(Rounded { stored, result, .. }) => Err(Error::corrupt(format!(
            "the number {stored} does not fit {dtype}, the dtype of the batch: it would turn into {result}"
        ))
        .hint("leave @as_dtype@ out for int64, or choose one with more digits")),
    }
}

/// A whole number that a float dtype does not hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounded {
    /// Its place among the numbers that were copied.
    pub at: usize,
    /// The number.
    pub stored: i128,
    /// What it was cast to.
    pub result: f64,
}

/// Copies values as numpy casts them: a whole number that a float dtype does not hold is the one next to it, or infinity. Gives the first
/// such number.
///
/// # Errors
/// `Config` for a float that would become a whole number; `Corrupt` for another number that does not fit.
pub fn cast_values(
    values: &Values<'_>,
    skip: usize,
    out: &mut [u8],
    dtype: DType,
) -> Result<Option<Rounded>> {
    if out.is_empty() {
        // Nothing is of any type.
        return Ok(None);
    }
    let width = values.element.size();
    let count = out.len() / dtype.size();
    let bytes = &values.bytes[skip * values.channels * width..][..count * width];
    let decode = match values.decode {
        Decode::Single | Decode::Literal if dtype == DType::F64 => Decode::Plain,
        decode => decode,
    };
    let from = Stored { bytes, big_endian: values.element.big_endian, decode };
    let fits = match values.element.dtype {
        DType::Bool if dtype == DType::Bool => copy_whole::<u8, u8>(from, out),
        DType::Bool | DType::U8 => copy_from::<u8>(from, out, dtype),
        DType::U16 => copy_from::<u16>(from, out, dtype),
        DType::U32 => copy_from::<u32>(from, out, dtype),
        DType::U64 => copy_from::<u64>(from, out, dtype),
        DType::I8 => copy_from::<i8>(from, out, dtype),
        DType::I16 => copy_from::<i16>(from, out, dtype),
        DType::I32 => copy_from::<i32>(from, out, dtype),
        DType::I64 => copy_from::<i64>(from, out, dtype),
        DType::F16 => copy_float::<f16>(from, out, dtype),
        DType::Bf16 => copy_float::<bf16>(from, out, dtype),
        DType::F32 => copy_float::<f32>(from, out, dtype),
        DType::F64 => copy_float::<f64>(from, out, dtype),
    };
    match fits {
        Copied::Yes => Ok(None),
        Copied::TooLarge => Err(Error::corrupt(format!(
            "a {} number does not fit {dtype}, the dtype of the batch",
            values.element.dtype
        ))
        .hint("choose a wider @as_dtype@")),
        Copied::Inexact(rounded) => Ok(Some(rounded)),
        Copied::Fraction => {
            Err(Error::config(format!("{} values cannot be stored as {dtype}", values.element.dtype))
                .hint("choose @as_dtype=float32@"))
        }
    }
}

/// Copies the values of `span`; an error names its record.
///
/// # Errors
/// As [`copy_values`].
pub fn copy_span(span: &Span, values: &Values<'_>, skip: usize, out: &mut [u8], dtype: DType) -> Result<()> {
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
    // Padding and EOS token are checked against the dtype where they are chosen; `as` only narrows what fits.
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

/// Writes one token ID that is in no record, such as an EOS token, as `dtype`.
///
/// # Errors
/// `Config` when `dtype` does not hold it exactly.
pub fn write_value(out: &mut [u8], dtype: DType, value: i64) -> Result<()> {
    if !holds(dtype, value) {
        return Err(Error::config(format!(
            "the token ID {value} between records does not fit {dtype}, the dtype of the batch"
        ))
        .hint("choose a wider @as_dtype@"));
    }
    fill_value(out, dtype, value);
    Ok(())
}

/// Whether a batch of `dtype` holds the whole number `value` and not one near it.
pub fn holds(dtype: DType, value: i64) -> bool {
    let float = match dtype {
        DType::F16 => f16::from_f64(value as f64).to_f64(),
        DType::Bf16 => bf16::from_f64(value as f64).to_f64(),
        DType::F32 => f64::from(value as f32),
        DType::F64 => value as f64,
        whole => return whole.holds(value),
    };
    value.is_kept_as(float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Element;

    fn copied(bytes: &[u8], element: Element, decode: Decode, dtype: DType) -> Result<Vec<u8>> {
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
        let little =
            copied(&[1, 0, 255, 255], Element::little(DType::U16), Decode::Plain, DType::I64).unwrap();
        assert_eq!(i64s(&little), [1, 65535]);
        let big = Element { dtype: DType::U16, big_endian: true };
        assert_eq!(i64s(&copied(&[0, 1, 255, 254], big, Decode::Plain, DType::I64).unwrap()), [1, 65534]);
    }

    #[test]
    fn a_number_that_does_not_fit_is_an_error() {
        let e =
            copied(&3_000_000_000u32.to_le_bytes(), Element::little(DType::U32), Decode::Plain, DType::I32)
                .unwrap_err();
        assert_eq!(e.kind(), crate::Kind::Corrupt);
        assert!(
            copied(&(-1i64).to_le_bytes(), Element::little(DType::I64), Decode::Plain, DType::U64).is_err()
        );
        assert!(
            copied(&u64::MAX.to_le_bytes(), Element::little(DType::U64), Decode::Plain, DType::I64).is_err()
        );
        assert!(
            copied(&(-1i8).to_le_bytes(), Element::little(DType::I8), Decode::Plain, DType::U16).is_err()
        );
    }

    #[test]
    fn floats_do_not_become_whole_numbers() {
        let e = copied(&1.5f32.to_le_bytes(), Element::little(DType::F32), Decode::Plain, DType::I64)
            .unwrap_err();
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
            let e = copied(&bytes, Element::little(stored), Decode::Plain, dtype).unwrap_err();
            assert_eq!(e.kind(), crate::Kind::Corrupt, "{stored} to {dtype}");
        }
        // What is infinite, or no number, stays so; what only loses digits is rounded.
        let stored: Vec<u8> = [f64::INFINITY, f64::NEG_INFINITY, 0.1].map(f64::to_le_bytes).concat();
        let narrowed = copied(&stored, Element::little(DType::F64), Decode::Plain, DType::F32).unwrap();
        assert_eq!(f32s(&narrowed), [f32::INFINITY, f32::NEG_INFINITY, 0.1]);
        let nan =
            copied(&f64::NAN.to_le_bytes(), Element::little(DType::F64), Decode::Plain, DType::F32).unwrap();
        assert!(f32s(&nan)[0].is_nan());
    }

    #[test]
    fn a_whole_number_is_copied_exactly_or_not_at_all() {
        // The first whole number that a float of `digits` digits does not have, and its even neighbour, which it has.
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
                        let of = |number: &u64| {
                            if big_endian {
                                number.to_be_bytes()[8 - stored.size()..].to_vec()
                            } else {
                                number.to_le_bytes()[..stored.size()].to_vec()
                            }
                        };
                        numbers.iter().flat_map(of).collect()
                    };
                    let odd = (1u64 << digits) + 1;
                    let even = bytes(&[0, odd - 2, odd - 1, 1 << (bits - 1)]);
                    let kept = copied(&even, element, Decode::Plain, dtype);
                    // 2^16 and more are not float16.
                    assert_eq!(kept.is_ok(), dtype != DType::F16 || bits <= 16, "{stored} to {dtype}");
                    for (numbers, decode) in
                        [([0, odd, 3], Decode::Plain), ([0, 2 * odd, 6], Decode::Shift { bits: 1 })]
                    {
                        let most = u64::MAX >> (64 - bits);
                        if numbers.iter().any(|number| *number > most) {
                            continue;
                        }
                        let e = copied(&bytes(&numbers), element, decode, dtype).unwrap_err();
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
                assert!(copied(&bytes, Element::little(stored), Decode::Plain, dtype).is_err());
            }
        }
        let least = copied(&i64::MIN.to_le_bytes(), Element::little(DType::I64), Decode::Plain, DType::F32);
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
            copied(&[7, 0, 0, 0], Element::little(DType::U32), Decode::Shift { bits: 1 }, DType::I64)
                .unwrap();
        assert_eq!(i64s(&shifted), [3]);
        let affine = Decode::Affine { mul: 2.0, add: 1.0, sub: 3.0, div: 4.0 };
        let scaled = copied(&[5u8, 9], Element::little(DType::U8), affine, DType::F32).unwrap();
        assert_eq!(f32s(&scaled), [2.0, 4.0]);
        let scaled = Decode::Scaled { mul: 2.0, add: 1e9, sub: 1e9 + 3.0, div: 4.0 };
        assert_eq!(
            f32s(&copied(&[5u8, 9], Element::little(DType::U8), scaled, DType::F32).unwrap()),
            [1.75, 3.75]
        );
        let single =
            copied(&16_777_217i64.to_le_bytes(), Element::little(DType::I64), Decode::Single, DType::F64);
        // All digits where they are asked for.
        assert_eq!(single.unwrap(), 16_777_217f64.to_le_bytes());
        let literal = 0.1f64.to_le_bytes();
        assert_eq!(
            copied(&literal, Element::little(DType::F64), Decode::Literal, DType::F64).unwrap(),
            literal
        );
        let half = f16::from_f32(1.5).to_le_bytes();
        assert_eq!(
            f32s(&copied(&half, Element::little(DType::F16), Decode::Plain, DType::F32).unwrap()),
            [1.5]
        );
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
