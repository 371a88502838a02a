//! The machine: opcodes that make data, over an arena. Every step is paid for from a budget that the file's size sets, and no
//! count is believed before it was compared with the bytes that are left.

pub(crate) mod stream;

use std::borrow::Cow;
use std::collections::HashMap;

use windrow_core::{Error, Result};

use super::arena::{Arena, Budget, Node, VALUE};
use super::value::Value;
use super::{calls, names, tensor};

/// One pickle of a file, while it is read.
pub struct Machine<'a, 'b> {
    input: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
    /// The values made so far.
    pub arena: Arena<'a, 'b>,
}

impl<'a, 'b> Machine<'a, 'b> {
    /// A machine that comes before byte `at`.
    pub fn new(input: &'a [u8], at: usize, budget: &'b mut Budget) -> Self {
        Machine {
            input,
            at,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            arena: Arena::new(budget, at as u64),
        }
    }

    /// The byte it comes before.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Runs to the end of one pickle, and gives the value it makes.
    ///
    /// # Errors
    /// `Corrupt` naming the byte; `Unsupported` naming what is more than data.
    pub fn run(&mut self) -> Result<Value> {
        self.stack.clear();
        self.marks.clear();
        self.memo.clear();
        loop {
            self.arena.place = self.at as u64;
            let opcode = self.byte()?;
            if opcode == b'.' {
                return self.pop();
            }
            let before = self.arena.place;
            self.step(opcode).map_err(|e| if e.place().byte.is_some() { e } else { e.byte(before) })?;
        }
    }

    /// The next `size` bytes, after they were compared with what is left.
    pub fn take(&mut self, size: u64) -> Result<&'a [u8]> {
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
            None => Err(self.arena.wrong("expected a line, found the end of the file")),
        }
    }

    fn line_text(&mut self) -> Result<&'a str> {
        let line = self.line()?;
        std::str::from_utf8(line).map_err(|_| self.arena.wrong("expected a line of text"))
    }

    fn push(&mut self, value: Value) -> Result<()> {
        self.stack.push(value);
        Ok(())
    }

    fn push_node(&mut self, node: Node<'a>) -> Result<()> {
        let value = self.arena.make(node)?;
        self.push(value)
    }

    pub(crate) fn pop(&mut self) -> Result<Value> {
        // What is below a mark belongs to whoever set it.
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() > floor {
            self.stack.pop().ok_or_else(|| self.arena.wrong("expected a value, found none"))
        } else {
            Err(self.arena.wrong("expected a value, found none"))
        }
    }

    fn top(&self) -> Result<Value> {
        self.stack.last().copied().ok_or_else(|| self.arena.wrong("expected a value, found none"))
    }

    /// The values since the last mark.
    fn marked(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop().ok_or_else(|| self.arena.wrong("expected a mark, found none"))?;
        self.arena.budget.take((self.stack.len().saturating_sub(mark)) as u64 * VALUE)?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn last(&mut self, count: usize) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(self.pop()?);
        }
        values.reverse();
        self.arena.budget.take(count as u64 * VALUE)?;
        Ok(values)
    }

    fn pairs(&self, values: &[Value]) -> Result<Vec<(Value, Value)>> {
        match values.as_chunks::<2>() {
            (pairs, []) => Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect()),
            _ => Err(self.arena.wrong("expected keys and values, found a key without one")),
        }
    }

    fn append(&mut self, values: &[Value]) -> Result<()> {
        let list = self.top()?;
        match self.arena.node_mut(list) {
            Some(Node::List(all)) => {
                all.extend_from_slice(values);
                Ok(())
            }
            _ => Err(self.arena.wrong("expected a list to append to")),
        }
    }

    fn insert(&mut self, values: &[Value]) -> Result<()> {
        let pairs = self.pairs(values)?;
        let dict = self.top()?;
        match self.arena.node_mut(dict) {
            Some(Node::Dict(all)) => {
                all.extend_from_slice(&pairs);
                Ok(())
            }
            _ => Err(self.arena.wrong("expected a dict to set items of")),
        }
    }

    fn remember(&mut self, number: u64) -> Result<()> {
        self.arena.budget.take(2 * VALUE)?;
        let value = self.top()?;
        self.memo.insert(number, value);
        Ok(())
    }

    fn recall(&mut self, number: u64) -> Result<()> {
        match self.memo.get(&number) {
            Some(value) => self.push(*value),
            None => Err(self.arena.wrong(format!("expected a value remembered as {number}, found none"))),
        }
    }

    fn decimal(&mut self) -> Result<u64> {
        let line = self.line_text()?;
        line.parse().map_err(|_| self.arena.wrong(format!("expected a number, found {:?}", shown(line))))
    }

    fn push_text(&mut self, bytes: &'a [u8]) -> Result<()> {
        let text = std::str::from_utf8(bytes).map_err(|_| self.arena.wrong("expected UTF-8 in a text"))?;
        self.push_node(Node::Text(Cow::Borrowed(text)))
    }

    fn push_whole(&mut self, text: &str) -> Result<()> {
        match text.parse::<i64>() {
            Ok(number) => self.push(Value::Int(number)),
            Err(_) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(self
                        .arena
                        .wrong(format!("expected a whole number, found {:?}", shown(text))));
                }
                self.arena.budget.take(text.len() as u64)?;
                let sign = if digits.len() < text.len() { "-" } else { "" };
                self.push_node(Node::Big(format!("{sign}{}", digits.trim_start_matches('0'))))
            }
        }
    }

    /// A whole number in two's complement.
    fn push_long(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > 16 {
            return Err(self
                .arena
                .wrong(format!("a whole number of {} bytes: numbers of a series fit 8", bytes.len())));
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
            None => Err(self.arena.refused(&format!("{}.{}", shown(module), shown(name)))),
        }
    }

    // Numbers and containers are the most of a pickle.
    fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
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
                    .map_err(|_| self.arena.wrong(format!("expected a number, found {:?}", shown(text))))?;
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
            _ => self.container(opcode),
        }
    }

    // Lists, tuples and dicts, and what is added to them; the memo.
    fn container(&mut self, opcode: u8) -> Result<()> {
        match opcode {
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
            _ => self.text(opcode),
        }
    }

    // Texts and bytes.
    fn text(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            0x8c => self.counted(1).and_then(|bytes| self.push_text(bytes)),
            b'X' => self.counted(4).and_then(|bytes| self.push_text(bytes)),
            0x8d => self.counted(8).and_then(|bytes| self.push_text(bytes)),
            b'V' => {
                let line = self.line()?;
                self.arena.budget.take(line.len() as u64)?;
                let text = raw_unicode(line)
                    .ok_or_else(|| self.arena.wrong("expected a text with whole escapes"))?;
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
                self.arena.budget.take(line.len() as u64)?;
                let bytes = quoted(line).ok_or_else(|| self.arena.wrong("expected a string in quotes"))?;
                self.push_node(Node::Bytes(Cow::Owned(bytes)))
            }
            _ => self.control(opcode),
        }
    }

    // The protocol, frames, marks and the stack.
    fn control(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            0x80 => match self.byte()? {
                0..=5 => Ok(()),
                version => {
                    Err(self.arena.wrong(format!("a pickle of protocol {version}, where 0 to 5 are known")))
                }
            },
            // A frame says how much to read at once; nothing follows from it here but that it fits.
            0x95 => {
                let size = self.unsigned(8)?;
                let left = self.input.len().saturating_sub(self.at) as u64;
                if size <= left {
                    Ok(())
                } else {
                    Err(self.arena.wrong(format!("a frame of {size} bytes, where {left} are left")))
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
            _ => self.object(opcode),
        }
    }

    // Names, what is called, and what is refused.
    fn object(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            b'c' => {
                let module = self.line_text()?;
                let name = self.line_text()?;
                self.push_name(module, name)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Some(module), Some(name)) = (self.arena.text(module), self.arena.text(name)) else {
                    return Err(self.arena.wrong("expected a module and a name"));
                };
                let (module, name) = (module.to_string(), name.to_string());
                self.push_name(&module, &name)
            }
            b'R' => {
                let (given, callee) = (self.pop()?, self.pop()?);
                let made = match self.arena.bytes_of_storage(callee, given) {
                    Some(bytes) => stream::storage(self, bytes)?,
                    None => calls::reduce(&mut self.arena, callee, given)?,
                };
                self.push(made)
            }
            b'b' => {
                let state = self.pop()?;
                let object = self.top()?;
                calls::build(&mut self.arena, object, state)
            }
            b'Q' if self.arena.in_torch => {
                let id = self.pop()?;
                let storage = tensor::promised(&mut self.arena, id)?;
                self.push(storage)
            }
            b'Q' | b'P' => Err(self.arena.refused("a persistent id")),
            b'i' => {
                let module = self.line_text()?;
                let name = self.line_text()?;
                Err(self.arena.refused(&format!("an instance of {}.{}", shown(module), shown(name))))
            }
            b'o' | 0x81 | 0x92 => Err(self.arena.refused("an instance of a class")),
            0x82..=0x84 => Err(self.arena.refused("a name of the extension registry")),
            0x8f..=0x91 => Err(self.arena.refused("a set, which has no order")),
            0x97 | 0x98 => Err(self.arena.refused("a buffer outside of it")),
            other => Err(self.arena.wrong(format!("expected an opcode, found byte 0x{other:02x}"))),
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
