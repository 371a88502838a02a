//! Arrays as numpy and torch pickle them: their dtype, shape and strides, and the numbers that are read through them.

use half::{bf16, f16};

use super::machine::Value;
use crate::array::{DType, Element};

/// A dtype of numpy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DTypeNode {
    /// Numbers.
    Plain(Element),
    /// Values of any kind.
    Objects,
}

/// Where the values of an array are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    /// Bytes, or a storage.
    Numbers(Value, Element),
    /// A list.
    Objects(Value),
}

/// An array whose reach was checked.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) data: Data,
    /// Values before its first one.
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    /// Values from one to the next, along each dimension.
    pub(super) strides: Vec<u64>,
}

/// A number of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::format) enum Number {
    Bool(bool),
    Int(i64),
    Float(f64),
    /// One that int64 does not hold.
    Big(u64),
}

/// The dtype that numpy calls so.
pub(super) fn dtype_of(name: &str) -> Option<DTypeNode> {
    let plain = |dtype| Some(DTypeNode::Plain(Element::little(dtype)));
    match name.trim_start_matches(['<', '|', '=']) {
        "b1" => plain(DType::Bool),
        "u1" => plain(DType::U8),
        "u2" => plain(DType::U16),
        "u4" => plain(DType::U32),
        "u8" => plain(DType::U64),
        "i1" => plain(DType::I8),
        "i2" => plain(DType::I16),
        "i4" => plain(DType::I32),
        "i8" => plain(DType::I64),
        "f2" => plain(DType::F16),
        "f4" => plain(DType::F32),
        "f8" => plain(DType::F64),
        "O" | "O4" | "O8" => Some(DTypeNode::Objects),
        _ => None,
    }
}

/// The strides of an array that lies without gaps: the last dimension first, or the first one in Fortran's order.
pub(super) fn contiguous(shape: &[u64], fortran: bool) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    let mut step = 1u64;
    for i in 0..shape.len() {
        let i = if fortran { i } else { shape.len() - 1 - i };
        strides[i] = step;
        // The product of a shape whose size was checked; with a 0 in it nothing is read.
        step = step.saturating_mul(shape[i]);
    }
    strides
}

/// The number in these bytes; `None` when they are not as many as one takes.
pub(in crate::format) fn number(bytes: &[u8], element: Element) -> Option<Number> {
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
