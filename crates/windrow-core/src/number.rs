//! A number by itself, of any dtype: read from its bytes, and written as another dtype.

use half::{bf16, f16};

use crate::array::{DType, Element};

/// A number of an array, or a single one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A float.
    Float(f64),
    /// One that int64 does not hold.
    Big(u64),
}

impl Number {
    /// Appends it as `dtype`, little-endian. A whole number must fit it, and a float needs one of floats.
    pub fn write(self, dtype: DType, out: &mut Vec<u8>) {
        match self {
            Number::Bool(flag) => write_whole(i64::from(flag), dtype, out),
            Number::Int(number) => write_whole(number, dtype, out),
            Number::Big(number) => write_whole(number.cast_signed(), dtype, out),
            Number::Float(number) => write_float(number, dtype, out),
        }
    }
}

fn write_whole(number: i64, dtype: DType, out: &mut Vec<u8>) {
    match dtype {
        // A copy of a size that the compiler knows.
        DType::I64 => out.extend_from_slice(&number.to_le_bytes()),
        // Rounded once, not by way of float64.
        DType::F32 => out.extend_from_slice(&(number as f32).to_le_bytes()),
        DType::F16 | DType::Bf16 | DType::F64 => write_float(number as f64, dtype, out),
        _ => out.extend_from_slice(&number.to_le_bytes()[..dtype.size()]),
    }
}

fn write_float(number: f64, dtype: DType, out: &mut Vec<u8>) {
    match dtype {
        DType::F16 => out.extend_from_slice(&f16::from_f64(number).to_le_bytes()),
        DType::Bf16 => out.extend_from_slice(&bf16::from_f64(number).to_le_bytes()),
        DType::F32 => out.extend_from_slice(&(number as f32).to_le_bytes()),
        _ => out.extend_from_slice(&number.to_le_bytes()),
    }
}

/// The number in these bytes; `None` when they are not as many as one takes.
pub fn number(bytes: &[u8], element: Element) -> Option<Number> {
    let size = element.size();
    let mut word = [0; 8];
    let place = word.get_mut(..size)?;
    if bytes.len() != size {
        return None;
    }
    place.copy_from_slice(bytes);
    if element.big_endian {
        place.reverse();
    }
    let wide = u64::from_le_bytes(word);
    Some(match element.dtype {
        DType::Bool => Number::Bool(wide != 0),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
            i64::try_from(wide).map_or(Number::Big(wide), Number::Int)
        }
        // Cut to their own width, then widened with their sign.
        DType::I8 => Number::Int(i64::from(wide as i8)),
        DType::I16 => Number::Int(i64::from(wide as i16)),
        DType::I32 => Number::Int(i64::from(wide as i32)),
        DType::I64 => Number::Int(wide as i64),
        DType::F16 => Number::Float(f16::from_bits(wide as u16).into()),
        DType::Bf16 => Number::Float(bf16::from_bits(wide as u16).into()),
        DType::F32 => Number::Float(f32::from_bits(wide as u32).into()),
        DType::F64 => Number::Float(f64::from_bits(wide)),
    })
}

/// The dtype that numbers of both become: the wider one; floats where either is.
pub fn common(a: DType, b: DType) -> DType {
    use DType::{Bf16, Bool, F16, F32, I16, I32, I64};
    match (a, b) {
        _ if a == b => a,
        (Bool, other) | (other, Bool) => other,
        (F16, Bf16) | (Bf16, F16) => F32,
        _ if a.is_integer() != b.is_integer() => {
            if a.is_integer() {
                b
            } else {
                a
            }
        }
        _ if !a.is_integer() || is_signed(a) == is_signed(b) => {
            if a.size() < b.size() {
                b
            } else {
                a
            }
        }
        _ => {
            let (signed, unsigned) = if is_signed(a) { (a, b) } else { (b, a) };
            match signed.size().max(2 * unsigned.size()) {
                2 => I16,
                4 => I32,
                _ => I64,
            }
        }
    }
}

fn is_signed(whole: DType) -> bool {
    matches!(whole, DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [DType; 13] = [
        DType::Bool,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::Bf16,
        DType::F32,
        DType::F64,
    ];

    #[test]
    fn a_number_is_read_as_it_was_written() {
        for dtype in ALL {
            let given = match dtype {
                DType::Bool => Number::Bool(true),
                _ if dtype.is_integer() => Number::Int(if is_signed(dtype) { -5 } else { 200 }),
                _ => Number::Float(-1.5),
            };
            let mut bytes = Vec::new();
            given.write(dtype, &mut bytes);
            assert_eq!(number(&bytes, Element::little(dtype)), Some(given), "{dtype}");
        }
        let mut bytes = Vec::new();
        Number::Big(u64::MAX).write(DType::U64, &mut bytes);
        assert_eq!(number(&bytes, Element::little(DType::U64)), Some(Number::Big(u64::MAX)));
    }

    #[test]
    fn two_dtypes_have_one_in_common() {
        for (a, b, wanted) in [
            (DType::Bool, DType::U8, DType::U8),
            (DType::U8, DType::I8, DType::I16),
            (DType::U16, DType::I8, DType::I32),
            (DType::U8, DType::I64, DType::I64),
            (DType::U32, DType::I16, DType::I64),
            (DType::U8, DType::U32, DType::U32),
            (DType::I64, DType::F16, DType::F16),
            (DType::F16, DType::Bf16, DType::F32),
            (DType::F16, DType::F32, DType::F32),
            (DType::F32, DType::F64, DType::F64),
            (DType::U8, DType::F64, DType::F64),
        ] {
            assert_eq!((common(a, b), common(b, a)), (wanted, wanted), "{a} {b}");
        }
        for (a, b) in ALL.into_iter().flat_map(|a| ALL.map(|b| (a, b))) {
            assert_eq!(common(a, b), common(b, a));
            assert_eq!(common(common(a, b), a), common(a, b), "{a} {b}");
        }
    }
}
