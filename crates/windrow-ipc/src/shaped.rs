//! Arrays as rows and records want them: in the shape that GluonTS keeps beside a flat column, turned, or as plain lists.

use windrow_core::number::{Number, number};
use windrow_core::{Array, Element, Error, Result, Value};

use crate::file::Table;

/// The numbers of a flat column in the shape beside it.
///
/// # Errors
/// `Corrupt` for a shape that they do not have; what reading says.
pub(crate) fn shaped(table: &Table, row: u64, column: usize, shape: usize) -> Result<Array> {
    let Array { dtype, shape: flat, bytes } = table.numbers(row, column)?;
    let name = &table.columns()[shape].name;
    let value = table.row(row, &[shape])?.remove(name).unwrap_or(Value::Null);
    let axes = match &value {
        Value::Array(axes) => axes.bytes.chunks_exact(axes.dtype.size()).map(whole).collect(),
        _ => None,
    };
    let axes: Option<Vec<u64>> = axes;
    let fits = |axes: &Vec<u64>| {
        axes.iter().try_fold(1u64, |all, axis| all.checked_mul(*axis)) == flat.first().copied()
    };
    match axes.filter(fits) {
        Some(shape) => Ok(Array { dtype, shape, bytes }),
        None => {
            Err(Error::corrupt(format!("a shape that {} numbers do not have", flat.first().unwrap_or(&0)))
                .at(table.stored().name())
                .record(row)
                .field(name.clone()))
        }
    }
}

/// `[C, T]` as `[T, C]`; one channel as `[T]`.
pub(crate) fn turned(array: Array) -> Array {
    let [channels, times] = array.shape[..] else { return array };
    let (width, rows) = (array.dtype.size(), channels as usize);
    let mut bytes = Vec::with_capacity(array.bytes.len());
    for time in 0..times as usize {
        for channel in 0..rows {
            let at = (channel * times as usize + time) * width;
            bytes.extend_from_slice(&array.bytes[at..at + width]);
        }
    }
    Array { shape: vec![times, channels], bytes, ..array }
}

/// Arrays of one axis as lists, wherever they are in a value.
pub(crate) fn listed(value: Value) -> Value {
    match value {
        Value::Array(Array { dtype, shape, bytes }) if shape.len() == 1 => {
            let element = Element::little(dtype);
            let numbers = bytes.chunks_exact(dtype.size()).filter_map(|bytes| number(bytes, element));
            Value::List(
                numbers
                    .map(|number| match number {
                        Number::Bool(value) => Value::Bool(value),
                        Number::Int(value) => Value::I64(value),
                        Number::Big(value) => Value::from(value),
                        Number::Float(value) => Value::F64(value),
                    })
                    .collect(),
            )
        }
        Value::List(values) => Value::List(values.into_iter().map(listed).collect()),
        Value::Struct(row) => {
            Value::Struct(row.into_iter().map(|(name, value)| (name, listed(value))).collect())
        }
        other => other,
    }
}

// A whole number of any width that is not negative; `None` for others.
fn whole(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    u64::try_from((i64::from_le_bytes(word) << unused) >> unused).ok()
}
