//! Inputs as chunks of whole records: lines, or texts of rows.

use windrow_core::{Error, Result, store};

use super::input::{Input, PART, Stream};
use super::rows::{RowInput, Texts};
use super::seen::Seen;
use super::skipped::{SkippedRecord, may_be, not_left_out};
use super::text_input::TextInput;

/// Longer buffers are not used again.
pub(super) const MOST_KEPT: usize = 8 << 20;
/// Texts of a chunk, at most: empty ones take room too.
pub(super) const MOST_TEXTS: usize = 1 << 16;

/// Whole records of one input.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Number of the input.
    pub(super) input: usize,
    /// First byte in the (expanded) input; of rows, bytes of all texts before.
    pub(super) byte: u64,
    /// Number of the first line, or row.
    pub(super) line: u64,
    /// Nothing of this input follows. Every input ends with such a chunk.
    pub(super) is_last: bool,
    /// Bytes of this input behind it, as they are stored.
    pub(super) stored: u64,
    /// Where each text ends, where records are not lines.
    pub(super) ends: Option<Vec<usize>>,
    /// What there was up to its end, of texts that lie nowhere.
    pub(super) seen: Option<Seen>,
    /// Those of the texts that are none, in order: they are empty there.
    pub(super) damaged: Vec<SkippedRecord>,
    // Longer than what it holds: what was zeroed once is not zeroed again for the next chunk.
    room: Vec<u8>,
    len: usize,
}

impl Chunk {
    /// Texts that were handed over, one after the other in `room`: what there was before the first of them, and up to the last.
    pub(super) fn of_texts(
        room: Vec<u8>,
        ends: Vec<usize>,
        damaged: Vec<SkippedRecord>,
        (from, to): (Seen, Seen),
        is_last: bool,
    ) -> Chunk {
        Chunk {
            input: 0,
            byte: from.bytes,
            line: from.texts,
            is_last,
            stored: to.bytes,
            ends: Some(ends),
            seen: Some(to),
            damaged,
            len: room.len(),
            room,
        }
    }

    /// The lines with their line breaks, or the texts; may be empty at the end of an input.
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
    inputs: &'a [TextInput],
    size: usize,
    /// Rows without a text are left out.
    skips: bool,
    input: usize,
    byte: u64,
    line: u64,
    /// The input that is being read, and what was read of it beyond the last chunk.
    stream: Option<(Stream, Vec<u8>)>,
    texts: Option<(Texts<'a>, Option<Error>)>,
}

impl<'a> Chunks<'a> {
    /// Chunks of about `size` bytes, from a record of an input on.
    pub(super) fn new(inputs: &'a [TextInput], size: usize, input: usize, byte: u64, line: u64) -> Self {
        Chunks { inputs, size: size.max(1), skips: false, input, byte, line, stream: None, texts: None }
    }

    /// Leaves out rows without a text, where `skips` is set.
    pub(super) fn skipping(self, skips: bool) -> Self {
        Chunks { skips, ..self }
    }

    /// The next chunk, in the memory of another one; nothing follows an error.
    ///
    /// # Errors
    /// As [`Stream::fill`] and [`Stream::finish`], or [`Texts::next`] and [`RowInput::check`].
    pub(super) fn read(&mut self, room: Vec<u8>) -> Option<Result<Chunk>> {
        let chunk = match self.inputs.get(self.input)? {
            TextInput::Lines(input) => self.lines(input, room),
            // The files of rows may be maps.
            TextInput::Rows(input) => store::whole_at_once(|| self.texts(input, room)),
        };
        match &chunk {
            Err(_) => self.input = self.inputs.len(),
            Ok(chunk) if chunk.is_last => {
                (self.stream, self.texts) = (None, None);
                (self.input, self.byte, self.line) = (self.input + 1, 0, 0);
            }
            Ok(chunk) => {
                let n = match &chunk.ends {
                    Some(ends) => ends.len(),
                    None => memchr::memchr_iter(b'\n', chunk.bytes()).count(),
                };
                self.byte += chunk.len as u64;
                self.line += n as u64;
            }
        }
        Some(chunk)
    }

    fn lines(&mut self, input: &Input, mut room: Vec<u8>) -> Result<Chunk> {
        let (stream, rest) = match &mut self.stream {
            Some(open) => open,
            empty => empty.insert((input.stream(self.byte)?, Vec::new())),
        };
        let part = PART.min(self.size);
        let mut filled = rest.len();
        // As much as most chunks take, so that it grows once.
        room.resize(room.len().max(filled + self.size + part), 0);
        room[..filled].copy_from_slice(rest);
        rest.clear();
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
        rest.extend_from_slice(&room[end..filled]);
        let stored = stream.stored();
        Ok(Chunk {
            input: self.input,
            byte: self.byte,
            line: self.line,
            is_last,
            stored,
            ends: None,
            seen: None,
            damaged: Vec::new(),
            room,
            len: end,
        })
    }

    fn texts(&mut self, input: &'a RowInput, mut room: Vec<u8>) -> Result<Chunk> {
        let (texts, failed) = match &mut self.texts {
            Some(open) => open,
            empty => {
                input.check()?;
                empty.insert((input.texts(self.line), None))
            }
        };
        room.clear();
        let (mut ends, mut damaged) = (Vec::new(), Vec::new());
        let is_last = loop {
            if let Some(error) = failed.take() {
                return Err(error);
            }
            if room.len() >= self.size || ends.len() >= MOST_TEXTS {
                break false;
            }
            match texts.next(&mut room) {
                Some(Ok(Ok(()))) => ends.push(room.len()),
                Some(Ok(Err(error))) if self.skips && may_be(&error) => {
                    damaged.push(SkippedRecord::of(&error, self.line + ends.len() as u64));
                    ends.push(room.len());
                }
                // Texts before it are encoded first, as lines are: the first error is always the same one.
                Some(Ok(Err(error))) => {
                    *failed = Some(not_left_out(error));
                    if !ends.is_empty() {
                        break false;
                    }
                }
                Some(Err(error)) => {
                    *failed = Some(error);
                    if !ends.is_empty() {
                        break false;
                    }
                }
                None => {
                    input.check()?;
                    break true;
                }
            }
        };
        Ok(Chunk {
            input: self.input,
            byte: self.byte,
            line: self.line,
            is_last,
            stored: input.bytes_before(self.line + ends.len() as u64),
            len: room.len(),
            ends: Some(ends),
            seen: None,
            damaged,
            room,
        })
    }
}
