//! Storages and tensors as torch names them in a pickle, their reach compared with what the storages hold.

use windrow_core::{DType, Element, Error, Result};

use super::arena::{Arena, Node};
use super::array::{Array, Data};
use super::names::Name;
use super::value::Value;

/// The storage that a persistent id of torch names: `("storage", class, key, place, count, view)`.
///
/// # Errors
/// `Corrupt`, `Unsupported`.
pub(super) fn promised(arena: &mut Arena<'_, '_>, id: Value) -> Result<Value> {
    let parts = arena.parts(id).unwrap_or_default();
    let &[kind, class, key, _place, Value::Int(count), ref view @ ..] = parts else {
        return Err(arena.refused("a persistent id"));
    };
    let is_storage = arena.text(kind) == Some("storage") && view.iter().all(|part| *part == Value::None);
    let (true, Some(Node::Name(Name::TorchStorage(dtype))), Some(key), Ok(count)) =
        (is_storage, arena.node(class), arena.text(key), u64::try_from(count))
    else {
        return Err(arena.refused("a persistent id"));
    };
    let size = key.len() as u64;
    arena.budget.check(size)?;
    let node = Node::Promised(Box::new((Element::little(*dtype), key.to_string(), count)));
    arena.budget.take(size)?;
    arena.make(node)
}

/// A tensor over a storage, its reach compared with the storage's size; of the storage's numbers, or of its bytes `of` another
/// type.
///
/// # Errors
/// `Corrupt`, `Unsupported`.
pub(super) fn tensor(
    arena: &Arena<'_, '_>,
    storage: Value,
    offset: Value,
    shape: Value,
    strides: Value,
    of: Option<Element>,
) -> Result<Array> {
    let (shape, strides) = (arena.sizes(shape)?, arena.sizes(strides)?);
    let (stored, bytes) = match arena.node(storage) {
        Some(Node::Storage(held_in)) => (held_in.0, held_in.1.len() as u64),
        Some(Node::Promised(promised)) => (promised.0, promised.2.saturating_mul(promised.0.size() as u64)),
        _ => return Err(arena.wrong("expected a storage of a tensor")),
    };
    if of.is_some() && stored.dtype != DType::U8 {
        return Err(arena.wrong("expected a storage of bytes"));
    }
    let element = of.unwrap_or(stored);
    let held = bytes / element.size() as u64;
    let Value::Int(offset) = offset else { return Err(arena.wrong("expected an offset of a tensor")) };
    let offset = u64::try_from(offset).map_err(|_| arena.wrong("an offset below 0"))?;
    let steps = shape.iter().zip(&strides);
    // One past the last number that is read.
    let end = steps.clone().try_fold(offset, |end, (size, stride)| {
        end.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
    });
    let is_empty = shape.contains(&0);
    let fits = is_empty || end.is_some_and(|last| last < held);
    // A stride of 0 reads one number many times: a few bytes would give any number of values.
    let repeats = steps.clone().any(|(size, stride)| *size > 1 && *stride == 0);
    let found = format!(
        "a tensor of shape {shape:?}, strides {strides:?} and offset {offset} in a storage of {held} numbers"
    );
    if shape.len() != strides.len() || !fits {
        return Err(arena.wrong(found));
    }
    if repeats {
        return Err(Error::unsupported(format!("{found} is an expanded tensor (stride 0)"))
            .byte(arena.place)
            .hint("save a copy of its own: tensor.contiguous()"));
    }
    Ok(Array { data: Data::Numbers(storage, element), offset, shape, strides, times: None })
}
