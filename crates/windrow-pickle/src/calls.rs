//! What each name that a pickle may use makes of what it is given, and what a state makes of that.

use std::borrow::Cow;

use windrow_core::number::{Number, number};
use windrow_core::{Element, Error, Result};

use super::arena::{Arena, Node};
use super::array::{Array, DTypeNode, Data, contiguous, dtype_of};
use super::names::Name;
use super::unit::Unit;
use super::value::Value;
use super::{tensor, time};

/// What a name makes of what it is given.
///
/// # Errors
/// `Corrupt` when that is not what numpy or torch write; `Unsupported` for what is not a name.
pub(super) fn reduce(arena: &mut Arena<'_, '_>, callee: Value, given: Value) -> Result<Value> {
    let Some(&Node::Name(name)) = arena.node(callee) else {
        return Err(arena.refused("a call of something that is not a known name"));
    };
    let Some(given) = arena.parts(given) else {
        return Err(arena.wrong("expected what a name is given"));
    };
    // Names take a few values; more would be copied for nothing.
    let given = given.get(..given.len().min(8)).unwrap_or_default().to_vec();
    match (name, given.as_slice()) {
        (Name::EmptyDict, []) => arena.make(Node::Dict(Vec::new())),
        (Name::EmptyList, []) => arena.make(Node::List(Vec::new())),
        (Name::Bytes, []) => arena.make(Node::Bytes(Cow::Borrowed(b""))),
        (Name::Bytes, [same]) if matches!(arena.node(*same), Some(Node::Bytes(_))) => Ok(*same),
        (Name::Bytes | Name::Encode, [text, encoding]) => encode(arena, *text, *encoding),
        (Name::NumpyReconstruct, [class, ..]) if is_name(arena, *class, Name::NumpyArray) => {
            arena.make(Node::Array(None))
        }
        (Name::NumpyDType, [text, ..]) => {
            let Some(text) = arena.text(*text) else {
                return Err(arena.wrong("expected a dtype's name"));
            };
            let dtype = dtype_of(text).ok_or_else(|| no_such_dtype(arena, text))?;
            arena.make(Node::DType(dtype))
        }
        (Name::NumpyFromBuffer, [data, dtype, shape, order]) => {
            let fortran = arena.text(*order) == Some("F");
            let array = numpy(arena, *data, *dtype, *shape, fortran)?;
            arena.make(Node::Array(Some(Box::new(array))))
        }
        (Name::NumpyScalar, [dtype, data]) if is_time(arena, *dtype) => {
            let (Some(&Node::DType(DTypeNode::Times(unit, element))), Some(Node::Bytes(bytes))) =
                (arena.node(*dtype), arena.node(*data))
            else {
                return Err(arena.wrong("expected the bytes of a time"));
            };
            let Some(Number::Int(number)) = number(bytes, element) else {
                return Err(arena.wrong(format!("a time of {} bytes", bytes.len())));
            };
            let text = unit.text(number);
            arena.budget.take(text.len() as u64)?;
            arena.make(Node::Text(Cow::Owned(text)))
        }
        (Name::Decimal, [text]) if arena.text(*text).is_some() => Ok(*text),
        (Name::Time(kind), given) => time::reduce(arena, kind, given),
        (Name::NumpyScalar, [dtype, data]) => {
            let (Some(Node::DType(DTypeNode::Plain(element))), Some(Node::Bytes(bytes))) =
                (arena.node(*dtype), arena.node(*data))
            else {
                return Err(arena.refused("a numpy scalar that is not a number"));
            };
            let Some(number) = number(bytes, *element) else {
                return Err(arena.wrong(format!("a {} of {} bytes", element.dtype, bytes.len())));
            };
            let dtype = element.dtype;
            arena.make(Node::Scalar(number, dtype))
        }
        (Name::TorchTensor, [storage, offset, shape, strides, ..]) => {
            let array = tensor::tensor(arena, *storage, *offset, *shape, *strides, None)?;
            arena.make(Node::Array(Some(Box::new(array))))
        }
        (Name::TorchTensorOf, [storage, offset, shape, strides, _, _, dtype, ..]) => {
            let Some(&Node::Name(Name::TorchDType(dtype))) = arena.node(*dtype) else {
                return Err(arena.refused("a tensor of a dtype that is not known"));
            };
            let of = Some(Element::little(dtype));
            let array = tensor::tensor(arena, *storage, *offset, *shape, *strides, of)?;
            arena.make(Node::Array(Some(Box::new(array))))
        }
        (Name::TorchParameter, [tensor, ..]) if matches!(arena.node(*tensor), Some(Node::Array(Some(_)))) => {
            Ok(*tensor)
        }
        (Name::TorchFromType, [make, class, of, ..])
            if is_name(arena, *class, Name::TorchClass)
                && (is_name(arena, *make, Name::TorchTensor)
                    || is_name(arena, *make, Name::TorchTensorOf)) =>
        {
            reduce(arena, *make, *of)
        }
        (Name::TorchParameter | Name::TorchFromType, _) => {
            Err(arena.refused("a parameter or a class of torch's over something that is not a tensor"))
        }
        _ => Err(arena.wrong(format!("{name:?} is given {} values that it does not take", given.len()))),
    }
}

/// Sets the state of what a name made.
///
/// # Errors
/// As [`reduce`].
pub(super) fn build(arena: &mut Arena<'_, '_>, object: Value, state: Value) -> Result<()> {
    let parts = arena.parts(state).map(|parts| parts.get(..parts.len().min(9)).unwrap_or_default().to_vec());
    match (arena.node(object), parts.as_deref()) {
        (Some(Node::DType(dtype)), Some([Value::Int(_), order, rest @ ..])) => {
            let dtype = *dtype;
            if rest.iter().take(3).any(|part| *part != Value::None) {
                return Err(arena.refused("an array of structures"));
            }
            let big_endian = match arena.text(*order) {
                Some(">") => true,
                Some("<" | "|" | "=") => false,
                _ => return Err(arena.wrong("expected a byte order")),
            };
            let ordered = |element| Element { big_endian, ..element };
            let dtype = match dtype {
                DTypeNode::Plain(element) => DTypeNode::Plain(ordered(element)),
                DTypeNode::Objects => dtype,
                DTypeNode::Times(unit, element) => {
                    let Some(unit) = rest.last().and_then(|last| unit_of(arena, unit, *last)) else {
                        return Err(arena.refused("times in a unit that is not known"));
                    };
                    DTypeNode::Times(unit, ordered(element))
                }
            };
            if let Some(node) = arena.node_mut(object) {
                *node = Node::DType(dtype);
            }
            Ok(())
        }
        // A state is set once: what was read of the array stays true.
        (Some(Node::Array(None)), Some([Value::Int(_), shape, dtype, Value::Bool(fortran), data])) => {
            let array = numpy(arena, *data, *dtype, *shape, *fortran)?;
            if let Some(node) = arena.node_mut(object) {
                *node = Node::Array(Some(Box::new(array)));
            }
            Ok(())
        }
        // What torch hangs on a model's dict: which version its modules have.
        (Some(Node::Dict(_)), _) if arena.in_torch => Ok(()),
        (Some(Node::DType(_) | Node::Array(_)), _) => Err(arena.wrong("a state that numpy does not write")),
        _ => Err(arena.refused("a state of an object")),
    }
}

fn is_time(arena: &Arena<'_, '_>, dtype: Value) -> bool {
    matches!(arena.node(dtype), Some(Node::DType(DTypeNode::Times(..))))
}

// What the last part of a state says of times: `(metadata, (letter, count, …))`.
fn unit_of(arena: &Arena<'_, '_>, unit: Unit, told: Value) -> Option<Unit> {
    let [_, unit_and_count] = arena.parts(told)? else { return None };
    let [letter, Value::Int(count), ..] = arena.parts(*unit_and_count)? else { return None };
    unit.with(arena.text(*letter)?, *count)
}

fn is_name(arena: &Arena<'_, '_>, value: Value, name: Name) -> bool {
    matches!(arena.node(value), Some(Node::Name(found)) if *found == name)
}

fn no_such_dtype(arena: &Arena<'_, '_>, name: &str) -> Error {
    let shown: String = name.chars().take(40).collect();
    arena.refused(&format!("numpy's dtype {shown:?}"))
}

/// Text back into the bytes it stands for.
fn encode<'a>(arena: &mut Arena<'a, '_>, text: Value, encoding: Value) -> Result<Value> {
    if !matches!(arena.text(encoding), Some("latin1" | "latin-1" | "iso-8859-1")) {
        return Err(arena.refused("bytes in an encoding other than latin1"));
    }
    let Some(Node::Text(text)) = arena.node(text) else {
        return Err(arena.wrong("expected a text to encode"));
    };
    // The same text may be named again and again: every copy is paid for, before it is made.
    let size = text.len() as u64;
    arena.budget.check(size)?;
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    arena.budget.take(size)?;
    let bytes = bytes.ok_or_else(|| arena.wrong("a character outside latin1"))?;
    arena.make(Node::Bytes(Cow::Owned(bytes)))
}

fn numpy(arena: &Arena<'_, '_>, data: Value, dtype: Value, shape: Value, fortran: bool) -> Result<Array> {
    let shape = arena.sizes(shape)?;
    let Some(Node::DType(dtype)) = arena.node(dtype) else { return Err(arena.wrong("expected a dtype")) };
    let count = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
    let (element, found) = match (dtype, arena.node(data)) {
        (DTypeNode::Plain(element) | DTypeNode::Times(_, element), Some(Node::Bytes(bytes))) => {
            (Some(*element), bytes.len() as u64)
        }
        (DTypeNode::Objects, Some(Node::List(values))) => (None, values.len() as u64),
        _ => return Err(arena.wrong("expected the values of an array")),
    };
    let wanted = count.and_then(|count| count.checked_mul(element.map_or(1, |e| e.size() as u64)));
    if wanted != Some(found) {
        let unit = if element.is_some() { "bytes" } else { "values" };
        return Err(
            arena.wrong(format!("an array of shape {shape:?} with {found} {unit}, which is not its size"))
        );
    }
    let strides = contiguous(&shape, fortran && element.is_some());
    Ok(Array {
        data: element.map_or(Data::Objects(data), |element| Data::Numbers(data, element)),
        offset: 0,
        shape,
        strides,
        times: match dtype {
            DTypeNode::Times(unit, _) => Some(*unit),
            _ => None,
        },
    })
}
