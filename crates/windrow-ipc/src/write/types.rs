//! What the columns of a stream hold, as the first rows say it.

use windrow_core::{Array, DType, Error, Result, Row, Value};

/// Types within types, at most: readers have limits of their own.
const MOST_DEPTH: usize = 48;

/// What the values of a column are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Nothing but nulls so far.
    Null,
    Bool,
    Number(DType),
    Text,
    Bytes,
    List(Box<Type>),
    /// Lists of this many values.
    Fixed(u64, Box<Type>),
    Struct(Vec<Field>),
}

/// A column, or a field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) of: Type,
}

/// The columns of rows like this one.
///
/// # Errors
/// `Config` naming the column that a column of Arrow does not hold.
pub(super) fn columns_of(row: &Row) -> Result<Vec<Field>> {
    let field = |(name, value): (&str, &Value)| {
        let of = Type::of(value, 0).map_err(|e| e.field(name))?;
        Ok(Field { name: name.to_string(), of })
    };
    row.iter().map(field).collect()
}

/// Adds the columns of another row: new ones behind those that are there.
///
/// # Errors
/// `Config` naming the column that holds values of two types.
pub(super) fn add_columns(columns: &mut Vec<Field>, others: Vec<Field>) -> Result<()> {
    for other in others {
        match columns.iter_mut().find(|known| known.name == other.name) {
            None => columns.push(other),
            Some(known) => {
                let (before, after) = (known.of.describe(), other.of.describe());
                let joined = std::mem::replace(&mut known.of, Type::Null).joined(other.of);
                known.of = joined.ok_or_else(|| {
                    Error::config(format!("a value of {after}; the rows before it hold {before}"))
                        .field(&other.name)
                        .hint("a column holds values of one type: leave it out, or write it as text")
                })?;
            }
        }
    }
    Ok(())
}

impl Type {
    fn of(value: &Value, depth: usize) -> Result<Type> {
        if depth > MOST_DEPTH {
            return Err(Error::config(format!("values nested more than {MOST_DEPTH} deep"))
                .hint("leave the column out, or write it as text"));
        }
        Ok(match value {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::I64(_) => Type::Number(DType::I64),
            Value::U64(_) => Type::Number(DType::U64),
            Value::F64(_) => Type::Number(DType::F64),
            Value::Text(_) => Type::Text,
            Value::Bytes(_) => Type::Bytes,
            Value::Big(digits) => {
                return Err(Error::config(format!("the whole number {digits}, which 64 bits do not hold"))
                    .hint("leave the column out, or write it as text"));
            }
            Value::Array(array) => of_array(array)?,
            Value::List(values) => {
                let mut of = Type::Null;
                for value in values {
                    let next = Type::of(value, depth + 1)?;
                    let (before, after) = (of.describe(), next.describe());
                    of = of.joined(next).ok_or_else(|| {
                        Error::config(format!("a list with {before} and {after}")).hint(
                            "a list holds values of one type: leave the column out, or write it as text",
                        )
                    })?;
                }
                Type::List(Box::new(of))
            }
            Value::Struct(row) => {
                let field = |(name, value): (&str, &Value)| {
                    Ok(Field { name: name.to_string(), of: Type::of(value, depth + 1)? })
                };
                Type::Struct(row.iter().map(field).collect::<Result<_>>()?)
            }
        })
    }

    /// The type of values of both.
    fn joined(self, other: Type) -> Option<Type> {
        use DType::{F64, I64, U64};
        Some(match (self, other) {
            (Type::Null, other) | (other, Type::Null) => other,
            // Whole numbers among floats: those that float64 holds exactly are written.
            (Type::Number(F64), Type::Number(I64 | U64)) | (Type::Number(I64 | U64), Type::Number(F64)) => {
                Type::Number(F64)
            }
            (Type::Number(U64), Type::Number(I64)) | (Type::Number(I64), Type::Number(U64)) => {
                Type::Number(U64)
            }
            (Type::List(a), Type::List(b)) => Type::List(Box::new(a.joined(*b)?)),
            (Type::Fixed(count, a), Type::Fixed(same, b)) if count == same => {
                Type::Fixed(count, Box::new(a.joined(*b)?))
            }
            (Type::Struct(mut fields), Type::Struct(others)) => {
                for other in others {
                    match fields.iter_mut().find(|known| known.name == other.name) {
                        None => fields.push(other),
                        Some(known) => {
                            known.of = std::mem::replace(&mut known.of, Type::Null).joined(other.of)?;
                        }
                    }
                }
                Type::Struct(fields)
            }
            (a, b) if a == b => a,
            _ => return None,
        })
    }

    /// Whether more rows may say more of it.
    pub(super) fn is_unknown(&self) -> bool {
        match self {
            Type::Null => true,
            Type::List(inner) | Type::Fixed(_, inner) => inner.is_unknown(),
            Type::Struct(fields) => fields.iter().any(|field| field.of.is_unknown()),
            _ => false,
        }
    }

    /// Whether it is a struct without fields, or holds one.
    pub(super) fn has_empty_struct(&self) -> bool {
        match self {
            Type::List(inner) | Type::Fixed(_, inner) => inner.has_empty_struct(),
            Type::Struct(fields) => {
                fields.is_empty() || fields.iter().any(|field| field.of.has_empty_struct())
            }
            _ => false,
        }
    }

    /// What a person would call it.
    pub(super) fn describe(&self) -> String {
        match self {
            Type::Null => "null".to_string(),
            Type::Bool => "bool".to_string(),
            Type::Number(dtype) => dtype.to_string(),
            Type::Text => "text".to_string(),
            Type::Bytes => "bytes".to_string(),
            Type::List(inner) => format!("lists of {}", inner.describe()),
            Type::Fixed(count, inner) => format!("lists of {count} {}", inner.describe()),
            Type::Struct(_) => "structs".to_string(),
        }
    }
}

// An array is a list along its first axis; the others have one length each.
fn of_array(array: &Array) -> Result<Type> {
    if array.dtype == DType::Bf16 {
        return Err(Error::config("an array of bfloat16, which Arrow does not have")
            .hint("write float32 instead: the values are the same"));
    }
    let mut of = Type::Number(array.dtype);
    if array.dtype == DType::Bool {
        of = Type::Bool;
    }
    let Some((_, inner)) = array.shape.split_first() else { return Ok(of) };
    for axis in inner.iter().rev() {
        if *axis == 0 || i32::try_from(*axis).is_err() || inner.len() > MOST_DEPTH {
            return Err(Error::config(format!("an array of shape {:?}", array.shape))
                .hint("each axis behind the first has 1 to 2147483647 values"));
        }
        of = Type::Fixed(*axis, Box::new(of));
    }
    Ok(Type::List(Box::new(of)))
}

/// The type of records of numbers.
pub(super) fn of_numbers(dtype: DType, channels: Option<usize>) -> Result<Type> {
    let shape = [Some(0), channels.map(|channels| channels as u64)].into_iter().flatten().collect();
    of_array(&Array { dtype, shape, bytes: Vec::new() })
}
