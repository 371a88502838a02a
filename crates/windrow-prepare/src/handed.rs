//! Texts that a program hands over one by one, as chunks: they lie nowhere, so what is known of them is what was counted.

use std::time::{Duration, Instant};

use windrow_core::{Error, Kind, Result};

use super::chunks::{Chunk, MOST_TEXTS};
use super::seen::Seen;
use super::skipped::{SkippedRecord, may_be, not_left_out};

/// Texts that come slowly do not wait longer for others.
const MOST_WAIT: Duration = Duration::from_millis(500);

/// Texts on their way to chunks.
pub(super) struct Handed<'a> {
    texts: &'a mut dyn Iterator<Item = Result<String>>,
    /// Items that are no text are left out.
    skips: bool,
    seen: Seen,
    is_over: bool,
    failed: Option<Error>,
}

impl<'a> Handed<'a> {
    pub(super) fn new(texts: &'a mut dyn Iterator<Item = Result<String>>, skips: bool) -> Self {
        Handed { texts, skips, seen: Seen::default(), is_over: false, failed: None }
    }

    /// What came so far.
    pub(super) fn seen(&self) -> Seen {
        self.seen
    }

    /// The error that ended the texts.
    pub(super) fn take_failed(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Takes texts until there were `n` of them, and drops them; fewer at the end. `go_on` is asked now and then.
    ///
    /// # Errors
    /// That of a text, and of `go_on`.
    pub(super) fn skip(&mut self, n: u64, go_on: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        while self.seen.texts < n {
            if self.seen.texts.is_multiple_of(1024) {
                go_on()?;
            }
            match self.texts.next() {
                Some(Err(error)) if self.skips && may_be(&error) => self.seen.add_damaged(),
                Some(text) => self.seen.add(&text?),
                None => {
                    self.is_over = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether no text follows; one that does is lost.
    ///
    /// # Errors
    /// That of a text.
    pub(super) fn is_at_end(&mut self) -> Result<bool> {
        if self.is_over {
            return Ok(true);
        }
        match self.texts.next() {
            Some(Err(error)) if !(self.skips && may_be(&error)) => Err(error),
            next => Ok(next.is_none()),
        }
    }

    /// The next texts, about `size` bytes, in the memory of another chunk; the last ones say so. After an error come those
    /// before it, and nothing else: [`Handed::take_failed`] has it then.
    ///
    /// # Errors
    /// `Interrupted`, at once.
    pub(super) fn read(&mut self, size: usize, mut room: Vec<u8>) -> Option<Result<Chunk>> {
        if self.is_over || self.failed.is_some() {
            return None;
        }
        room.clear();
        let (first, began) = (self.seen, Instant::now());
        let (mut ends, mut damaged) = (Vec::new(), Vec::new());
        while room.len() < size && ends.len() < MOST_TEXTS && (ends.is_empty() || began.elapsed() < MOST_WAIT)
        {
            match self.texts.next() {
                Some(Ok(text)) => {
                    self.seen.add(&text);
                    room.extend_from_slice(text.as_bytes());
                    ends.push(room.len());
                }
                Some(Err(error)) if error.kind() == Kind::Interrupted => return Some(Err(error)),
                Some(Err(error)) if self.skips && may_be(&error) => {
                    damaged.push(SkippedRecord::of(&error, self.seen.texts));
                    self.seen.add_damaged();
                    ends.push(room.len());
                }
                Some(Err(error)) => {
                    self.failed = Some(not_left_out(error));
                    break;
                }
                None => {
                    self.is_over = true;
                    break;
                }
            }
        }
        let is_nothing = ends.is_empty() && !self.is_over;
        (!is_nothing).then(|| Ok(Chunk::of_texts(room, ends, damaged, (first, self.seen), self.is_over)))
    }
}
