//! Tensors as torch writes them: a pickle that names storages, whose numbers lie in the same bytes or beside it.

use std::collections::HashMap;

use super::array::{Array, Data};
use super::machine::{Budget, Machine, Node, Value};
use super::names::{Name, sizes};
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::format::number::Number;

/// A tensor of a file of `torch.save`: which numbers of which storage it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::format) struct Tensor {
    /// Type of its numbers.
    pub(in crate::format) element: Element,
    /// What the storage is called.
    pub(in crate::format) key: String,
    /// Numbers that the storage is said to hold.
    pub(in crate::format) held: u64,
    /// The same as the storage counts them, and the bytes of one so counted: those of a number, or 1.
    pub(in crate::format) counted: u64,
    pub(in crate::format) unit: u64,
    /// Numbers of the storage before its first one.
    pub(in crate::format) offset: u64,
    pub(in crate::format) shape: Vec<u64>,
    /// Numbers from one to the next, along each dimension.
    pub(in crate::format) strides: Vec<u64>,
}

/// The tensor that the pickle in an archive of `torch.save` describes. No byte of it is read here: it stays within the
/// storage's size as the pickle says it, which is to be compared with the archive.
///
/// # Errors
/// `Corrupt` naming the byte; `Unsupported` for what is more than data, and for what is no single tensor.
pub(in crate::format) fn described(bytes: &[u8]) -> Result<Tensor> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.in_torch = true;
    let value = machine.run()?;
    single(&machine, value)
}

/// The tensor of a file that torch wrote before it wrote archives (or with `_use_new_zipfile_serialization=False`), and
/// the byte at which its storage begins; the storage lies within `bytes`.
///
/// # Errors
/// As [`described`]; `Corrupt` when the storage is cut short.
pub(in crate::format) fn streamed(bytes: &[u8]) -> Result<(Tensor, u64)> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.in_torch = true;
    begin(&mut machine)?;
    let value = machine.run()?;
    let tensor = single(&machine, value)?;
    let keys = machine.run()?;
    let is_key = |key: &Value| machine.text(*key) == Some(&tensor.key);
    if !machine.parts(keys).is_some_and(|keys| matches!(keys, [key] if is_key(key))) {
        return Err(machine.refused("other storages than the one tensor's"));
    }
    let written = number_of(machine.take(8)?);
    if written != tensor.counted {
        return Err(
            machine.wrong(format!("a storage of {written} numbers, where {} are described", tensor.counted))
        );
    }
    let start = machine.at() as u64;
    let size = tensor.counted.checked_mul(tensor.unit);
    machine.take(size.unwrap_or(u64::MAX))?;
    Ok((tensor, start))
}

/// How the older files begin: the magic number as a pickle of protocol 2.
pub(in crate::format) const STREAM_MAGIC: &[u8] =
    &[0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, b'.'];

/// What a file of `torch.save` holds; of a tensor, which numbers of which storage it is made of.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::format) enum Tree {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Dict(Vec<(String, Tree)>),
    Tensor(Tensor),
}

/// A storage in a stream.
pub(in crate::format) struct Streamed {
    pub(in crate::format) key: String,
    /// How many numbers it holds.
    pub(in crate::format) held: u64,
    /// Byte of the first one.
    pub(in crate::format) start: u64,
}

/// What the pickle in an archive of `torch.save` describes, as [`described`] for any values.
///
/// # Errors
/// As [`described`].
pub(in crate::format) fn described_tree(bytes: &[u8]) -> Result<Tree> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.in_torch = true;
    let value = machine.run()?;
    tree(&mut machine, value, 0)
}

/// As [`streamed`], for any values: what they are, and where the storages lie.
///
/// # Errors
/// As [`streamed`].
pub(in crate::format) fn streamed_tree(bytes: &[u8]) -> Result<(Tree, Vec<Streamed>)> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.in_torch = true;
    begin(&mut machine)?;
    let value = machine.run()?;
    let tree = tree(&mut machine, value, 0)?;
    let mut sizes = HashMap::new();
    element_sizes(&tree, &mut sizes);
    let keys = machine.run()?;
    let Some(keys) = machine.parts(keys).map(<[Value]>::to_vec) else {
        return Err(machine.wrong("expected the keys of the storages"));
    };
    let mut storages = Vec::new();
    for key in keys {
        let Some(key) = machine.text(key).map(str::to_string) else {
            return Err(machine.wrong("expected the key of a storage"));
        };
        machine.budget.take(64 + key.len() as u64)?;
        let Some(size) = sizes.get(&key) else {
            return Err(machine.refused("a storage that no tensor is made of"));
        };
        let held = number_of(machine.take(8)?);
        let start = machine.at() as u64;
        machine.take(held.saturating_mul(*size))?;
        storages.push(Streamed { key, held, start });
    }
    Ok((tree, storages))
}

// How many bytes a number of each storage takes.
fn element_sizes(tree: &Tree, sizes: &mut HashMap<String, u64>) {
    match tree {
        Tree::Tensor(tensor) => drop(sizes.insert(tensor.key.clone(), tensor.unit)),
        Tree::List(values) => values.iter().for_each(|value| element_sizes(value, sizes)),
        Tree::Dict(items) => items.iter().for_each(|(_, value)| element_sizes(value, sizes)),
        _ => {}
    }
}

// What a value is, copied out of the arena: shared values once for each time they are named, which is paid for.
fn tree(machine: &mut Machine<'_, '_>, value: Value, depth: usize) -> Result<Tree> {
    const DEEPEST: usize = 32;
    if depth > DEEPEST {
        return Err(machine.refused(&format!("values that lie more than {DEEPEST} deep in each other")));
    }
    machine.budget.take(128)?;
    let found = match (value, machine.node(value)) {
        (Value::None, _) => Tree::None,
        (Value::Bool(flag), _) => Tree::Bool(flag),
        (Value::Int(number), _) => Tree::Int(number),
        (Value::Float(number), _) => Tree::Float(number),
        (_, Some(Node::Scalar(Number::Bool(flag), _))) => Tree::Bool(*flag),
        (_, Some(Node::Scalar(Number::Int(number), _))) => Tree::Int(*number),
        (_, Some(Node::Scalar(Number::Float(number), _))) => Tree::Float(*number),
        (_, Some(Node::Scalar(Number::Big(number), _))) => Tree::Text(number.to_string()),
        (_, Some(Node::Text(text))) => Tree::Text(text.to_string()),
        (_, Some(Node::Time(told))) => Tree::Text(told.text.clone()),
        (_, Some(Node::Big(digits))) => Tree::Text(digits.clone()),
        (_, Some(Node::Array(Some(array)))) => Tree::Tensor(promise(machine, array)?),
        (_, Some(Node::List(values) | Node::Tuple(values))) => {
            let values = values.clone();
            machine.budget.take(values.len() as u64 * 128)?;
            Tree::List(
                values.into_iter().map(|value| tree(machine, value, depth + 1)).collect::<Result<_>>()?,
            )
        }
        (_, Some(Node::Dict(items))) => {
            let items = items.clone();
            machine.budget.take(items.len() as u64 * 128)?;
            let mut all = Vec::with_capacity(items.len());
            for (key, value) in items {
                let Some(key) = machine.text(key).map(str::to_string) else { continue };
                machine.budget.take(key.len() as u64)?;
                all.push((key, tree(machine, value, depth + 1)?));
            }
            Tree::Dict(all)
        }
        _ => return Err(machine.refused("a value that is no number, text, list, dict or tensor")),
    };
    if let Tree::Text(text) = &found {
        machine.budget.take(text.len() as u64)?;
    }
    Ok(found)
}

fn tensor_of(array: &Array, element: Element, promised: &(Element, String, u64)) -> Tensor {
    let (stored, key, counted) = promised;
    let unit = stored.size() as u64;
    Tensor {
        element,
        key: key.clone(),
        held: counted.saturating_mul(unit) / element.size() as u64,
        counted: *counted,
        unit,
        offset: array.offset,
        shape: array.shape.clone(),
        strides: array.strides.clone(),
    }
}

// The storage's numbers that a tensor is made of.
fn promise(machine: &Machine<'_, '_>, array: &Array) -> Result<Tensor> {
    if let Data::Numbers(storage, element) = array.data
        && let Some(Node::Promised(promised)) = machine.node(storage)
    {
        return Ok(tensor_of(array, element, promised));
    }
    Err(machine.refused("an array of numpy's"))
}

// The tensor that a value is.
fn single(machine: &Machine<'_, '_>, value: Value) -> Result<Tensor> {
    let found = match machine.node(value) {
        Some(Node::Array(Some(array))) => match array.data {
            Data::Numbers(storage, element) => match machine.node(storage) {
                Some(Node::Promised(promised)) => {
                    return Ok(tensor_of(array, element, promised));
                }
                _ => "an array of numpy's",
            },
            Data::Objects(_) => "an array of objects",
        },
        Some(Node::Dict(_)) => "a dict",
        Some(Node::List(_) | Node::Tuple(_)) => "a list or tuple",
        Some(Node::Text(_) | Node::Bytes(_)) => "text",
        _ => "no array",
    };
    Err(Error::unsupported(format!("expected one tensor, found {found}"))
        .hint("save the tensor alone: torch.save(codes, path)"))
}

/// The storage that a persistent id of torch names: `("storage", class, key, place, count, view)`.
///
/// # Errors
/// `Corrupt`, `Unsupported`.
pub(super) fn promised(machine: &mut Machine<'_, '_>, id: Value) -> Result<Value> {
    let parts = machine.parts(id).unwrap_or_default();
    let &[kind, class, key, _place, Value::Int(count), ref view @ ..] = parts else {
        return Err(machine.refused("a persistent id"));
    };
    let is_storage = machine.text(kind) == Some("storage") && view.iter().all(|part| *part == Value::None);
    let (true, Some(Node::Name(Name::TorchStorage(dtype))), Some(key), Ok(count)) =
        (is_storage, machine.node(class), machine.text(key), u64::try_from(count))
    else {
        return Err(machine.refused("a persistent id"));
    };
    let size = key.len() as u64;
    machine.budget.check(size)?;
    let node = Node::Promised(Box::new((Element::little(*dtype), key.to_string(), count)));
    machine.budget.take(size)?;
    machine.make(node)
}

/// A tensor over a storage, its reach compared with the storage's size; of the storage's numbers, or of its bytes `of` another
/// type.
///
/// # Errors
/// `Corrupt`, `Unsupported`.
pub(super) fn tensor(
    machine: &Machine<'_, '_>,
    storage: Value,
    offset: Value,
    shape: Value,
    strides: Value,
    of: Option<Element>,
) -> Result<Array> {
    let (shape, strides) = (sizes(machine, shape)?, sizes(machine, strides)?);
    let (stored, bytes) = match machine.node(storage) {
        Some(Node::Storage(held_in)) => (held_in.0, held_in.1.len() as u64),
        Some(Node::Promised(promised)) => (promised.0, promised.2.saturating_mul(promised.0.size() as u64)),
        _ => return Err(machine.wrong("expected a storage of a tensor")),
    };
    if of.is_some() && stored.dtype != DType::U8 {
        return Err(machine.wrong("expected a storage of bytes"));
    }
    let element = of.unwrap_or(stored);
    let held = bytes / element.size() as u64;
    let Value::Int(offset) = offset else { return Err(machine.wrong("expected an offset of a tensor")) };
    let offset = u64::try_from(offset).map_err(|_| machine.wrong("an offset below 0"))?;
    let steps = shape.iter().zip(&strides);
    // One past the last number that is read.
    let end = steps.clone().try_fold(offset, |end, (size, stride)| {
        end.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
    });
    let is_empty = shape.contains(&0);
    let fits = is_empty || end.is_some_and(|last| last < held);
    // A stride of 0 reads one number many times: a few bytes would stand for any number of values.
    let repeats = steps.clone().any(|(size, stride)| *size > 1 && *stride == 0);
    let found = format!(
        "a tensor of shape {shape:?}, strides {strides:?} and offset {offset} in a storage of {held} numbers"
    );
    if shape.len() != strides.len() || !fits {
        return Err(machine.wrong(found));
    }
    if repeats {
        return Err(Error::unsupported(format!("{found}: one number stands for many"))
            .byte(machine.place())
            .hint("save a copy of its own: tensor.contiguous()"));
    }
    Ok(Array { data: Data::Numbers(storage, element), offset, shape, strides, times: None })
}

/// A storage as torch writes it into a stream: five pickles (a magic number, a version, the sizes of types, the storage's
/// id, the keys), then for each key the number of its values and their bytes.
pub(super) fn storage(machine: &mut Machine<'_, '_>, data: Value) -> Result<Value> {
    let Some(Node::Bytes(bytes)) = machine.node(data) else {
        return Err(machine.wrong("expected a storage's bytes"));
    };
    // The same bytes may be named again and again: every reading is paid for, before it is made.
    let size = bytes.len() as u64;
    machine.budget.check(size)?;
    let bytes = bytes.to_vec();
    machine.budget.take(size)?;
    if machine.in_torch {
        return Err(machine.refused("a storage within a storage"));
    }
    let outer = machine.place();
    // Its bytes are counted from its own beginning; the outer place is the one in the file.
    let (element, found) = torch_stream(&bytes, machine.budget).map_err(|e| e.byte(outer))?;
    machine.make(Node::Storage(Box::new((element, found))))
}

fn torch_stream(bytes: &[u8], budget: &mut Budget) -> Result<(Element, Vec<u8>)> {
    let mut inner = Machine::new(bytes, 0, budget);
    inner.in_torch = true;
    begin(&mut inner)?;
    let promised = inner.run()?;
    let Some(Node::Promised(promised)) = inner.node(promised) else { return Err(unknown()) };
    let (element, key, count) = promised.as_ref().clone();
    let keys = inner.run()?;
    let has_key = inner.parts(keys).is_some_and(|keys| keys.len() == 1 && inner.text(keys[0]) == Some(&key));
    let written = number_of(inner.take(8)?);
    let size = count.checked_mul(element.size() as u64).filter(|_| has_key && written == count);
    let found = inner.take(size.ok_or_else(unknown)?)?;
    Ok((element, found.to_vec()))
}

// Whole numbers lie with their least significant byte first.
fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

// What a stream begins with: a magic number, a version, and on which kind of machine it was written.
fn begin(machine: &mut Machine<'_, '_>) -> Result<()> {
    let magic = machine.run()?;
    let is_magic =
        matches!(machine.node(magic), Some(Node::Big(digits)) if digits == "119547037146038801333356");
    let version = machine.run()?;
    let info = machine.run()?;
    let Some(Node::Dict(info)) = machine.node(info) else { return Err(unknown()) };
    let big_endian = info
        .iter()
        .any(|(key, value)| machine.text(*key) == Some("little_endian") && *value == Value::Bool(false));
    match is_magic && version == Value::Int(1001) && !big_endian {
        true => Ok(()),
        false => Err(unknown()),
    }
}

fn unknown() -> Error {
    Error::unsupported("a torch storage in a layout that is not known")
        .hint("save tensors as arrays: np.save(path, tensor.numpy())")
}
