//! torch's streams, pickles one after the other with the numbers behind them: how they begin, and a storage that a pickle holds as
//! one, which machines of its own read.

use windrow_core::{Element, Error, Result};

use super::super::arena::{Budget, Node};
use super::super::value::Value;
use super::Machine;

/// A storage as torch writes it into a stream: five pickles (a magic number, a version, the sizes of types, the storage's
/// id, the keys), then for each key the number of its values and their bytes.
pub(super) fn storage(machine: &mut Machine<'_, '_>, data: Value) -> Result<Value> {
    let Some(Node::Bytes(bytes)) = machine.arena.node(data) else {
        return Err(machine.arena.wrong("expected a storage's bytes"));
    };
    // The same bytes may be named again and again: every reading is paid for, before it is made.
    let size = bytes.len() as u64;
    machine.arena.budget.check(size)?;
    let bytes = bytes.to_vec();
    machine.arena.budget.take(size)?;
    if machine.arena.in_torch {
        return Err(machine.arena.refused("a storage within a storage"));
    }
    let outer = machine.arena.place;
    // Its bytes are counted from its own beginning; the outer place is the one in the file.
    let (element, found) = torch_stream(&bytes, machine.arena.budget).map_err(|e| e.byte(outer))?;
    machine.arena.make(Node::Storage(Box::new((element, found))))
}

fn torch_stream(bytes: &[u8], budget: &mut Budget) -> Result<(Element, Vec<u8>)> {
    let mut inner = Machine::new(bytes, 0, budget);
    inner.arena.in_torch = true;
    begin(&mut inner)?;
    let promised = inner.run()?;
    let Some(Node::Promised(promised)) = inner.arena.node(promised) else { return Err(unknown()) };
    let (element, key, count) = promised.as_ref().clone();
    let keys = inner.run()?;
    let has_key = inner
        .arena
        .parts(keys)
        .is_some_and(|keys| keys.len() == 1 && inner.arena.text(keys[0]) == Some(&key));
    let written = number_of(inner.take(8)?);
    let size = count.checked_mul(element.size() as u64).filter(|_| has_key && written == count);
    let found = inner.take(size.ok_or_else(unknown)?)?;
    Ok((element, found.to_vec()))
}

/// Whole numbers lie with their least significant byte first.
pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What a stream begins with: a magic number, a version, and on which kind of machine it was written.
pub(crate) fn begin(machine: &mut Machine<'_, '_>) -> Result<()> {
    let magic = machine.run()?;
    let is_magic =
        matches!(machine.arena.node(magic), Some(Node::Big(digits)) if digits == "119547037146038801333356");
    let version = machine.run()?;
    let info = machine.run()?;
    let Some(Node::Dict(info)) = machine.arena.node(info) else { return Err(unknown()) };
    let big_endian = info.iter().any(|(key, value)| {
        machine.arena.text(*key) == Some("little_endian") && *value == Value::Bool(false)
    });
    if is_magic && version == Value::Int(1001) && !big_endian { Ok(()) } else { Err(unknown()) }
}

fn unknown() -> Error {
    Error::unsupported("a torch storage in a layout that is not known")
        .hint("save tensors as arrays: np.save(path, tensor.numpy())")
}
