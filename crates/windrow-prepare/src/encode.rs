//! Lines and texts into IDs: the trait that an encoder implements, and the checks on what it gives.

use windrow_core::manifest::TokenizerLock;
use windrow_core::{DType, Error, Kind, Result};

use super::chunks::Chunk;
use super::fields::Takes;
use super::ids::{Ids, Kept};
use super::seen::Seen;
use super::skipped::{Skipped, SkippedRecord, is_cut, may_be, not_left_out};

/// Turns one line into token IDs.
pub trait Encode: Sync {
    /// Appends the IDs of one line to `out.ids`, and to each of `out.tracks` as many bytes.
    ///
    /// `line` lacks its line break (`\n` or `\r\n`). No end-of-sequence id is added: the task does that.
    ///
    /// # Errors
    /// Any; file, line and byte are added where they are missing. [`LinePlace::error`] makes one.
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()>;

    /// What is taken of a row, where an input holds rows; `None` where lines alone are encoded.
    fn takes(&self) -> Option<Takes<'_>> {
        None
    }

    /// Appends the IDs of a text that was taken from a row, as [`Encode::encode`] those of a line that holds it. Asked only
    /// where something is taken ([`Encode::takes`]).
    ///
    /// # Errors
    /// Any; file, record and column are added where they are missing.
    fn encode_text(&self, text: &str, out: &mut Encoded) -> Result<()> {
        let _ = (text, out);
        Err(Error::unsupported("this encoder reads lines, not texts of rows"))
    }

    /// Whether several threads may encode at once; otherwise all lines come in order on the calling thread.
    fn parallel(&self) -> bool {
        true
    }

    /// What the manifest keeps of the tokenizer.
    fn lock(&self) -> Option<TokenizerLock> {
        None
    }

    /// What decides the IDs, in one line: a rerun with another description is another task.
    fn describe(&self) -> String;

    /// All IDs are below this.
    fn vocab_size(&self) -> Option<u64> {
        None
    }

    /// The ID that ends a document; kept in the manifest when [`crate::tokenize::TokenizeOptions::eos`] names none.
    fn eos(&self) -> Option<i64> {
        None
    }
}

/// What a line became.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    /// Token IDs.
    pub ids: Ids,
    /// One byte per id for each track, in the order of [`crate::tokenize::TokenizeOptions::tracks`].
    pub tracks: Vec<Vec<u8>>,
    /// Memory that stays from line to line, for the text on its way to IDs ([`crate::text::text_of`]).
    pub room: Vec<u8>,
}

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePlace<'a> {
    /// Path of the input.
    pub file: &'a str,
    /// Number of the line in it, from 0.
    pub line: u64,
    /// Its first byte; in a compressed input counted in the expanded bytes.
    pub byte: u64,
}

impl LinePlace<'_> {
    /// An error that names this line.
    pub fn error(&self, kind: Kind, message: impl Into<String>) -> Error {
        self.complete(Error::new(kind, message))
    }

    /// Adds file, line and byte where the error lacks them.
    pub fn complete(&self, error: Error) -> Error {
        let place = error.place().clone();
        let error = error.or_at(self.file);
        let error = if place.record.is_none() { error.record(self.line) } else { error };
        if place.byte.is_none() { error.byte(self.byte) } else { error }
    }
}

/// What holds for every ID.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) dtype: DType,
    pub(super) vocab_size: Option<u64>,
    /// Appended to each document.
    pub(super) eos: Option<i64>,
    /// No larger one can be stored, whatever the dtype holds.
    pub(super) largest_id: Option<i64>,
    /// For each track as stored: its number in [`Encoded::tracks`], and its value beside the appended id.
    pub(super) tracks: Vec<(usize, u8)>,
    /// Of the loss mask, where there is one: its number in [`Encoded::tracks`], and its value beside what is not learned.
    pub(super) mask: Option<(usize, u8)>,
    /// Damaged records are left out.
    pub(super) skips: bool,
}

/// A chunk's documents as they are stored, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct EncodedChunk {
    pub(super) input: usize,
    /// Where the next chunk of this input begins.
    pub(super) end_byte: u64,
    pub(super) end_line: u64,
    /// Nothing of this input follows.
    pub(super) is_last: bool,
    /// Input bytes behind it, as they are stored.
    pub(super) stored: u64,
    /// What there was up to its end, of texts that lie nowhere.
    pub(super) seen: Option<Seen>,
    /// Ids, little-endian.
    pub(super) tokens: Vec<u8>,
    pub(super) tracks: Vec<Vec<u8>>,
    /// Where each document ends, in tokens.
    pub(super) ends: Vec<u64>,
    /// Documents whose mask learns nothing.
    pub(super) unlearned: u64,
    /// Records that are left out.
    pub(super) skipped: Skipped,
    pub(super) most_id: Option<i64>,
}

/// Encodes a chunk record by record; `go_on` is asked before each, and `complete` says of an error where it was. Of `spare`, the
/// buffers are used again.
pub(super) fn encode_chunk(
    chunk: &Chunk,
    file: &str,
    complete: &dyn Fn(&LinePlace<'_>, Error) -> Error,
    encoder: &dyn Encode,
    rules: &Rules,
    mut spare: EncodedChunk,
    go_on: &mut dyn FnMut() -> Result<()>,
) -> Result<EncodedChunk> {
    let bytes = chunk.bytes();
    spare.tokens.clear();
    spare.ends.clear();
    spare.tracks.resize_with(rules.tracks.len(), Vec::new);
    spare.tracks.iter_mut().for_each(Vec::clear);
    // About the same number of bytes as the text; a chunk without room grows.
    spare.tokens.reserve(bytes.len() + bytes.len() / 4);
    let mut out = EncodedChunk {
        input: chunk.input,
        end_byte: chunk.byte + bytes.len() as u64,
        end_line: chunk.line,
        is_last: chunk.is_last,
        stored: chunk.stored,
        seen: chunk.seen,
        most_id: None,
        unlearned: 0,
        skipped: Skipped::default(),
        ..spare
    };
    let mut document = Encoded { tracks: vec![Vec::new(); rules.tracks.len()], ..Encoded::default() };
    let (mut start, mut damaged) = (0, chunk.damaged.iter().peekable());
    // The record that ends at a byte.
    let mut add = |end: usize| {
        go_on()?;
        let (record, byte) = (&bytes[start..end], chunk.byte + start as u64);
        let place = LinePlace { file, line: out.end_line, byte };
        (start, out.end_line) = (end, out.end_line + 1);
        if let Some(known) = damaged.next_if(|known| known.record == place.line) {
            out.skipped.add(known.clone());
            return Ok(());
        }
        document.ids.clear();
        document.tracks.iter_mut().for_each(Vec::clear);
        let encoded = match chunk.ends {
            None => encoder.encode(without_break(record), &place, &mut document),
            // It was a text when it was read.
            Some(_) => simdutf8::basic::from_utf8(record)
                .map_err(|_| Error::corrupt("invalid UTF-8"))
                .and_then(|text| encoder.encode_text(text, &mut document)),
        };
        match encoded {
            Ok(()) => rules.take(&document, &mut out).map_err(|e| complete(&place, e)),
            Err(e) if chunk.ends.is_none() && !record.ends_with(b"\n") && may_be(&e) && is_cut(record) => {
                let hint = "the file ends within this record: the copy looks unfinished, fetch it again";
                Err(complete(&place, e.hint(hint)))
            }
            Err(e) if rules.skips && may_be(&e) => {
                out.skipped.add(SkippedRecord::of(&complete(&place, e), place.line));
                Ok(())
            }
            Err(e) => Err(complete(&place, not_left_out(e))),
        }
    };
    match &chunk.ends {
        Some(ends) => ends.iter().try_for_each(|end| add(*end))?,
        None => {
            let mut breaks = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
            let unbroken = bytes.last().is_some_and(|b| *b != b'\n').then_some(bytes.len());
            breaks.try_for_each(&mut add)?;
            unbroken.map_or(Ok(()), add)?;
        }
    }
    Ok(out)
}

fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl Rules {
    fn take(&self, document: &Encoded, out: &mut EncodedChunk) -> Result<()> {
        if document.tracks.len() != self.tracks.len()
            || document.tracks.iter().any(|t| t.len() != document.ids.len())
        {
            let found: Vec<_> = document.tracks.iter().map(Vec::len).collect();
            return Err(Error::config(format!(
                "the encoder gave {} IDs and tracks of {found:?} values; expected {} tracks of the same number",
                document.ids.len(),
                self.tracks.len()
            )));
        }
        if let Kept::Large(ids) = document.ids.kept() {
            ids.iter().try_for_each(|id| self.check(*id))?;
        }
        let width = self.dtype.size();
        if let Some(most) = document.ids.kept().write(width, &mut out.tokens) {
            // Whatever holds it holds those that are less. Ids that were cut off are not kept: nothing of a chunk is after
            // an error.
            self.check(most)?;
            out.most_id = out.most_id.max(Some(most));
        }
        for (stored, (given, _)) in out.tracks.iter_mut().zip(&self.tracks) {
            stored.extend_from_slice(&document.tracks[*given]);
        }
        if let Some((mask, unlearned)) = self.mask {
            out.unlearned += u64::from(document.tracks[mask].iter().all(|value| *value == unlearned));
        }
        if let Some(eos) = self.eos {
            Kept::Large(&[eos]).write(width, &mut out.tokens);
            out.most_id = out.most_id.max(Some(eos));
            for (stored, (_, value)) in out.tracks.iter_mut().zip(&self.tracks) {
                stored.push(*value);
            }
        }
        out.ends.push((out.tokens.len() / width) as u64);
        Ok(())
    }

    /// Whether an ID may be stored.
    ///
    /// # Errors
    /// `Config` when the dtype cannot hold it, `Corrupt` when it is outside the vocabulary.
    pub(super) fn check(&self, id: i64) -> Result<()> {
        if !self.dtype.holds(id) {
            let error = Error::config(format!("id {id} does not fit {}", self.dtype));
            return Err(match fitting(id) {
                Some(dtype) => error.hint(format!("dtype {dtype} holds it")),
                None => error,
            });
        }
        if let Some(largest) = self.largest_id.filter(|largest| *largest < id) {
            return Err(Error::config(format!(
                "id {id}, expected at most {largest}: the format stores no larger"
            )));
        }
        match (self.vocab_size, u64::try_from(id)) {
            (Some(vocab), Ok(id)) if id < vocab => Ok(()),
            (Some(vocab), _) => Err(Error::corrupt(format!(
                "the encoder gave id {id}; its vocabulary has the IDs 0..{vocab}"
            ))),
            (None, _) => Ok(()),
        }
    }
}

/// The usual dtype that holds an ID.
pub(super) fn fitting(id: i64) -> Option<DType> {
    [DType::U16, DType::U32, DType::I32, DType::I64].into_iter().find(|d| d.holds(id))
}
