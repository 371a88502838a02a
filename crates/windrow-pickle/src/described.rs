//! Tensors as torch writes them: a pickle that names storages, whose numbers are in the same bytes or beside it.

use std::collections::HashMap;

use windrow_core::number::Number;
use windrow_core::{Element, Error, Result};

use super::arena::{Arena, Budget, Node};
use super::array::{Array, Data};
use super::machine::Machine;
use super::machine::stream::{begin, number_of};
use super::value::Value;

/// A tensor of a file of `torch.save`: which numbers of which storage it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Type of its numbers.
    pub element: Element,
    /// What the storage is called.
    pub key: String,
    /// Numbers that the storage is declared to hold.
    pub held: u64,
    /// Its size as the storage counts it: in numbers, or in bytes.
    pub counted: u64,
    /// Bytes of one as the storage counts.
    pub unit: u64,
    /// Numbers of the storage before its first one.
    pub offset: u64,
    /// Numbers along each dimension.
    pub shape: Vec<u64>,
    /// Numbers from one to the next, along each dimension.
    pub strides: Vec<u64>,
}

/// The tensor that the pickle in an archive of `torch.save` describes. No byte of it is read here: it stays within the
/// storage's size as the pickle says it, which is to be compared with the archive.
///
/// # Errors
/// `Corrupt` naming the byte; `Unsupported` for what is more than data, and for what is not a single tensor.
pub fn described(bytes: &[u8]) -> Result<Tensor> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.arena.in_torch = true;
    let value = machine.run()?;
    single(&machine.arena, value)
}

/// The tensor of a file that torch wrote before it wrote archives (or with `_use_new_zipfile_serialization=False`), and
/// the byte at which its storage begins; the storage lies within `bytes`.
///
/// # Errors
/// As [`described`]; `Corrupt` when the storage is cut short.
pub fn streamed(bytes: &[u8]) -> Result<(Tensor, u64)> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.arena.in_torch = true;
    begin(&mut machine)?;
    let value = machine.run()?;
    let tensor = single(&machine.arena, value)?;
    let keys = machine.run()?;
    let is_key = |key: &Value| machine.arena.text(*key) == Some(&tensor.key);
    if !machine.arena.parts(keys).is_some_and(|keys| matches!(keys, [key] if is_key(key))) {
        return Err(machine.arena.refused("other storages than the one tensor's"));
    }
    let written = number_of(machine.take(8)?);
    if written != tensor.counted {
        return Err(machine
            .arena
            .wrong(format!("a storage of {written} numbers, where {} are described", tensor.counted)));
    }
    let start = machine.at() as u64;
    let size = tensor.counted.checked_mul(tensor.unit);
    machine.take(size.unwrap_or(u64::MAX))?;
    Ok((tensor, start))
}

/// What a file of `torch.save` holds; of a tensor, which numbers of which storage it is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Text(String),
    /// A list or tuple.
    List(Vec<Tree>),
    /// A dict with keys of text.
    Dict(Vec<(String, Tree)>),
    /// A tensor.
    Tensor(Tensor),
}

/// A storage in a stream.
pub struct Streamed {
    pub key: String,
    /// How many numbers it holds.
    pub held: u64,
    /// Byte of the first one.
    pub start: u64,
}

/// What the pickle in an archive of `torch.save` describes, as [`described`] for any values.
///
/// # Errors
/// As [`described`].
pub fn described_tree(bytes: &[u8]) -> Result<Tree> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.arena.in_torch = true;
    let value = machine.run()?;
    tree(&mut machine.arena, value, 0)
}

/// As [`streamed`], for any values: what they are, and where the storages lie.
///
/// # Errors
/// As [`streamed`].
pub fn streamed_tree(bytes: &[u8]) -> Result<(Tree, Vec<Streamed>)> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    machine.arena.in_torch = true;
    begin(&mut machine)?;
    let value = machine.run()?;
    let tree = tree(&mut machine.arena, value, 0)?;
    let mut sizes = HashMap::new();
    element_sizes(&tree, &mut sizes);
    let keys = machine.run()?;
    let Some(keys) = machine.arena.parts(keys).map(<[Value]>::to_vec) else {
        return Err(machine.arena.wrong("expected the keys of the storages"));
    };
    let mut storages = Vec::new();
    for key in keys {
        let Some(key) = machine.arena.text(key).map(str::to_string) else {
            return Err(machine.arena.wrong("expected the key of a storage"));
        };
        machine.arena.budget.take(64 + key.len() as u64)?;
        let Some(size) = sizes.get(&key) else {
            return Err(machine.arena.refused("a storage that no tensor is made of"));
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
fn tree(arena: &mut Arena<'_, '_>, value: Value, depth: usize) -> Result<Tree> {
    const DEEPEST: usize = 32;
    if depth > DEEPEST {
        return Err(arena.refused(&format!("values nested more than {DEEPEST} deep")));
    }
    arena.budget.take(128)?;
    let found = match (value, arena.node(value)) {
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
        (_, Some(Node::Array(Some(array)))) => Tree::Tensor(promise(arena, array)?),
        (_, Some(Node::List(values) | Node::Tuple(values))) => {
            let values = values.clone();
            arena.budget.take(values.len() as u64 * 128)?;
            Tree::List(values.into_iter().map(|value| tree(arena, value, depth + 1)).collect::<Result<_>>()?)
        }
        (_, Some(Node::Dict(items))) => {
            let items = items.clone();
            arena.budget.take(items.len() as u64 * 128)?;
            let mut all = Vec::with_capacity(items.len());
            for (key, value) in items {
                let Some(key) = arena.text(key).map(str::to_string) else { continue };
                arena.budget.take(key.len() as u64)?;
                all.push((key, tree(arena, value, depth + 1)?));
            }
            Tree::Dict(all)
        }
        _ => return Err(arena.refused("a value that is not a number, text, list, dict or tensor")),
    };
    if let Tree::Text(text) = &found {
        arena.budget.take(text.len() as u64)?;
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
fn promise(arena: &Arena<'_, '_>, array: &Array) -> Result<Tensor> {
    if let Data::Numbers(storage, element) = array.data
        && let Some(Node::Promised(promised)) = arena.node(storage)
    {
        return Ok(tensor_of(array, element, promised));
    }
    Err(arena.refused("an array of numpy's"))
}

// The tensor that a value is.
fn single(arena: &Arena<'_, '_>, value: Value) -> Result<Tensor> {
    let found = match arena.node(value) {
        Some(Node::Array(Some(array))) => match array.data {
            Data::Numbers(storage, element) => match arena.node(storage) {
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
