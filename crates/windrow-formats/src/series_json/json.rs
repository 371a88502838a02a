//! A row as a JSON object on one line, its arrays as lists: what is read back is the same row.

use std::fmt::{Display, Write};

use serde_json::Value as Json;
use windrow_core::values::copy_values;
use windrow_core::{Array, Buffer, DType, Decode, Element, Error, Result, Row, Value, Values};

/// Lists of no number, one in the other: more would be longer than what is stored of them.
const MOST_EMPTY: u64 = 1 << 16;

/// Adds the object that a row is.
///
/// # Errors
/// `Config` naming the column of what JSON does not hold: bytes, NaN, the infinities.
pub(super) fn row(row: &Row, line: &mut String) -> Result<()> {
    object(row, line, |name, value, line| {
        add(value, line).map_err(|what| {
            Error::config(format!("column {name:?} holds {what}, which JSON does not hold"))
                .field(name)
                .hint("@columns@ leaves a column out")
        })
    })
}

fn object<E>(
    row: &Row,
    line: &mut String,
    mut add: impl FnMut(&str, &Value, &mut String) -> Result<(), E>,
) -> Result<(), E> {
    line.push('{');
    for (i, (name, value)) in row.iter().enumerate() {
        separate(i, line);
        word(Json::from(name), line);
        line.push_str(": ");
        add(name, value, line)?;
    }
    line.push('}');
    Ok(())
}

// What it is, where JSON does not hold it.
fn add(value: &Value, line: &mut String) -> Result<(), String> {
    match value {
        Value::Null => line.push_str("null"),
        Value::Bool(value) => word(value, line),
        Value::I64(number) => word(number, line),
        Value::U64(number) => word(number, line),
        Value::Big(digits) => line.push_str(digits),
        Value::F64(number) => fraction(*number, format_args!("{number:?}"), line)?,
        Value::Text(text) => word(Json::from(text.as_str()), line),
        Value::Bytes(_) => return Err("bytes".to_string()),
        Value::Array(of) => array(of, line)?,
        Value::List(values) => {
            line.push('[');
            for (i, value) in values.iter().enumerate() {
                separate(i, line);
                add(value, line)?;
            }
            line.push(']');
        }
        Value::Struct(inner) => object(inner, line, |_, value, line| add(value, line))?,
    }
    Ok(())
}

fn array(array: &Array, line: &mut String) -> Result<(), String> {
    let (bytes, shape) = (array.bytes.as_slice(), array.shape.as_slice());
    // Whole numbers and float64 keep all their digits; narrower floats are written with as few as name them.
    let wide = match array.dtype {
        DType::Bool => {
            return nested(bytes, shape, line, &|flag, line| {
                word(*flag != 0, line);
                Ok(())
            });
        }
        DType::U64 => DType::U64,
        dtype if dtype.is_integer() => DType::I64,
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let mut out = Buffer::zeroed(bytes.len() / array.dtype.size() * wide.size());
    let values = Values { bytes, element: Element::little(array.dtype), channels: 1, decode: Decode::Plain };
    copy_values(&values, 0, out.bytes_mut(), wide).map_err(|e| e.message().to_string())?;
    let numbers = out.bytes();
    match wide {
        DType::U64 => nested(bytemuck::cast_slice::<_, u64>(numbers), shape, line, &|x, line| {
            word(x, line);
            Ok(())
        }),
        DType::I64 => nested(bytemuck::cast_slice::<_, i64>(numbers), shape, line, &|x, line| {
            word(x, line);
            Ok(())
        }),
        DType::F64 => nested(bytemuck::cast_slice::<_, f64>(numbers), shape, line, &|x, line| {
            fraction(*x, format_args!("{x:?}"), line)
        }),
        _ => nested(bytemuck::cast_slice::<_, f32>(numbers), shape, line, &|x, line| {
            fraction(f64::from(*x), format_args!("{x:?}"), line)
        }),
    }
}

// Numbers in lists within lists, as their shape says; one number where it has no axis.
fn nested<T>(
    numbers: &[T],
    shape: &[u64],
    line: &mut String,
    word: &dyn Fn(&T, &mut String) -> Result<(), String>,
) -> Result<(), String> {
    let Some((len, inner)) = shape.split_first() else {
        return numbers.first().map_or(Ok(()), |number| word(number, line));
    };
    if numbers.is_empty() && *len > MOST_EMPTY {
        return Err(format!("an array of the shape {shape:?} without numbers"));
    }
    // There are as many numbers as the shape says.
    let size = inner.iter().product::<u64>() as usize;
    line.push('[');
    for i in 0..*len as usize {
        separate(i, line);
        nested(numbers.get(i * size..(i + 1) * size).unwrap_or_default(), inner, line, word)?;
    }
    line.push(']');
    Ok(())
}

fn fraction(x: f64, digits: impl Display, line: &mut String) -> Result<(), String> {
    if x.is_finite() {
        word(digits, line)
    } else {
        return Err(if x.is_nan() { "NaN" } else { "an infinity" }.to_string());
    }
    Ok(())
}

fn separate(i: usize, line: &mut String) {
    line.push_str(if i == 0 { "" } else { ", " });
}

fn word(word: impl Display, line: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(line, "{word}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: impl Into<Value>) -> Result<String> {
        let mut line = String::new();
        row(&Row::from_iter([("a", value.into())]), &mut line).map(|()| line)
    }

    fn array(dtype: DType, shape: &[u64], bytes: &[u8]) -> Value {
        Array { dtype, shape: shape.to_vec(), bytes: bytes.to_vec() }.into()
    }

    #[test]
    fn every_value_has_its_words() {
        let inner: Row = [("b\n", Value::from("é\"")), ("c", Value::Null)].into_iter().collect();
        for (value, expected) in [
            (Value::from(inner), r#"{"b\n": "é\"", "c": null}"#),
            (
                Value::List(vec![true.into(), (-1).into(), u64::MAX.into()]),
                "[true, -1, 18446744073709551615]",
            ),
            (Value::Big("-123456789012345678901".to_string()), "-123456789012345678901"),
            (1e16.into(), "1e16"),
            (0.1.into(), "0.1"),
            (2.0.into(), "2.0"),
            (array(DType::F32, &[2], &[0.1f32.to_le_bytes(), 3f32.to_le_bytes()].concat()), "[0.1, 3.0]"),
            (array(DType::U8, &[2, 2], &[1, 2, 3, 255]), "[[1, 2], [3, 255]]"),
            (array(DType::Bool, &[2], &[0, 1]), "[false, true]"),
            (array(DType::U64, &[], &[255; 8]), "18446744073709551615"),
            (array(DType::I64, &[0, 3], &[]), "[]"),
            (array(DType::I64, &[2, 0], &[]), "[[], []]"),
        ] {
            assert_eq!(line(value).unwrap(), format!("{{\"a\": {expected}}}"));
        }
    }

    #[test]
    fn what_json_does_not_hold_names_its_column() {
        for (value, what) in [
            (Value::from(vec![1u8]), "bytes"),
            (Value::List(vec![f64::NAN.into()]), "NaN"),
            (array(DType::F32, &[1], &f32::INFINITY.to_le_bytes()), "an infinity"),
            (array(DType::U8, &[u64::MAX, 0], &[]), "without numbers"),
        ] {
            let error = line(value).unwrap_err();
            assert!(error.message().contains(what) && error.message().contains("column \"a\""), "{error}");
            assert_eq!(error.place().field.as_deref(), Some("a"));
        }
    }
}
