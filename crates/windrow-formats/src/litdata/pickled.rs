//! A leaf that is a pickle: `None` beside arrays is one, so plain values are read; nothing is ever called.

use windrow_core::number::Number;
use windrow_core::{Error, Result, Row, Value};
use windrow_pickle::{Arena, Budget, Machine, Node, Value as Found};

/// Values nested deeper are refused, and so are those that hold themselves.
const MOST_DEPTH: usize = 100;
/// Values that a leaf may be, for each of its bytes: one may be shared by many.
const MOST_VALUES: usize = 64;

/// The value of a leaf.
///
/// # Errors
/// `Corrupt`; `Unsupported` for what is more than None, numbers (also NumPy's), text, bytes, lists, tuples and dicts.
pub(super) fn value(bytes: &[u8]) -> Result<Value> {
    let mut budget = Budget::of(bytes.len() as u64);
    let mut machine = Machine::new(bytes, 0, &mut budget);
    let found = machine.run()?;
    if machine.at() != bytes.len() {
        return Err(Error::corrupt("bytes behind a pickle"));
    }
    let mut left = bytes.len().saturating_mul(MOST_VALUES);
    Reader { arena: &machine.arena, left: &mut left }.value(found, 0)
}

struct Reader<'r, 'a, 'b> {
    arena: &'r Arena<'a, 'b>,
    left: &'r mut usize,
}

impl Reader<'_, '_, '_> {
    fn value(&mut self, found: Found, depth: usize) -> Result<Value> {
        let node = match found {
            Found::None => return Ok(Value::Null),
            Found::Bool(flag) => return Ok(Value::Bool(flag)),
            Found::Int(number) => return Ok(Value::I64(number)),
            Found::Float(number) => return Ok(Value::F64(number)),
            Found::Node(_) => self.arena.node(found),
        };
        if depth == MOST_DEPTH || *self.left == 0 {
            return Err(Error::corrupt("a pickle whose values nest too deep, or describe very many values"));
        }
        *self.left -= 1;
        Ok(match node {
            Some(Node::Text(text)) => Value::Text(text.to_string()),
            Some(Node::Bytes(bytes)) => Value::Bytes(bytes.to_vec()),
            Some(Node::Big(digits)) => Value::Big(digits.clone()),
            Some(Node::Scalar(number, _)) => match *number {
                Number::Bool(flag) => Value::Bool(flag),
                Number::Int(number) => Value::I64(number),
                Number::Float(number) => Value::F64(number),
                Number::Big(number) => Value::U64(number),
            },
            Some(Node::List(values) | Node::Tuple(values)) => {
                Value::List(values.iter().map(|value| self.value(*value, depth + 1)).collect::<Result<_>>()?)
            }
            Some(Node::Dict(pairs)) => {
                let mut row = Row::new();
                for (key, value) in pairs {
                    let key = match (self.arena.text(*key), self.arena.int(*key)) {
                        (Some(key), _) => key.to_string(),
                        (None, Some(key)) => key.to_string(),
                        _ => return Err(Error::unsupported("a pickle of a dict whose keys are not texts")),
                    };
                    row.insert(key, self.value(*value, depth + 1)?);
                }
                Value::Struct(row)
            }
            _ => {
                return Err(Error::unsupported("a pickle of more than plain values")
                    .hint("write it as arrays, text or JSON; @columns@ leaves the column out"));
            }
        })
    }
}
