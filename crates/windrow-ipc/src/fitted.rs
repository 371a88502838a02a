//! Values of one type as those of a wider one, which another file has: whole numbers as floats, a field that is not there as null.

use windrow_core::number::{Number, number};
use windrow_core::{Array, DType, Element, Error, Result, Row, Value};

use crate::schema::{Kind, Node};
use crate::times;

/// Whether values of one type are read as those of another without a change.
pub(crate) fn is_read_as(own: &Node, to: &Node) -> bool {
    let (own, to) = (values_of(own), values_of(to));
    match (&own.kind, &to.kind) {
        // Single numbers have no width.
        (Kind::Number(a), Kind::Number(b)) => a.is_integer() == b.is_integer(),
        (Kind::Decimal(_, a), Kind::Decimal(_, b)) => a == b,
        (Kind::Number(_) | Kind::Decimal(..), _) => false,
        (Kind::Text(_) | Kind::View(true), to) => matches!(to, Kind::Text(_) | Kind::View(true)),
        (Kind::List(_) | Kind::FixedList(_), _) => own.shape == to.shape && is_listed_as(own, to),
        (Kind::Map | Kind::Struct, _) => {
            let mut pairs = own.children.iter().zip(&to.children);
            let is_struct = own.kind == Kind::Struct;
            own.children.len() == to.children.len()
                && pairs.all(|(a, b)| (!is_struct || a.name == b.name) && is_read_as(a, b))
        }
        _ => true,
    }
}

// The same of what is in lists, where numbers are arrays of their dtype.
fn is_listed_as(own: &Node, to: &Node) -> bool {
    let (own, to) = (values_of(&own.children[0]), values_of(&to.children[0]));
    match (&own.kind, &to.kind) {
        (Kind::Number(a), Kind::Number(b)) => a == b,
        (Kind::FixedList(a), Kind::FixedList(b)) => a == b && is_listed_as(own, to),
        (Kind::FixedList(_), _) | (_, Kind::FixedList(_)) => false,
        (a, b) => (*a == Kind::Null) == (*b == Kind::Null) && is_read_as(own, to),
    }
}

/// What of a type decides what values are, in words: the same where [`is_read_as`] is true both ways.
pub(crate) fn exact(node: &Node) -> String {
    let node = values_of(node);
    let named = |child: &Node| format!("{}: {}", child.name, exact(child));
    let fields =
        |names: &dyn Fn(&Node) -> String| node.children.iter().map(names).collect::<Vec<_>>().join(", ");
    match &node.kind {
        Kind::Number(dtype) if dtype.is_integer() => "integer".to_string(),
        Kind::Number(_) => "float".to_string(),
        Kind::Decimal(_, scale) => format!("decimal {scale}"),
        Kind::Text(_) | Kind::View(true) => "text".to_string(),
        Kind::Bytes(_) | Kind::View(false) | Kind::Fixed(_) => "bytes".to_string(),
        Kind::Duration(_) => "duration".to_string(),
        Kind::Timestamp(_, zoned) => format!("timestamp {zoned}"),
        Kind::List(_) | Kind::FixedList(_) => match &values_of(&node.children[0]).kind {
            Kind::Number(dtype) => format!("[{dtype}]"),
            Kind::FixedList(width) => format!("[{width} {}]", exact(&node.children[0])),
            _ => format!("[{}]", exact(&node.children[0])),
        },
        Kind::Struct => format!("{{{}}}", fields(&named)),
        Kind::Map => format!("({})", fields(&exact)),
        _ => node.holds(),
    }
}

// What the values of a dictionary are.
fn values_of(node: &Node) -> &Node {
    match &node.kind {
        Kind::Dictionary(_, _, values) => values_of(values),
        _ => node,
    }
}

/// A value of one type as one of a wider type.
///
/// # Errors
/// `Unsupported` for a whole number that a float does not hold, and for one that int64 does not hold.
pub(crate) fn fitted(value: Value, own: &Node, to: &Node) -> Result<Value> {
    let (own, to) = (values_of(own), values_of(to));
    Ok(match (&to.kind, value) {
        (_, Value::Null) => Value::Null,
        (Kind::Number(dtype), value) if !dtype.is_integer() => Value::F64(float(&value)?),
        (Kind::Decimal(_, scale), value) => Value::Text(decimal(&value, *scale)),
        (Kind::Bytes(_), Value::Text(text)) => Value::Bytes(text.into_bytes()),
        (Kind::List(_) | Kind::FixedList(_), value) => listed(value, own, to)?,
        (Kind::Map, Value::List(pairs)) => {
            let (own, to) = (&own.children[0].children, &to.children[0].children);
            let pair = |pair: Value| match pair {
                Value::List(pair) => {
                    let values = pair.into_iter().zip(own.iter().zip(to));
                    let values = values.map(|(value, (own, to))| fitted(value, own, to));
                    values.collect::<Result<_>>().map(Value::List)
                }
                other => Ok(other),
            };
            Value::List(pairs.into_iter().map(pair).collect::<Result<_>>()?)
        }
        (Kind::Struct, Value::Struct(mut row)) => {
            let field = |to: &Node| {
                let known = own.children.iter().find(|known| known.name == to.name);
                let value = match (row.remove(&to.name), known) {
                    (Some(value), Some(own)) => fitted(value, own, to)?,
                    _ => Value::Null,
                };
                Ok((to.name.clone(), value))
            };
            Value::Struct(to.children.iter().map(field).collect::<Result<Row>>()?)
        }
        (_, value) => value,
    })
}

// A list: an array where it is one of numbers, else values one by one.
fn listed(value: Value, own: &Node, to: &Node) -> Result<Value> {
    let (inner, to) = (values_of(&own.children[0]), values_of(&to.children[0]));
    match (value, leaf(to)) {
        (Value::Array(array), Some((dtype, _))) => recast(array, dtype).map(Value::Array),
        // An array of several axes, where elsewhere the lists in it are of several lengths.
        (Value::Array(array), None) => {
            let rows = rows_of(array).map(|row| fitted(Value::Array(row), inner, to));
            rows.collect::<Result<_>>().map(Value::List)
        }
        (Value::List(values), numbers) => {
            let values: Vec<Value> =
                values.into_iter().map(|value| fitted(value, inner, to)).collect::<Result<_>>()?;
            Ok(match numbers {
                Some((dtype, axes)) if values.is_empty() => {
                    Value::Array(Array { dtype, shape: [vec![0], axes].concat(), bytes: Vec::new() })
                }
                // As it is of a file that has floats: a null is NaN.
                Some((dtype, axes)) if axes.is_empty() && !dtype.is_integer() => {
                    Value::Array(with_nan(&values, dtype))
                }
                _ => Value::List(values),
            })
        }
        (other, _) => Ok(other),
    }
}

// The dtype of the numbers that elements of a list are, and the lengths of their axes.
fn leaf(element: &Node) -> Option<(DType, Vec<u64>)> {
    match element.kind {
        Kind::Number(dtype) => Some((dtype, Vec::new())),
        Kind::Bool | Kind::Bool8 => Some((DType::Bool, Vec::new())),
        Kind::FixedList(count) => {
            let (dtype, axes) = leaf(values_of(&element.children[0]))?;
            Some((dtype, [vec![count], axes].concat()))
        }
        _ => None,
    }
}

fn rows_of(array: Array) -> impl Iterator<Item = Array> {
    let Array { dtype, shape, bytes } = array;
    let count = shape.first().copied().unwrap_or(0) as usize;
    let inner = shape.get(1..).unwrap_or_default().to_vec();
    let size = bytes.len() / count.max(1);
    (0..count).map(move |row| Array {
        dtype,
        shape: inner.clone(),
        bytes: bytes[row * size..(row + 1) * size].to_vec(),
    })
}

/// Converts numbers to another dtype.
///
/// # Errors
/// `Unsupported` for one that it does not hold.
pub(crate) fn recast(array: Array, dtype: DType) -> Result<Array> {
    if array.dtype == dtype {
        return Ok(array);
    }
    let element = Element::little(array.dtype);
    let numbers = array.bytes.chunks_exact(array.dtype.size()).filter_map(|bytes| number(bytes, element));
    let mut bytes = Vec::with_capacity(array.bytes.len() / array.dtype.size() * dtype.size());
    for number in numbers {
        let is_held = match number {
            Number::Int(whole) if dtype == DType::F64 => is_exact(i128::from(whole)),
            Number::Big(whole) => dtype == DType::U64 || dtype == DType::F64 && is_exact(i128::from(whole)),
            // Narrower ones are held by every wider dtype.
            _ => true,
        };
        if !is_held {
            return Err(not_held(&shown(number), dtype));
        }
        number.write(dtype, &mut bytes);
    }
    Ok(Array { dtype, shape: array.shape, bytes })
}

fn shown(number: Number) -> String {
    match number {
        Number::Bool(flag) => flag.to_string(),
        Number::Int(whole) => whole.to_string(),
        Number::Float(float) => float.to_string(),
        Number::Big(whole) => whole.to_string(),
    }
}

fn with_nan(values: &[Value], dtype: DType) -> Array {
    let mut bytes = Vec::with_capacity(values.len() * dtype.size());
    for value in values {
        let float = if let Value::F64(float) = value { *float } else { f64::NAN };
        Number::Float(float).write(dtype, &mut bytes);
    }
    Array { dtype, shape: vec![values.len() as u64], bytes }
}

fn is_exact(whole: i128) -> bool {
    (whole as f64) as i128 == whole
}

fn not_held(number: &str, dtype: DType) -> Error {
    Error::unsupported(format!("{number} is no number of {dtype}, which the column is in other files"))
        .hint("write the files with one type, or leave the column out with @columns@")
}

// Whole numbers and decimals as a float.
fn float(value: &Value) -> Result<f64> {
    let whole = |whole: i128| {
        if is_exact(whole) { Ok(whole as f64) } else { Err(not_held(&whole.to_string(), DType::F64)) }
    };
    match value {
        Value::I64(number) => whole(i128::from(*number)),
        Value::U64(number) => whole(i128::from(*number)),
        Value::F64(number) => Ok(*number),
        // Digits of a decimal are a number.
        Value::Text(digits) => Ok(digits.parse().unwrap_or(f64::NAN)),
        _ => Ok(f64::NAN),
    }
}

// Whole numbers, and decimals of fewer digits behind the point, with this many of them.
fn decimal(value: &Value, scale: i32) -> String {
    match value {
        Value::Text(digits) => times::rescaled(digits, scale),
        other => times::rescaled(&other.shown().to_string(), scale),
    }
}
