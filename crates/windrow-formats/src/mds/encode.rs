//! Values as the columns of a shard hold them.

use windrow_core::{Array, DType, Error, Result, Row, Value};

/// A column, by its name; MDS sorts them.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) encoding: String,
    pub(super) size: Option<u64>,
}

/// What the columns of this row hold; sorted by name, as every reader of MDS expects them.
///
/// # Errors
/// `Config` for a value that no encoding holds.
pub(super) fn columns_of(row: &Row) -> Result<Vec<Column>> {
    let mut columns = Vec::with_capacity(row.len());
    for (name, value) in row.iter() {
        let (encoding, size) = match value {
            Value::I64(_) => ("int".to_string(), Some(8)),
            Value::U64(_) => ("uint64".to_string(), Some(8)),
            Value::Big(_) => ("str_int".to_string(), None),
            Value::F64(_) => ("float64".to_string(), Some(8)),
            Value::Text(_) => ("str".to_string(), None),
            Value::Bytes(_) => ("bytes".to_string(), None),
            Value::Array(array) => (format!("ndarray:{}", array.dtype), None),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Struct(_) => ("json".to_string(), None),
        };
        if matches!(value, Value::Array(Array { dtype: DType::Bool | DType::Bf16, .. })) {
            return Err(Error::config(format!(
                "the column {name:?} holds {encoding}, which MDS does not know"
            ))
            .field(name)
            .hint("write uint8 or float32 instead"));
        }
        columns.push(Column { name: name.to_string(), encoding, size });
    }
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    if columns.is_empty() { Err(Error::config("a row without columns")) } else { Ok(columns) }
}

/// A value of a column's encoding, behind what is there.
///
/// # Errors
/// `Config` for a value of another type.
pub(super) fn encode(encoding: &str, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    let misfit = || {
        Error::config(format!("{}, where the first row decided for {encoding}", value.shown()))
            .hint("all values of a column are of one type; a column of JSON holds any")
    };
    match (encoding, value) {
        ("int", Value::I64(number)) => out.extend(number.to_le_bytes()),
        ("uint64", Value::U64(number)) => out.extend(number.to_le_bytes()),
        ("uint64", Value::I64(number)) => {
            out.extend(u64::try_from(*number).map_err(|_| misfit())?.to_le_bytes());
        }
        ("float64", Value::F64(number)) => out.extend(number.to_le_bytes()),
        // A whole number among fractions, where float64 holds it.
        ("float64", Value::I64(number)) if number.unsigned_abs() <= 1 << 53 => {
            out.extend((*number as f64).to_le_bytes())
        }
        ("str_int", Value::Big(digits)) => out.extend(digits.as_bytes()),
        ("str_int", Value::I64(number)) => out.extend(number.to_string().as_bytes()),
        ("str_int", Value::U64(number)) => out.extend(number.to_string().as_bytes()),
        ("str", Value::Text(text)) => out.extend(text.as_bytes()),
        ("bytes", Value::Bytes(bytes)) => out.extend(bytes),
        ("json", value) => {
            let json = value.to_json().ok_or_else(misfit)?;
            out.extend(json.to_string().as_bytes());
        }
        (encoding, Value::Array(array)) if encoding == format!("ndarray:{}", array.dtype) => {
            array_value(array, out)?;
        }
        _ => return Err(misfit()),
    }
    Ok(())
}

// The number of axes and the width of their lengths, the lengths, the numbers.
fn array_value(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    if array.shape.is_empty() || array.shape.len() > 63 || array.shape.contains(&0) {
        return Err(Error::config(format!(
            "an array of the shape {:?}, which MDS does not hold",
            array.shape
        )));
    }
    let longest = array.shape.iter().max().copied().unwrap_or(0);
    let code: u8 = match longest {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        0x1_0000..=0xffff_ffff => 2,
        _ => 3,
    };
    out.push((array.shape.len() as u8) << 2 | code);
    for axis in &array.shape {
        out.extend(&axis.to_le_bytes()[..1 << code]);
    }
    out.extend(&array.bytes);
    Ok(())
}
