//! Inputs cut into chunks of whole lines.

use super::input::{Input, PART, Stream};
use crate::error::Result;

/// Whole lines of one input.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Number of the input.
    pub(super) input: usize,
    /// First byte in the (expanded) input.
    pub(super) byte: u64,
    /// Number of the first line.
    pub(super) line: u64,
    /// The lines with their line breaks; may be empty at the end of an input.
    pub(super) bytes: Vec<u8>,
    /// Nothing of this input follows. Every input ends with such a chunk.
    pub(super) is_last: bool,
    /// Bytes of this input behind it, as they are stored.
    pub(super) stored: u64,
}

/// Reads inputs one after the other.
pub(super) struct Chunks<'a> {
    inputs: &'a [Input],
    size: usize,
    input: usize,
    byte: u64,
    line: u64,
    rest: Vec<u8>,
    stream: Option<Stream>,
}

impl<'a> Chunks<'a> {
    /// Chunks of about `size` bytes, from a line of an input on.
    pub(super) fn new(inputs: &'a [Input], size: usize, input: usize, byte: u64, line: u64) -> Self {
        Chunks { inputs, size: size.max(1), input, byte, line, rest: Vec::new(), stream: None }
    }

    fn cut(&mut self, input: &Input) -> Result<Chunk> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => empty.insert(input.stream(self.byte)?),
        };
        // Read to where it stays, without growing on the way.
        let mut bytes = Vec::with_capacity(self.rest.len() + self.size + PART);
        bytes.append(&mut self.rest);
        let mut searched = 0;
        let (end, is_last) = loop {
            if bytes.len() >= self.size {
                // A line may be longer than a chunk: only what is new is searched.
                if let Some(at) = memchr::memrchr(b'\n', &bytes[searched..]) {
                    break (searched + at + 1, false);
                }
                searched = bytes.len();
            }
            if stream.append(PART.min(self.size), &mut bytes)? == 0 {
                stream.finish()?;
                break (bytes.len(), true);
            }
        };
        self.rest = bytes.split_off(end);
        let chunk = Chunk {
            input: self.input,
            byte: self.byte,
            line: self.line,
            is_last,
            stored: stream.stored(),
            bytes,
        };
        if is_last {
            self.stream = None;
            (self.input, self.byte, self.line) = (self.input + 1, 0, 0);
        } else {
            self.byte += chunk.bytes.len() as u64;
            self.line += memchr::memchr_iter(b'\n', &chunk.bytes).count() as u64;
        }
        Ok(chunk)
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let input = self.inputs.get(self.input)?;
        let chunk = self.cut(input);
        if chunk.is_err() {
            self.input = self.inputs.len();
        }
        Some(chunk)
    }
}
