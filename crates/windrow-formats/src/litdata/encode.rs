//! Values as the leaves of an item hold them.

use windrow_core::{Array, DType, Error, Result, Row, Value};

use super::leaf::{Code, code};

/// A leaf: the key of its value in the dict that an item is, and its kind.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// What a leaf holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Float,
    Bool,
    Text,
    Bytes,
    /// Arrays of one axis, without a header.
    Bare(DType),
    /// Arrays of several, of any dtype and shape.
    Array,
    /// Anything else that JSON can say.
    Json,
}

impl Kind {
    /// What the index calls it.
    pub(super) fn name(self) -> String {
        match self {
            Kind::Int => "int".to_string(),
            Kind::Float => "float".to_string(),
            Kind::Bool => "bool".to_string(),
            Kind::Text => "str".to_string(),
            Kind::Bytes => "bytes".to_string(),
            Kind::Bare(dtype) => match code(dtype) {
                Code::Torch(code) => format!("no_header_tensor:{code}"),
                Code::Numpy(code) => format!("no_header_numpy:{code}"),
            },
            Kind::Array => "numpy".to_string(),
            Kind::Json => "json".to_string(),
        }
    }

    /// The kind for values like this one.
    fn of(value: &Value) -> Kind {
        match value {
            Value::I64(_) => Kind::Int,
            Value::F64(_) => Kind::Float,
            Value::Bool(_) => Kind::Bool,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::Array(array) if array.shape.len() == 1 => Kind::Bare(array.dtype),
            Value::Array(_) => Kind::Array,
            Value::Null | Value::U64(_) | Value::Big(_) | Value::List(_) | Value::Struct(_) => Kind::Json,
        }
    }
}

/// The leaves of rows like this one.
pub(super) fn columns_of(row: &Row) -> Vec<Column> {
    row.iter().map(|(name, value)| Column { name: name.to_string(), kind: Kind::of(value) }).collect()
}

/// Appends a value of a leaf's kind.
///
/// # Errors
/// `Config` for a value of another one.
pub(super) fn encode(kind: Kind, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    /// Whole numbers up to here are floats of 64 bits without loss.
    const EXACT: u64 = 1 << 53;
    match (kind, value) {
        (Kind::Int, Value::I64(number)) => out.extend(number.to_le_bytes()),
        (Kind::Float, Value::F64(number)) => out.extend(number.to_le_bytes()),
        (Kind::Float, Value::I64(number)) if number.unsigned_abs() <= EXACT => {
            out.extend((*number as f64).to_le_bytes());
        }
        (Kind::Bool, Value::Bool(flag)) => out.push(u8::from(*flag)),
        (Kind::Text, Value::Text(text)) => out.extend(text.as_bytes()),
        (Kind::Bytes, Value::Bytes(bytes)) => out.extend(bytes),
        (Kind::Bare(dtype), Value::Array(array)) if array.dtype == dtype && array.shape.len() == 1 => {
            out.extend(&array.bytes);
        }
        (Kind::Array, Value::Array(array)) => put_array(array, out)?,
        (Kind::Json, value) => {
            let json = value.to_json().ok_or_else(|| misfit(kind, value))?;
            out.extend(json.to_string().as_bytes());
        }
        _ => return Err(misfit(kind, value)),
    }
    Ok(())
}

fn misfit(kind: Kind, value: &Value) -> Error {
    Error::config(format!("{}, where the first row has a leaf of the kind {}", value.shown(), kind.name()))
        .hint("all values of a key are of one kind; @to=arrow@ and @to=parquet@ also hold nulls")
}

// The code of the dtype, the number of axes, their lengths, the numbers.
fn put_array(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    let Code::Numpy(code) = super::leaf::numpy_code(array.dtype) else {
        return Err(Error::config("an array of bfloat16 with several axes, which LitData does not hold")
            .hint("write float32 instead: the values are the same"));
    };
    let axes =
        array.shape.iter().map(|axis| u32::try_from(*axis)).collect::<std::result::Result<Vec<_>, _>>();
    let axes = axes.map_err(|_| Error::config(format!("an array of the shape {:?}", array.shape)))?;
    out.extend(code.to_le_bytes());
    out.extend((axes.len() as u32).to_le_bytes());
    axes.iter().for_each(|axis| out.extend(axis.to_le_bytes()));
    out.extend(&array.bytes);
    Ok(())
}
