//! The names that a pickle may use, and what each makes. The table is all there is: nothing is looked up elsewhere.

use std::borrow::Cow;

use super::array::{Array, DTypeNode, Data, contiguous, dtype_of};
use super::machine::{Machine, Node, Value};
use super::time::{self, Kind, Unit};
use super::torch;
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::format::number::{Number, number};

/// A name that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// An empty array, whose state follows.
    NumpyReconstruct,
    /// An array of bytes.
    NumpyFromBuffer,
    NumpyScalar,
    NumpyArray,
    NumpyDType,
    /// Bytes that are written as text.
    Encode,
    EmptyDict,
    EmptyList,
    Bytes,
    TorchTensor,
    /// A tensor of a dtype that no storage has: of bytes.
    TorchTensorOf,
    /// A class of tensors.
    TorchClass,
    /// A tensor of such a class, by what makes its tensor.
    TorchFromType,
    /// A tensor that is a parameter: the tensor.
    TorchParameter,
    TorchDType(DType),
    /// A storage in torch's own file format.
    TorchBytes,
    TorchStorage(DType),
    /// A number with a decimal point: its text.
    Decimal,
    Time(Kind),
}

const NAMES: &[(&str, &str, Name)] = &[
    ("numpy.core.multiarray", "_reconstruct", Name::NumpyReconstruct),
    ("numpy._core.multiarray", "_reconstruct", Name::NumpyReconstruct),
    ("numpy.core.multiarray", "scalar", Name::NumpyScalar),
    ("numpy._core.multiarray", "scalar", Name::NumpyScalar),
    ("numpy.core.numeric", "_frombuffer", Name::NumpyFromBuffer),
    ("numpy._core.numeric", "_frombuffer", Name::NumpyFromBuffer),
    ("numpy", "ndarray", Name::NumpyArray),
    ("numpy", "dtype", Name::NumpyDType),
    ("_codecs", "encode", Name::Encode),
    ("collections", "OrderedDict", Name::EmptyDict),
    ("builtins", "dict", Name::EmptyDict),
    ("__builtin__", "dict", Name::EmptyDict),
    ("builtins", "list", Name::EmptyList),
    ("__builtin__", "list", Name::EmptyList),
    ("builtins", "bytes", Name::Bytes),
    ("__builtin__", "bytes", Name::Bytes),
    ("builtins", "bytearray", Name::Bytes),
    ("__builtin__", "bytearray", Name::Bytes),
    ("torch._utils", "_rebuild_tensor_v2", Name::TorchTensor),
    ("torch._utils", "_rebuild_tensor_v3", Name::TorchTensorOf),
    ("torch._utils", "_rebuild_parameter", Name::TorchParameter),
    ("torch._utils", "_rebuild_parameter_with_state", Name::TorchParameter),
    ("torch._tensor", "_rebuild_from_type_v2", Name::TorchFromType),
    ("torch", "Tensor", Name::TorchClass),
    ("torch.nn.parameter", "Parameter", Name::TorchClass),
    ("torch.nn.parameter", "Buffer", Name::TorchClass),
    ("torch.storage", "_load_from_bytes", Name::TorchBytes),
    ("torch.storage", "UntypedStorage", Name::TorchStorage(DType::U8)),
    ("torch", "float32", Name::TorchDType(DType::F32)),
    ("torch", "float64", Name::TorchDType(DType::F64)),
    ("torch", "float16", Name::TorchDType(DType::F16)),
    ("torch", "bfloat16", Name::TorchDType(DType::Bf16)),
    ("torch", "uint8", Name::TorchDType(DType::U8)),
    ("torch", "uint16", Name::TorchDType(DType::U16)),
    ("torch", "uint32", Name::TorchDType(DType::U32)),
    ("torch", "uint64", Name::TorchDType(DType::U64)),
    ("torch", "int8", Name::TorchDType(DType::I8)),
    ("torch", "int16", Name::TorchDType(DType::I16)),
    ("torch", "int32", Name::TorchDType(DType::I32)),
    ("torch", "int64", Name::TorchDType(DType::I64)),
    ("torch", "bool", Name::TorchDType(DType::Bool)),
    ("torch", "FloatStorage", Name::TorchStorage(DType::F32)),
    ("torch", "DoubleStorage", Name::TorchStorage(DType::F64)),
    ("torch", "HalfStorage", Name::TorchStorage(DType::F16)),
    ("torch", "BFloat16Storage", Name::TorchStorage(DType::Bf16)),
    ("torch", "LongStorage", Name::TorchStorage(DType::I64)),
    ("torch", "IntStorage", Name::TorchStorage(DType::I32)),
    ("torch", "ShortStorage", Name::TorchStorage(DType::I16)),
    ("torch", "CharStorage", Name::TorchStorage(DType::I8)),
    ("torch", "ByteStorage", Name::TorchStorage(DType::U8)),
    ("torch", "BoolStorage", Name::TorchStorage(DType::Bool)),
    ("decimal", "Decimal", Name::Decimal),
    ("datetime", "datetime", Name::Time(Kind::DateTime)),
    ("datetime", "date", Name::Time(Kind::Date)),
    ("datetime", "time", Name::Time(Kind::Time)),
    ("datetime", "timedelta", Name::Time(Kind::Span)),
    ("datetime", "timezone", Name::Time(Kind::Offset)),
    ("zoneinfo", "ZoneInfo", Name::Time(Kind::ZoneClass)),
    ("builtins", "getattr", Name::Time(Kind::GetAttr)),
    ("__builtin__", "getattr", Name::Time(Kind::GetAttr)),
];

/// The name, where it is in the table.
pub(super) fn find(module: &str, name: &str) -> Option<Name> {
    NAMES.iter().find(|known| (known.0, known.1) == (module, name)).map(|known| known.2)
}

/// What a name makes of what it is given.
///
/// # Errors
/// `Corrupt` when that is not what numpy or torch write; `Unsupported` for what is no name.
pub(super) fn reduce(machine: &mut Machine<'_, '_>, callee: Value, given: Value) -> Result<Value> {
    let Some(&Node::Name(name)) = machine.node(callee) else {
        return Err(machine.refused("a call of something that is no known name"));
    };
    let Some(given) = machine.parts(given) else {
        return Err(machine.wrong("expected what a name is given"));
    };
    // Names take a few values; more would be copied for nothing.
    let given = given.get(..given.len().min(8)).unwrap_or_default().to_vec();
    match (name, given.as_slice()) {
        (Name::EmptyDict, []) => machine.make(Node::Dict(Vec::new())),
        (Name::EmptyList, []) => machine.make(Node::List(Vec::new())),
        (Name::Bytes, []) => machine.make(Node::Bytes(Cow::Borrowed(b""))),
        (Name::Bytes, [same]) if matches!(machine.node(*same), Some(Node::Bytes(_))) => Ok(*same),
        (Name::Bytes | Name::Encode, [text, encoding]) => encode(machine, *text, *encoding),
        (Name::NumpyReconstruct, [class, ..]) if is_name(machine, *class, Name::NumpyArray) => {
            machine.make(Node::Array(None))
        }
        (Name::NumpyDType, [text, ..]) => {
            let Some(text) = machine.text(*text) else {
                return Err(machine.wrong("expected a dtype's name"));
            };
            let dtype = dtype_of(text).ok_or_else(|| no_such_dtype(machine, text))?;
            machine.make(Node::DType(dtype))
        }
        (Name::NumpyFromBuffer, [data, dtype, shape, order]) => {
            let fortran = machine.text(*order) == Some("F");
            let array = numpy(machine, *data, *dtype, *shape, fortran)?;
            machine.make(Node::Array(Some(Box::new(array))))
        }
        (Name::NumpyScalar, [dtype, data]) if is_time(machine, *dtype) => {
            let (Some(&Node::DType(DTypeNode::Times(unit, element))), Some(Node::Bytes(bytes))) =
                (machine.node(*dtype), machine.node(*data))
            else {
                return Err(machine.wrong("expected the bytes of a time"));
            };
            let Some(Number::Int(number)) = number(bytes, element) else {
                return Err(machine.wrong(format!("a time of {} bytes", bytes.len())));
            };
            let text = unit.text(number);
            machine.budget.take(text.len() as u64)?;
            machine.make(Node::Text(Cow::Owned(text)))
        }
        (Name::Decimal, [text]) if machine.text(*text).is_some() => Ok(*text),
        (Name::Time(kind), given) => time::reduce(machine, kind, given),
        (Name::NumpyScalar, [dtype, data]) => {
            let (Some(Node::DType(DTypeNode::Plain(element))), Some(Node::Bytes(bytes))) =
                (machine.node(*dtype), machine.node(*data))
            else {
                return Err(machine.refused("a numpy scalar that is no number"));
            };
            let Some(number) = number(bytes, *element) else {
                return Err(machine.wrong(format!("a {} of {} bytes", element.dtype, bytes.len())));
            };
            let dtype = element.dtype;
            machine.make(Node::Scalar(number, dtype))
        }
        (Name::TorchBytes, [data]) => torch::storage(machine, *data),
        (Name::TorchTensor, [storage, offset, shape, strides, ..]) => {
            let array = torch::tensor(machine, *storage, *offset, *shape, *strides, None)?;
            machine.make(Node::Array(Some(Box::new(array))))
        }
        (Name::TorchTensorOf, [storage, offset, shape, strides, _, _, dtype, ..]) => {
            let Some(&Node::Name(Name::TorchDType(dtype))) = machine.node(*dtype) else {
                return Err(machine.refused("a tensor of a dtype that is not known"));
            };
            let of = Some(Element::little(dtype));
            let array = torch::tensor(machine, *storage, *offset, *shape, *strides, of)?;
            machine.make(Node::Array(Some(Box::new(array))))
        }
        (Name::TorchParameter, [tensor, ..])
            if matches!(machine.node(*tensor), Some(Node::Array(Some(_)))) =>
        {
            Ok(*tensor)
        }
        (Name::TorchFromType, [make, class, of, ..])
            if is_name(machine, *class, Name::TorchClass)
                && (is_name(machine, *make, Name::TorchTensor)
                    || is_name(machine, *make, Name::TorchTensorOf)) =>
        {
            reduce(machine, *make, *of)
        }
        (Name::TorchParameter | Name::TorchFromType, _) => {
            Err(machine.refused("a parameter or a class of torch's over something that is no tensor"))
        }
        _ => Err(machine.wrong(format!("{name:?} is given {} values that it does not take", given.len()))),
    }
}

/// Sets the state of what a name made.
///
/// # Errors
/// As [`reduce`].
pub(super) fn build(machine: &mut Machine<'_, '_>, object: Value, state: Value) -> Result<()> {
    let parts =
        machine.parts(state).map(|parts| parts.get(..parts.len().min(9)).unwrap_or_default().to_vec());
    match (machine.node(object), parts.as_deref()) {
        (Some(Node::DType(dtype)), Some([Value::Int(_), order, rest @ ..])) => {
            let dtype = *dtype;
            if rest.iter().take(3).any(|part| *part != Value::None) {
                return Err(machine.refused("an array of structures"));
            }
            let big_endian = match machine.text(*order) {
                Some(">") => true,
                Some("<" | "|" | "=") => false,
                _ => return Err(machine.wrong("expected a byte order")),
            };
            let ordered = |element| Element { big_endian, ..element };
            let dtype = match dtype {
                DTypeNode::Plain(element) => DTypeNode::Plain(ordered(element)),
                DTypeNode::Objects => dtype,
                DTypeNode::Times(unit, element) => {
                    let Some(unit) = rest.last().and_then(|last| unit_of(machine, unit, *last)) else {
                        return Err(machine.refused("times in a unit that is not known"));
                    };
                    DTypeNode::Times(unit, ordered(element))
                }
            };
            if let Some(node) = machine.node_mut(object) {
                *node = Node::DType(dtype);
            }
            Ok(())
        }
        // A state is set once: what was read of the array stays true.
        (Some(Node::Array(None)), Some([Value::Int(_), shape, dtype, Value::Bool(fortran), data])) => {
            let array = numpy(machine, *data, *dtype, *shape, *fortran)?;
            if let Some(node) = machine.node_mut(object) {
                *node = Node::Array(Some(Box::new(array)));
            }
            Ok(())
        }
        // What torch hangs on a model's dict: which version its modules have.
        (Some(Node::Dict(_)), _) if machine.in_torch => Ok(()),
        (Some(Node::DType(_) | Node::Array(_)), _) => Err(machine.wrong("a state that numpy does not write")),
        _ => Err(machine.refused("a state of an object")),
    }
}

fn is_time(machine: &Machine<'_, '_>, dtype: Value) -> bool {
    matches!(machine.node(dtype), Some(Node::DType(DTypeNode::Times(..))))
}

// What the last part of a state says of times: `(metadata, (letter, count, …))`.
fn unit_of(machine: &Machine<'_, '_>, unit: Unit, told: Value) -> Option<Unit> {
    let [_, unit_and_count] = machine.parts(told)? else { return None };
    let [letter, Value::Int(count), ..] = machine.parts(*unit_and_count)? else { return None };
    unit.with(machine.text(*letter)?, *count)
}

fn is_name(machine: &Machine<'_, '_>, value: Value, name: Name) -> bool {
    matches!(machine.node(value), Some(Node::Name(found)) if *found == name)
}

fn no_such_dtype(machine: &Machine<'_, '_>, name: &str) -> Error {
    let shown: String = name.chars().take(40).collect();
    machine.refused(&format!("numpy's dtype {shown:?}"))
}

/// Text back into the bytes it stands for.
fn encode<'a>(machine: &mut Machine<'a, '_>, text: Value, encoding: Value) -> Result<Value> {
    if !matches!(machine.text(encoding), Some("latin1" | "latin-1" | "iso-8859-1")) {
        return Err(machine.refused("bytes in an encoding other than latin1"));
    }
    let Some(Node::Text(text)) = machine.node(text) else {
        return Err(machine.wrong("expected a text to encode"));
    };
    // The same text may be named again and again: every copy is paid for, before it is made.
    let size = text.len() as u64;
    machine.budget.check(size)?;
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    machine.budget.take(size)?;
    let bytes = bytes.ok_or_else(|| machine.wrong("a character that latin1 has not"))?;
    machine.make(Node::Bytes(Cow::Owned(bytes)))
}

pub(super) fn sizes(machine: &Machine<'_, '_>, value: Value) -> Result<Vec<u64>> {
    let Some(parts) = machine.parts(value) else { return Err(machine.wrong("expected a shape")) };
    if parts.len() > 3 {
        return Err(
            machine.refused(&format!("an array of {} dimensions, where a series has at most 3", parts.len()))
        );
    }
    let size = |part: &Value| match part {
        Value::Int(size) => u64::try_from(*size).ok(),
        _ => None,
    };
    parts.iter().map(|part| size(part).ok_or_else(|| machine.wrong("expected a size in a shape"))).collect()
}

fn numpy(machine: &Machine<'_, '_>, data: Value, dtype: Value, shape: Value, fortran: bool) -> Result<Array> {
    let shape = sizes(machine, shape)?;
    let Some(Node::DType(dtype)) = machine.node(dtype) else { return Err(machine.wrong("expected a dtype")) };
    let count = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
    let (element, found) = match (dtype, machine.node(data)) {
        (DTypeNode::Plain(element) | DTypeNode::Times(_, element), Some(Node::Bytes(bytes))) => {
            (Some(*element), bytes.len() as u64)
        }
        (DTypeNode::Objects, Some(Node::List(values))) => (None, values.len() as u64),
        _ => return Err(machine.wrong("expected the values of an array")),
    };
    let wanted = count.and_then(|count| count.checked_mul(element.map_or(1, |e| e.size() as u64)));
    if wanted != Some(found) {
        let unit = if element.is_some() { "bytes" } else { "values" };
        return Err(
            machine.wrong(format!("an array of shape {shape:?} with {found} {unit}, which is not its size"))
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
