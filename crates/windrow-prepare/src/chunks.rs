//! Inputs cut into chunks of whole lines.

use windrow_core::Result;

use super::input::{Input, PART, Stream};

/// Longer buffers are not used again.
pub(super) const MOST_KEPT: usize = 8 << 20;

/// Whole lines of one input.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Number of the input.
    pub(super) input: usize,
    /// First byte in the (expanded) input.
    pub(super) byte: u64,
    /// Number of the first line.
    pub(super) line: u64,
    /// Nothing of this input follows. Every input ends with such a chunk.
    pub(super) is_last: bool,
    /// Bytes of this input behind it, as they are stored.
    pub(super) stored: u64,
    // Longer than what it holds: what was zeroed once is not zeroed again for the next chunk.
    room: Vec<u8>,
    len: usize,
}

impl Chunk {
    /// The lines with their line breaks; may be empty at the end of an input.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }

    /// Its memory, for another one; none of a very long line, which may be the only one.
    pub(super) fn into_room(self) -> Vec<u8> {
        if self.room.len() > MOST_KEPT { Vec::new() } else { self.room }
    }
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

    /// The next chunk, in the memory of another one; nothing follows an error.
    ///
    /// # Errors
    /// As [`Stream::fill`] and [`Stream::finish`].
    pub(super) fn read(&mut self, room: Vec<u8>) -> Option<Result<Chunk>> {
        let input = self.inputs.get(self.input)?;
        let chunk = self.cut(input, room);
        if chunk.is_err() {
            self.input = self.inputs.len();
        }
        Some(chunk)
    }

    fn cut(&mut self, input: &Input, mut room: Vec<u8>) -> Result<Chunk> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => empty.insert(input.stream(self.byte)?),
        };
        let part = PART.min(self.size);
        let mut filled = self.rest.len();
        // As much as most chunks take, so that it grows once.
        room.resize(room.len().max(filled + self.size + part), 0);
        room[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        let mut searched = 0;
        let (end, is_last) = loop {
            if filled >= self.size {
                // A line may be longer than a chunk: only what is new is searched.
                if let Some(at) = memchr::memrchr(b'\n', &room[searched..filled]) {
                    break (searched + at + 1, false);
                }
                searched = filled;
            }
            if room.len() < filled + part {
                room.resize(filled + part, 0);
            }
            match stream.fill(&mut room[filled..filled + part])? {
                0 => {
                    stream.finish()?;
                    break (filled, true);
                }
                n => filled += n,
            }
        };
        self.rest.extend_from_slice(&room[end..filled]);
        let chunk = Chunk {
            input: self.input,
            byte: self.byte,
            line: self.line,
            is_last,
            stored: stream.stored(),
            room,
            len: end,
        };
        if is_last {
            self.stream = None;
            (self.input, self.byte, self.line) = (self.input + 1, 0, 0);
        } else {
            self.byte += end as u64;
            self.line += memchr::memchr_iter(b'\n', chunk.bytes()).count() as u64;
        }
        Ok(chunk)
    }
}
