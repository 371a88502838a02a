//! The values that a pickle makes, in an arena that is dropped flat, and the budget that each of them is paid from.

use std::borrow::Cow;

use windrow_core::number::Number;
use windrow_core::{DType, Element, Error, Result};

use super::array::{Array, DTypeNode};
use super::names::Name;
use super::value::Value;

/// What is in the arena.
pub enum Node<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A whole number that int64 does not hold, in digits.
    Big(String),
    /// A list.
    List(Vec<Value>),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A dict: keys and values.
    Dict(Vec<(Value, Value)>),
    /// A class or function that is known.
    Name(Name),
    /// A time, a span or an offset.
    Time(Box<TimeText>),
    /// A dtype of numpy.
    DType(DTypeNode),
    /// A number of numpy's.
    Scalar(Number, DType),
    /// `None` until its state was set.
    Array(Option<Box<Array>>),
    /// Bytes of a torch storage, and what they are.
    Storage(Box<(Element, Vec<u8>)>),
    /// A storage of torch's own file format, by its key: its bytes come later.
    Promised(Box<(Element, String, u64)>),
}

/// A time as text; of a span or an offset also its seconds.
pub struct TimeText {
    /// The text.
    pub text: String,
    /// Its seconds, of a span or an offset.
    pub seconds: Option<i64>,
}

/// Bytes of memory that a file may make: many times its size, so that what Python wrote is read, and no more.
pub struct Budget {
    left: u64,
    all: u64,
}

impl Budget {
    /// What a file of this size may make.
    pub fn of(size: u64) -> Self {
        let all = size.saturating_mul(32).saturating_add(16 << 20);
        Budget { left: all, all }
    }

    /// Takes some of it.
    ///
    /// # Errors
    /// As [`Budget::check`].
    pub fn take(&mut self, bytes: u64) -> Result<()> {
        self.check(bytes)?;
        self.left -= bytes;
        Ok(())
    }

    /// Whether so much is left.
    ///
    /// # Errors
    /// `Corrupt` when it is not.
    pub fn check(&self, bytes: u64) -> Result<()> {
        if bytes <= self.left {
            Ok(())
        } else {
            Err(Error::corrupt(format!(
                "the pickle makes more than {} bytes of values, 32 times its own size",
                self.all
            ))
            .hint("a small file that makes so much is not a data set; write the arrays with np.save"))
        }
    }
}

/// What a node and a value take, with the space that growing lists leave free.
const NODE: u64 = 64;
/// Bytes that a value takes.
pub const VALUE: u64 = 16;

/// What a pickle has made so far.
pub struct Arena<'a, 'b> {
    nodes: Vec<Node<'a>>,
    /// Bytes that it may still take.
    pub budget: &'b mut Budget,
    /// The byte of the opcode that is carried out.
    pub place: u64,
    /// Storages may be named by persistent IDs: only within torch's own bytes.
    pub in_torch: bool,
}

impl<'a, 'b> Arena<'a, 'b> {
    /// An empty one; the pickle begins at byte `place`.
    pub fn new(budget: &'b mut Budget, place: u64) -> Self {
        Arena { nodes: Vec::new(), budget, place, in_torch: false }
    }

    /// The node of a value; `None` for small values.
    pub fn node(&self, value: Value) -> Option<&Node<'a>> {
        match value {
            Value::Node(id) => self.nodes.get(id as usize),
            _ => None,
        }
    }

    /// The node of a value, to change.
    pub fn node_mut(&mut self, value: Value) -> Option<&mut Node<'a>> {
        match value {
            Value::Node(id) => self.nodes.get_mut(id as usize),
            _ => None,
        }
    }

    /// Puts a node into the arena.
    pub fn make(&mut self, node: Node<'a>) -> Result<Value> {
        self.budget.take(NODE)?;
        let id = u32::try_from(self.nodes.len())
            .map_err(|_| Error::unsupported("a pickle of more than 4,294,967,295 values"))?;
        self.nodes.push(node);
        Ok(Value::Node(id))
    }

    /// An error at the opcode that is carried out.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        Error::corrupt(what).byte(self.place).hint("the file is damaged or is not a pickle")
    }

    /// The error for what is more than data.
    pub fn refused(&self, what: &str) -> Error {
        Error::unsupported(format!("the pickle holds {what}: that is more than data, and is not run"))
            .byte(self.place)
            .hint("lists, dicts, numbers, text, times, numpy arrays and torch tensors are read: save those alone, or use np.save")
    }

    /// A whole number, Python's or numpy's.
    pub fn int(&self, value: Value) -> Option<i64> {
        match (value, self.node(value)) {
            (Value::Int(number), _) | (_, Some(&Node::Scalar(Number::Int(number), _))) => Some(number),
            _ => None,
        }
    }

    /// Text of a value: of strings that Python 2 wrote too.
    pub fn text(&self, value: Value) -> Option<&str> {
        match self.node(value)? {
            Node::Text(text) => Some(text),
            Node::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The parts of a tuple or list.
    pub fn parts(&self, value: Value) -> Option<&[Value]> {
        match self.node(value)? {
            Node::Tuple(values) | Node::List(values) => Some(values),
            _ => None,
        }
    }

    /// The bytes that a call of `torch.storage._load_from_bytes` is given; `None` for any other call.
    pub fn bytes_of_storage(&self, callee: Value, given: Value) -> Option<Value> {
        match (self.node(callee), self.parts(given)) {
            (Some(Node::Name(Name::TorchBytes)), Some(&[bytes])) => Some(bytes),
            _ => None,
        }
    }

    /// The sizes of a shape.
    ///
    /// # Errors
    /// `Corrupt`, `Unsupported`.
    pub fn sizes(&self, value: Value) -> Result<Vec<u64>> {
        let Some(parts) = self.parts(value) else { return Err(self.wrong("expected a shape")) };
        if parts.len() > 3 {
            return Err(self
                .refused(&format!("an array of {} dimensions, where a series has at most 3", parts.len())));
        }
        let size = |part: &Value| match part {
            Value::Int(size) => u64::try_from(*size).ok(),
            _ => None,
        };
        parts.iter().map(|part| size(part).ok_or_else(|| self.wrong("expected a size in a shape"))).collect()
    }
}
