//! Values as the leaves of an item hold them.

use windrow_core::{Array, DType, Error, Result, Value};

use super::leaf::{Code, code};

/// What to do with arrays of which some are null.
pub(super) const NO_NULL_ARRAYS: &str =
    "a leaf of arrays is never null: @to=arrow@ and @to=parquet@ hold such rows";
/// How a pickle of protocol 4 begins.
const PICKLE: [u8; 2] = [0x80, 4];

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
    /// Bytes or null.
    Pickle,
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
            Kind::Pickle => "pickle".to_string(),
        }
    }

    /// The kind for these values and null; `None` of arrays, which have none.
    pub(super) fn optional(self) -> Option<Kind> {
        match self {
            Kind::Int | Kind::Float | Kind::Bool | Kind::Text | Kind::Json => Some(Kind::Json),
            Kind::Bytes | Kind::Pickle => Some(Kind::Pickle),
            Kind::Bare(_) | Kind::Array => None,
        }
    }

    /// What litdata calls the type of its values.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Text => "str",
            Kind::Bytes | Kind::Pickle => "bytes",
            Kind::Bare(_) | Kind::Array | Kind::Json => "json",
        }
    }

    /// The kind for values like this one.
    pub(super) fn of(value: &Value) -> Kind {
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

/// Appends a value of a leaf's kind.
///
/// # Errors
/// `Config` for a value of another one.
pub(super) fn encode(kind: Kind, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    /// Whole numbers up to here are floats of 64 bits without loss.
    const EXACT: u64 = 1 << 53;
    const TAG_OF_FLOAT: u8 = 9;
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
        // JSON has no such number: tagged, as litdata packs one.
        (Kind::Json, Value::F64(number)) if !number.is_finite() => {
            out.push(TAG_OF_FLOAT);
            out.extend(number.to_le_bytes());
        }
        (Kind::Pickle, Value::Null) => out.extend([&PICKLE[..], b"N."].concat()),
        (Kind::Pickle, Value::Bytes(bytes)) => {
            let size = u32::try_from(bytes.len()).map_err(|_| misfit(kind, value))?;
            out.extend([&PICKLE[..], b"B", &size.to_le_bytes(), bytes, b"."].concat());
        }
        (Kind::Json, value) => {
            let json = value.to_json().ok_or_else(|| misfit(kind, value))?;
            out.extend(json.to_string().as_bytes());
        }
        _ => return Err(misfit(kind, value)),
    }
    Ok(())
}

/// The error of a value that a leaf of this kind does not hold.
pub(super) fn misfit(kind: Kind, value: &Value) -> Error {
    Error::config(format!(
        "{}, where the rows before it have a leaf of the kind {}",
        value.shown(),
        kind.name()
    ))
    .hint(match (value, kind) {
        (Value::Null, Kind::Bare(_) | Kind::Array) => NO_NULL_ARRAYS,
        _ => "all values of a key are of one kind, but for null: leave the key out, or write it as text",
    })
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
