//! The machine: opcodes that make data, over an arena that is dropped flat. Every step is paid for from a budget that the
//! file's size sets, and no count is believed before it was compared with the bytes that are left.

use std::borrow::Cow;
use std::collections::HashMap;

use super::array::{Array, DTypeNode};
use super::names::{self, Name};
use super::time::Told;
use super::torch;
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::format::number::Number;

/// A value: small ones as they are, others by their place in the arena. Sharing and cycles are copies of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Node(u32),
}

/// What stands in the arena.
pub(super) enum Node<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// A whole number that int64 does not hold, in digits.
    Big(String),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Name(Name),
    Time(Box<Told>),
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

/// Bytes of memory that a file may make: many times its size, so that what Python wrote is read, and no more.
pub(super) struct Budget {
    left: u64,
    all: u64,
}

impl Budget {
    /// What a file of this size may make.
    pub(super) fn of(size: u64) -> Self {
        let all = size.saturating_mul(32).saturating_add(16 << 20);
        Budget { left: all, all }
    }

    /// Takes some of it.
    ///
    /// # Errors
    /// As [`Budget::check`].
    pub(super) fn take(&mut self, bytes: u64) -> Result<()> {
        self.check(bytes)?;
        self.left -= bytes;
        Ok(())
    }

    /// Whether so much is left.
    ///
    /// # Errors
    /// `Corrupt` when it is not.
    pub(super) fn check(&self, bytes: u64) -> Result<()> {
        match bytes <= self.left {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "the pickle makes more than {} bytes of values, 32 times its own size",
                self.all
            ))
            .hint("a small file that makes so much is no data set; write the arrays with np.save")),
        }
    }
}

/// What a node and a value take, with the room that growing lists leave free.
const NODE: u64 = 64;
const VALUE: u64 = 16;

/// One pickle of a file, while it is read.
pub(super) struct Machine<'a, 'b> {
    input: &'a [u8],
    at: usize,
    /// Where the opcode that is carried out stands.
    opcode_at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
    nodes: Vec<Node<'a>>,
    pub(super) budget: &'b mut Budget,
    /// Storages may be named by persistent ids: only within torch's own bytes.
    pub(super) in_torch: bool,
}

impl<'a, 'b> Machine<'a, 'b> {
    /// A machine that stands before byte `at`.
    pub(super) fn new(input: &'a [u8], at: usize, budget: &'b mut Budget) -> Self {
        Machine {
            input,
            at,
            opcode_at: at,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            nodes: Vec::new(),
            budget,
            in_torch: false,
        }
    }

    /// The byte of the opcode that is carried out.
    pub(super) fn place(&self) -> u64 {
        self.opcode_at as u64
    }

    /// The byte it stands before.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Runs to the end of one pickle, and gives the value it makes.
    ///
    /// # Errors
    /// `Corrupt` naming the byte; `Unsupported` naming what is more than data.
    pub(super) fn run(&mut self) -> Result<Value> {
        self.stack.clear();
        self.marks.clear();
        self.memo.clear();
        loop {
            self.opcode_at = self.at;
            let opcode = self.byte()?;
            if opcode == b'.' {
                return self.pop();
            }
            let before = self.opcode_at as u64;
            self.step(opcode).map_err(|e| if e.place().byte.is_some() { e } else { e.byte(before) })?;
        }
    }

    /// The node of a value; `None` for small values.
    pub(super) fn node(&self, value: Value) -> Option<&Node<'a>> {
        match value {
            Value::Node(id) => self.nodes.get(id as usize),
            _ => None,
        }
    }

    /// The node of a value, to change.
    pub(super) fn node_mut(&mut self, value: Value) -> Option<&mut Node<'a>> {
        match value {
            Value::Node(id) => self.nodes.get_mut(id as usize),
            _ => None,
        }
    }

    /// Puts a node into the arena.
    pub(super) fn make(&mut self, node: Node<'a>) -> Result<Value> {
        self.budget.take(NODE)?;
        let id = u32::try_from(self.nodes.len())
            .map_err(|_| Error::unsupported("a pickle of more than 4,294,967,295 values"))?;
        self.nodes.push(node);
        Ok(Value::Node(id))
    }

    /// An error at the opcode that is carried out.
    pub(super) fn wrong(&self, what: impl Into<String>) -> Error {
        Error::corrupt(what).byte(self.opcode_at as u64).hint("the file is damaged, or no pickle")
    }

    /// The error for what is more than data.
    pub(super) fn refused(&self, what: &str) -> Error {
        Error::unsupported(format!("the pickle holds {what}: that is more than data, and is not run"))
            .byte(self.opcode_at as u64)
            .hint("lists, dicts, numbers, text, times, numpy arrays and torch tensors are read: save those alone, or use np.save")
    }

    /// A whole number, Python's or numpy's.
    pub(super) fn int(&self, value: Value) -> Option<i64> {
        match (value, self.node(value)) {
            (Value::Int(number), _) | (_, Some(&Node::Scalar(Number::Int(number), _))) => Some(number),
            _ => None,
        }
    }

    /// Text of a value: of strings that Python 2 wrote too.
    pub(super) fn text(&self, value: Value) -> Option<&str> {
        match self.node(value)? {
            Node::Text(text) => Some(text),
            Node::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The parts of a tuple or list.
    pub(super) fn parts(&self, value: Value) -> Option<&[Value]> {
        match self.node(value)? {
            Node::Tuple(values) | Node::List(values) => Some(values),
            _ => None,
        }
    }

    /// The next `size` bytes, after they were compared with what is left.
    pub(super) fn take(&mut self, size: u64) -> Result<&'a [u8]> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        match usize::try_from(size).ok().and_then(|size| rest.get(..size)) {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(Error::corrupt(format!(
                "expected {size} bytes, found the end of the file after {}",
                rest.len()
            ))
            .byte(self.at as u64)
            .hint("the copy looks unfinished")),
        }
    }

    fn byte(&mut self) -> Result<u8> {
        self.take(1).map(|bytes| bytes.first().copied().unwrap_or_default())
    }

    /// An unsigned number of `size` bytes, least significant first.
    fn unsigned(&mut self, size: u64) -> Result<u64> {
        Ok(self.take(size)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Bytes after their number of bytes.
    fn counted(&mut self, width: u64) -> Result<&'a [u8]> {
        let size = self.unsigned(width)?;
        self.take(size)
    }

    /// A line of text without its end.
    fn line(&mut self) -> Result<&'a [u8]> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        match memchr::memchr(b'\n', rest) {
            Some(end) => {
                self.at += end + 1;
                Ok(rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]))
            }
            None => Err(self.wrong("expected a line, found the end of the file")),
        }
    }

    fn line_text(&mut self) -> Result<&'a str> {
        let line = self.line()?;
        std::str::from_utf8(line).map_err(|_| self.wrong("expected a line of text"))
    }

    fn push(&mut self, value: Value) -> Result<()> {
        self.stack.push(value);
        Ok(())
    }

    fn push_node(&mut self, node: Node<'a>) -> Result<()> {
        let value = self.make(node)?;
        self.push(value)
    }

    pub(super) fn pop(&mut self) -> Result<Value> {
        // What stands below a mark belongs to whoever set it.
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => self.stack.pop().ok_or_else(|| self.wrong("expected a value, found none")),
            false => Err(self.wrong("expected a value, found none")),
        }
    }

    fn top(&self) -> Result<Value> {
        self.stack.last().copied().ok_or_else(|| self.wrong("expected a value, found none"))
    }

    /// The values since the last mark.
    fn marked(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop().ok_or_else(|| self.wrong("expected a mark, found none"))?;
        self.budget.take((self.stack.len().saturating_sub(mark)) as u64 * VALUE)?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn last(&mut self, count: usize) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(self.pop()?);
        }
        values.reverse();
        self.budget.take(count as u64 * VALUE)?;
        Ok(values)
    }

    fn pairs(&self, values: &[Value]) -> Result<Vec<(Value, Value)>> {
        match values.as_chunks::<2>() {
            (pairs, []) => Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect()),
            _ => Err(self.wrong("expected keys and values, found a key without one")),
        }
    }

    fn append(&mut self, values: &[Value]) -> Result<()> {
        let list = self.top()?;
        match self.node_mut(list) {
            Some(Node::List(all)) => {
                all.extend_from_slice(values);
                Ok(())
            }
            _ => Err(self.wrong("expected a list to append to")),
        }
    }

    fn insert(&mut self, values: &[Value]) -> Result<()> {
        let pairs = self.pairs(values)?;
        let dict = self.top()?;
        match self.node_mut(dict) {
            Some(Node::Dict(all)) => {
                all.extend_from_slice(&pairs);
                Ok(())
            }
            _ => Err(self.wrong("expected a dict to set items of")),
        }
    }

    fn remember(&mut self, number: u64) -> Result<()> {
        self.budget.take(2 * VALUE)?;
        let value = self.top()?;
        self.memo.insert(number, value);
        Ok(())
    }

    fn recall(&mut self, number: u64) -> Result<()> {
        match self.memo.get(&number) {
            Some(value) => self.push(*value),
            None => Err(self.wrong(format!("expected a value remembered as {number}, found none"))),
        }
    }

    fn decimal(&mut self) -> Result<u64> {
        let line = self.line_text()?;
        line.parse().map_err(|_| self.wrong(format!("expected a number, found {:?}", shown(line))))
    }

    fn push_text(&mut self, bytes: &'a [u8]) -> Result<()> {
        let text = std::str::from_utf8(bytes).map_err(|_| self.wrong("expected UTF-8 in a text"))?;
        self.push_node(Node::Text(Cow::Borrowed(text)))
    }

    fn push_whole(&mut self, text: &str) -> Result<()> {
        match text.parse::<i64>() {
            Ok(number) => self.push(Value::Int(number)),
            Err(_) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(self.wrong(format!("expected a whole number, found {:?}", shown(text))));
                }
                self.budget.take(text.len() as u64)?;
                let sign = if digits.len() < text.len() { "-" } else { "" };
                self.push_node(Node::Big(format!("{sign}{}", digits.trim_start_matches('0'))))
            }
        }
    }

    /// A whole number in two's complement.
    fn push_long(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > 16 {
            return Err(
                self.wrong(format!("a whole number of {} bytes: numbers of a series fit 8", bytes.len()))
            );
        }
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        let number = i128::from_le_bytes(wide);
        match i64::try_from(number) {
            Ok(number) => self.push(Value::Int(number)),
            Err(_) => self.push_node(Node::Big(number.to_string())),
        }
    }

    fn push_name(&mut self, module: &str, name: &str) -> Result<()> {
        match names::find(module, name) {
            Some(name) => self.push_node(Node::Name(name)),
            None => Err(self.refused(&format!("{}.{}", shown(module), shown(name)))),
        }
    }

    fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            0x80 => match self.byte()? {
                0..=5 => Ok(()),
                version => Err(self.wrong(format!("a pickle of protocol {version}, where 0 to 5 are known"))),
            },
            // A frame says how much to read at once; nothing follows from it here but that it fits.
            0x95 => {
                let size = self.unsigned(8)?;
                let left = self.input.len().saturating_sub(self.at) as u64;
                match size <= left {
                    true => Ok(()),
                    false => Err(self.wrong(format!("a frame of {size} bytes, where {left} are left"))),
                }
            }
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            // Without a value to take, it takes the mark.
            b'0' => match self.marks.last() {
                Some(&mark) if mark == self.stack.len() => {
                    self.marks.pop();
                    Ok(())
                }
                _ => self.pop().map(drop),
            },
            b'1' => self.marked().map(drop),
            b'2' => {
                let value = self.top()?;
                self.push(value)
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'K' => {
                let number = self.unsigned(1)?;
                self.push(Value::Int(number as i64))
            }
            b'M' => {
                let number = self.unsigned(2)?;
                self.push(Value::Int(number as i64))
            }
            b'J' => {
                let number = self.unsigned(4)?;
                self.push(Value::Int(i64::from(number as u32 as i32)))
            }
            b'G' => {
                let bytes = self.take(8)?;
                let number = f64::from_be_bytes(bytes.try_into().unwrap_or_default());
                self.push(Value::Float(number))
            }
            b'I' => match self.line_text()? {
                "00" => self.push(Value::Bool(false)),
                "01" => self.push(Value::Bool(true)),
                text => self.push_whole(text),
            },
            b'L' => {
                let text = self.line_text()?;
                self.push_whole(text.strip_suffix('L').unwrap_or(text))
            }
            b'F' => {
                let text = self.line_text()?;
                let number = text
                    .parse()
                    .map_err(|_| self.wrong(format!("expected a number, found {:?}", shown(text))))?;
                self.push(Value::Float(number))
            }
            0x8a => {
                let bytes = self.counted(1)?;
                self.push_long(bytes)
            }
            0x8b => {
                let bytes = self.counted(4)?;
                self.push_long(bytes)
            }
            0x8c => self.counted(1).and_then(|bytes| self.push_text(bytes)),
            b'X' => self.counted(4).and_then(|bytes| self.push_text(bytes)),
            0x8d => self.counted(8).and_then(|bytes| self.push_text(bytes)),
            b'V' => {
                let line = self.line()?;
                self.budget.take(line.len() as u64)?;
                let text =
                    raw_unicode(line).ok_or_else(|| self.wrong("expected a text with whole escapes"))?;
                self.push_node(Node::Text(Cow::Owned(text)))
            }
            b'C' | b'U' => {
                let bytes = self.counted(1)?;
                self.push_node(Node::Bytes(Cow::Borrowed(bytes)))
            }
            b'B' | b'T' => {
                let bytes = self.counted(4)?;
                self.push_node(Node::Bytes(Cow::Borrowed(bytes)))
            }
            0x8e | 0x96 => {
                let bytes = self.counted(8)?;
                self.push_node(Node::Bytes(Cow::Borrowed(bytes)))
            }
            b'S' => {
                let line = self.line()?;
                self.budget.take(line.len() as u64)?;
                let bytes = quoted(line).ok_or_else(|| self.wrong("expected a string in quotes"))?;
                self.push_node(Node::Bytes(Cow::Owned(bytes)))
            }
            b']' => self.push_node(Node::List(Vec::new())),
            b')' => self.push_node(Node::Tuple(Vec::new())),
            b'}' => self.push_node(Node::Dict(Vec::new())),
            b'l' => {
                let values = self.marked()?;
                self.push_node(Node::List(values))
            }
            b't' => {
                let values = self.marked()?;
                self.push_node(Node::Tuple(values))
            }
            b'd' => {
                let values = self.marked()?;
                let pairs = self.pairs(&values)?;
                self.push_node(Node::Dict(pairs))
            }
            0x85..=0x87 => {
                let values = self.last(usize::from(opcode - 0x84))?;
                self.push_node(Node::Tuple(values))
            }
            b'a' => {
                let value = self.last(1)?;
                self.append(&value)
            }
            b'e' => {
                let values = self.marked()?;
                self.append(&values)
            }
            b's' => {
                let pair = self.last(2)?;
                self.insert(&pair)
            }
            b'u' => {
                let values = self.marked()?;
                self.insert(&values)
            }
            b'p' => self.decimal().and_then(|number| self.remember(number)),
            b'q' => self.unsigned(1).and_then(|number| self.remember(number)),
            b'r' => self.unsigned(4).and_then(|number| self.remember(number)),
            0x94 => self.remember(self.memo.len() as u64),
            b'g' => self.decimal().and_then(|number| self.recall(number)),
            b'h' => self.unsigned(1).and_then(|number| self.recall(number)),
            b'j' => self.unsigned(4).and_then(|number| self.recall(number)),
            b'c' => {
                let module = self.line_text()?;
                let name = self.line_text()?;
                self.push_name(module, name)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Some(module), Some(name)) = (self.text(module), self.text(name)) else {
                    return Err(self.wrong("expected a module and a name"));
                };
                let (module, name) = (module.to_string(), name.to_string());
                self.push_name(&module, &name)
            }
            b'R' => {
                let (given, callee) = (self.pop()?, self.pop()?);
                let made = names::reduce(self, callee, given)?;
                self.push(made)
            }
            b'b' => {
                let state = self.pop()?;
                let object = self.top()?;
                names::build(self, object, state)
            }
            b'Q' if self.in_torch => {
                let id = self.pop()?;
                let storage = torch::promised(self, id)?;
                self.push(storage)
            }
            b'Q' | b'P' => Err(self.refused("a persistent id")),
            b'i' => {
                let module = self.line_text()?;
                let name = self.line_text()?;
                Err(self.refused(&format!("an instance of {}.{}", shown(module), shown(name))))
            }
            b'o' | 0x81 | 0x92 => Err(self.refused("an instance of a class")),
            0x82..=0x84 => Err(self.refused("a name of the extension registry")),
            0x8f..=0x91 => Err(self.refused("a set, which has no order")),
            0x97 | 0x98 => Err(self.refused("a buffer that lies outside of it")),
            other => Err(self.wrong(format!("expected an opcode, found byte 0x{other:02x}"))),
        }
    }
}

/// The beginning of a text, for messages.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Text as protocol 0 writes it: bytes are characters, but for `\uXXXX` and `\UXXXXXXXX`.
fn raw_unicode(line: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let [byte, tail @ ..] = rest {
        let digits = match (byte, tail.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        if digits == 0 {
            text.push(char::from(*byte));
            rest = tail;
            continue;
        }
        let code = tail.get(1..=digits).and_then(|hex| std::str::from_utf8(hex).ok())?;
        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        rest = tail.get(1 + digits..)?;
    }
    Some(text)
}

/// The bytes of a string as Python 2 prints it.
fn quoted(line: &[u8]) -> Option<Vec<u8>> {
    let (quote, rest) = line.split_first()?;
    let inner = rest.strip_suffix(&[*quote]).filter(|_| matches!(quote, b'\'' | b'"'))?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (escaped, tail) = tail.split_first()?;
        rest = tail;
        bytes.push(match escaped {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'x' => {
                let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
                rest = &tail[2..];
                u8::from_str_radix(hex, 16).ok()?
            }
            same @ (b'\\' | b'\'' | b'"') => *same,
            _ => return None,
        });
    }
    Some(bytes)
}
