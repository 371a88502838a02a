//! Tells the values of a pickle one by one. Values may be shared or hold themselves: how deep is bounded here, how much by
//! what it is asked to.

use windrow_core::number::{Number, number};
use windrow_core::{Error, Result};
use windrow_pickle::arena::{Arena, Node};
use windrow_pickle::array::{Array, Data};
use windrow_pickle::value::Value;

use crate::converted::{Event, MOST_DEPTH, Shapes, Sink};

/// Tells a value, with all it holds.
///
/// # Errors
/// What the shapes say; `Corrupt` for values that nest too deep; `Unsupported` for those that are not data of a series.
pub(super) fn value(arena: &Arena<'_, '_>, value: Value, shapes: &mut Shapes<'_>) -> Result<()> {
    Teller { arena, shapes }.value(value, 0)
}

struct Teller<'t, 'a, 'b, 'd> {
    arena: &'t Arena<'a, 'b>,
    shapes: &'t mut Shapes<'d>,
}

impl Teller<'_, '_, '_, '_> {
    fn tell(&mut self, event: Event<'_>) -> Result<()> {
        self.shapes.event(event, None)
    }

    fn value(&mut self, value: Value, depth: usize) -> Result<()> {
        let arena = self.arena;
        let node = match value {
            Value::None => return self.tell(Event::Null),
            Value::Bool(flag) => return self.tell(Event::Bool(flag)),
            Value::Int(number) => return self.tell(Event::Int(number)),
            Value::Float(number) => return self.tell(Event::Float(number)),
            Value::Node(_) => arena.node(value),
        };
        if depth == MOST_DEPTH {
            return Err(self
                .shapes
                .error(format!("values nest more than {MOST_DEPTH} deep, or hold themselves"), None));
        }
        match node {
            Some(Node::Text(text)) => self.tell(Event::Text(text)),
            Some(Node::Time(told)) => self.tell(Event::Text(&told.text)),
            Some(Node::Big(digits)) => self.tell(Event::Big(digits)),
            Some(Node::Scalar(number, dtype)) => self.tell(Event::Stored(*number, *dtype)),
            Some(Node::List(values) | Node::Tuple(values)) => {
                self.tell(Event::List)?;
                for value in values {
                    self.value(*value, depth + 1)?;
                }
                self.tell(Event::ListEnd)
            }
            Some(Node::Dict(pairs)) => {
                self.tell(Event::Dict)?;
                for (key, value) in pairs {
                    match (arena.text(*key), arena.int(*key)) {
                        (Some(key), _) => self.tell(Event::Key(key))?,
                        (None, Some(key)) => self.tell(Event::Key(&key.to_string()))?,
                        _ => return Err(self.shapes.error("expected a text as the key of a dict", None)),
                    }
                    self.value(*value, depth + 1)?;
                }
                self.tell(Event::DictEnd)
            }
            Some(Node::Array(Some(array))) => self.array(array, 0, array.offset, depth),
            // Strings that Python 2 wrote are bytes.
            Some(Node::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => self.tell(Event::Text(text)),
                Err(_) => Err(self.no_data("bytes")),
            },
            Some(Node::Storage(..) | Node::Promised(..)) => Err(self.no_data("a storage without its tensor")),
            Some(Node::Name(_)) => Err(self.no_data("a class or function")),
            Some(Node::DType(_)) => Err(self.no_data("a dtype")),
            Some(Node::Array(None)) => Err(self.no_data("an array without its values")),
            None => Err(self.no_data("nothing")),
        }
    }

    fn no_data(&self, found: &str) -> Error {
        self.shapes
            .error(format!("expected numbers, lists, dicts or text, found {found}"), None)
            .hint("keep what is not series data out of the file")
    }

    /// The part of an array that begins at `start`, from dimension `dim` on.
    fn array(&mut self, array: &Array, dim: usize, start: u64, depth: usize) -> Result<()> {
        let (Some(&size), Some(&stride)) = (array.shape.get(dim), array.strides.get(dim)) else {
            return self.element(array, start, depth);
        };
        self.tell(Event::List)?;
        if let (0, Data::Numbers(_, element)) = (size, array.data) {
            self.tell(Event::Empty(element.dtype))?;
        }
        for i in 0..size {
            // Within the array's reach, which was checked against its bytes.
            self.array(array, dim + 1, start.saturating_add(i.saturating_mul(stride)), depth)?;
        }
        self.tell(Event::ListEnd)
    }

    fn element(&mut self, array: &Array, at: u64, depth: usize) -> Result<()> {
        let arena = self.arena;
        let (data, element) = match array.data {
            Data::Numbers(data, element) => (data, element),
            Data::Objects(list) => {
                let value = usize::try_from(at).ok().and_then(|at| arena.parts(list)?.get(at));
                return match value {
                    Some(value) => self.value(*value, depth + 1),
                    None => Err(self.no_data("an array without its values")),
                };
            }
        };
        let bytes: &[u8] = match arena.node(data) {
            Some(Node::Bytes(bytes)) => bytes,
            Some(Node::Storage(held)) => &held.1,
            _ => &[],
        };
        let size = element.size();
        let start = usize::try_from(at).unwrap_or(usize::MAX).saturating_mul(size);
        let found = bytes.get(start..start.saturating_add(size)).and_then(|bytes| number(bytes, element));
        match (found, array.times) {
            (Some(Number::Int(number)), Some(unit)) => self.tell(Event::Text(&unit.text(number))),
            (Some(number), _) => self.tell(Event::Stored(number, element.dtype)),
            (None, _) => Err(self.no_data("an array without its values")),
        }
    }
}
