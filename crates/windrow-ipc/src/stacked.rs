//! Lists of arrays as one array, as `datasets` keeps those of several axes.

use windrow_core::{Array, DType, Value};

/// Lists of lists of numbers as one array of this shape, where they have it.
pub(crate) fn stacked(values: &[Value], shape: &[u64]) -> Option<Array> {
    let (mut dtype, mut bytes) = (None, Vec::new());
    gather(values, shape, &mut dtype, &mut bytes)?;
    Some(Array { dtype: dtype?, shape: shape.to_vec(), bytes })
}

fn gather(values: &[Value], shape: &[u64], dtype: &mut Option<DType>, bytes: &mut Vec<u8>) -> Option<()> {
    let (first, rest) = shape.split_first()?;
    if values.len() as u64 != *first {
        return None;
    }
    values.iter().try_for_each(|value| match value {
        Value::List(inner) => gather(inner, rest, dtype, bytes),
        Value::Array(array) if array.shape == rest && *dtype.get_or_insert(array.dtype) == array.dtype => {
            bytes.extend_from_slice(&array.bytes);
            Some(())
        }
        _ => None,
    })
}
