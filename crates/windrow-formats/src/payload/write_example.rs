//! A row as a tf.train.Example: every value a list, of int64, of float32 or of bytes.

use windrow_core::values::copy_values;
use windrow_core::{Array, DType, Decode, Element, Error, Result, Row, Value, Values};

use crate::protobuf::{put_bytes, put_varint};

/// Numbers of the fields of a Feature.
const BYTES: u64 = 1;
const FLOATS: u64 = 2;
const WHOLE: u64 = 3;

/// Appends the example of a row.
///
/// # Errors
/// `Config` naming the column whose value no feature holds.
pub(super) fn write(row: &Row, out: &mut Vec<u8>) -> Result<()> {
    let mut features = Vec::new();
    for (name, value) in row.iter() {
        let mut entry = Vec::new();
        put_bytes(1, name.as_bytes(), &mut entry);
        put_bytes(2, &feature(value).map_err(|e| e.field(name))?, &mut entry);
        put_bytes(1, &entry, &mut features);
    }
    put_bytes(1, &features, out);
    Ok(())
}

fn misfit(value: &Value) -> Error {
    Error::config(format!("{}, which a feature of tf.train.Example does not hold", value.shown()))
        .hint("it holds flat lists of int64, float32 or bytes: leave the column out, or write another format")
}

fn feature(value: &Value) -> Result<Vec<u8>> {
    let (kind, list) = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(array) => numbers(array).map_err(|_| misfit(value))?,
        Value::List(values) => list(values).ok_or_else(|| misfit(value))?,
        one => list(std::slice::from_ref(one)).ok_or_else(|| misfit(value))?,
    };
    let mut feature = Vec::new();
    put_bytes(kind, &list, &mut feature);
    Ok(feature)
}

// The kind of a list of values, and the list.
fn list(values: &[Value]) -> Option<(u64, Vec<u8>)> {
    let mut out = Vec::new();
    let texts: Option<Vec<&[u8]>> = values.iter().map(bytes).collect();
    if let Some(texts) = texts {
        texts.into_iter().for_each(|text| put_bytes(1, text, &mut out));
        return Some((BYTES, out));
    }
    let mut packed = Vec::new();
    let whole: Option<Vec<i64>> = values.iter().map(whole).collect();
    if let Some(whole) = whole {
        whole.into_iter().for_each(|number| put_varint(number as u64, &mut packed));
        put_bytes(1, &packed, &mut out);
        return Some((WHOLE, out));
    }
    for value in values {
        packed.extend(float(value)?.to_le_bytes());
    }
    put_bytes(1, &packed, &mut out);
    Some((FLOATS, out))
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Text(text) => Some(text.as_bytes()),
        _ => None,
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(value) => Some(i64::from(*value)),
        other => other.as_i64(),
    }
}

// Rounded to float32, as every writer of examples does; what is beyond it is not.
fn float(value: &Value) -> Option<f32> {
    let number = match value {
        Value::F64(number) => *number,
        other => other.as_i64()? as f64,
    };
    let float = number as f32;
    (float.is_finite() || !number.is_finite()).then_some(float)
}

fn numbers(array: &Array) -> Result<(u64, Vec<u8>)> {
    if array.shape.len() > 1 {
        return Err(Error::config("a shape, which is lost"));
    }
    let dtype = if array.dtype == DType::Bool { DType::U8 } else { array.dtype };
    let to = if dtype.is_integer() { DType::I64 } else { DType::F32 };
    let values =
        Values { bytes: &array.bytes, element: Element::little(dtype), channels: 1, decode: Decode::Plain };
    let mut numbers = vec![0; array.bytes.len() / dtype.size() * to.size()];
    copy_values(&values, 0, &mut numbers, to)?;
    let mut out = Vec::new();
    if to == DType::F32 {
        put_bytes(1, &numbers, &mut out);
        return Ok((FLOATS, out));
    }
    let mut packed = Vec::new();
    numbers.as_chunks().0.iter().for_each(|number| put_varint(u64::from_le_bytes(*number), &mut packed));
    put_bytes(1, &packed, &mut out);
    Ok((WHOLE, out))
}
