//! Arrays as numpy and torch pickle them: their dtype, shape and strides.

use windrow_core::{DType, Element};

use super::unit::Unit;
use super::value::Value;

/// A dtype of numpy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DTypeNode {
    /// Numbers.
    Plain(Element),
    /// Values of any kind.
    Objects,
    /// Times, each a number of int64.
    Times(Unit, Element),
}

/// Where the values of an array are.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// Bytes, or a storage.
    Numbers(Value, Element),
    /// A list.
    Objects(Value),
}

/// An array whose reach was checked.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its values.
    pub data: Data,
    /// Values before its first one.
    pub offset: u64,
    /// Values along each dimension.
    pub shape: Vec<u64>,
    /// Values from one to the next, along each dimension.
    pub strides: Vec<u64>,
    /// What its numbers count, where they are times.
    pub times: Option<Unit>,
}

/// The dtype that numpy calls so.
pub fn dtype_of(name: &str) -> Option<DTypeNode> {
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
        name => Unit::of(name).map(|unit| DTypeNode::Times(unit, Element::little(DType::I64))),
    }
}

/// The strides of an array that lies without gaps: the last dimension first, or the first one in Fortran's order.
pub fn contiguous(shape: &[u64], fortran: bool) -> Vec<u64> {
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
