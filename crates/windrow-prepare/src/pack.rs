//! Packs encoded documents into samples, or hands them on one by one, in order and with checkpoints.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windrow_core::format::write::{Begin, Corpus, RecordWriter, Stored, WriteFormat};
use windrow_core::output::{Checkpoints, Disk, files};
use windrow_core::source::Extras;
use windrow_core::{DType, Error, Kind, Result};

use super::encode::EncodedChunk;
use super::seen::Seen;
use super::skipped::Skipped;
use super::tokenize::options::Remainder;

const MOST_WAIT: Duration = Duration::from_secs(30);

/// What is packed into what.
#[derive(Clone)]
pub(super) struct Packing {
    pub(super) to: Arc<dyn WriteFormat>,
    /// What the inputs are called, without their endings.
    pub(super) inputs: Vec<String>,
    /// Name of the output below the work folder, and where it will be visible.
    pub(super) name: String,
    pub(super) out: PathBuf,
    /// Tokens per sample; `None` makes each document a record.
    pub(super) sample_size: Option<u64>,
    /// dtype of a token.
    pub(super) dtype: DType,
    /// Token IDs are below this, where that is known.
    pub(super) vocab_size: Option<u64>,
    /// Names of the arrays beside the tokens, and the values beside padding.
    pub(super) tracks: Vec<String>,
    pub(super) track_pads: Vec<u8>,
    pub(super) remainder: Remainder,
    pub(super) fsync: bool,
    /// Input bytes between checkpoints.
    pub(super) checkpoint_bytes: u64,
}

/// Everything that decides how the rest is written; a checkpoint is this on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Input, byte and line to continue from.
    pub(super) input: usize,
    pub(super) byte: u64,
    pub(super) line: u64,
    /// Bytes of this input behind it, as they are stored.
    pub(super) stored: u64,
    pub(super) records: u64,
    pub(super) documents: u64,
    pub(super) tokens: u64,
    pub(super) dropped_tokens: u64,
    pub(super) padded_tokens: u64,
    /// Documents whose mask learns nothing.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) unlearned_documents: u64,
    /// Records that are left out.
    #[serde(default, skip_serializing_if = "Skipped::is_none")]
    pub(super) skipped: Skipped,
    pub(super) most_id: Option<i64>,
    /// What was packed, of texts that lie nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<Seen>,
    /// Tokens, and values of each track, that do not fill a sample yet.
    rest: Vec<u8>,
    rest_tracks: Vec<Vec<u8>>,
    /// How the format's writer continues.
    writer: Value,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Writes samples, or documents.
pub(super) struct Packer {
    packing: Packing,
    state: State,
    writer: Box<dyn RecordWriter>,
    checkpoints: Checkpoints,
    work: PathBuf,
    since: u64,
    last: Instant,
}

impl Packer {
    /// Continues from the checkpoint in the work folder, or begins.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn open(work: &Path, packing: Packing) -> Result<Self> {
        if let Some(state) = read_state(work, &packing) {
            match Self::start(work, packing.clone(), state, true) {
                Ok(packer) => return Ok(packer),
                // It may be mended before the next run.
                Err(e) if e.kind() == Kind::Io => return Err(e),
                Err(e) => windrow_core::warn!("cannot continue from the checkpoint, beginning again: {e:#}"),
            }
        }
        files::remove(work)?;
        files::make_folder(work)?;
        let state = State { rest_tracks: vec![Vec::new(); packing.track_pads.len()], ..State::default() };
        Self::start(work, packing, state, false)
    }

    fn start(work: &Path, packing: Packing, state: State, continues: bool) -> Result<Self> {
        let writer = packing.to.begin(&Begin {
            are_rows: false,
            work,
            name: &packing.name,
            out: &packing.out,
            corpus: Some(Corpus {
                inputs: &packing.inputs,
                sample_size: packing.sample_size,
                tracks: &packing.tracks,
            }),
            dtype: packing.dtype,
            channels: None,
            vocab_size: packing.vocab_size,
            appends_eos: false,
            has_mask: false,
            total_values: None,
            fsync: packing.fsync,
            append_to: None,
            checkpoint: continues.then_some(&state.writer),
        })?;
        Ok(Packer {
            checkpoints: Checkpoints::of(work, packing.fsync),
            work: work.to_path_buf(),
            packing,
            state,
            writer,
            since: 0,
            last: Instant::now(),
        })
    }

    /// How far it is.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Packs the next chunk. `is_end`: nothing follows it at all.
    pub(super) fn take(&mut self, chunk: &EncodedChunk, is_end: bool) -> Result<()> {
        let done = chunk.end_byte.saturating_sub(self.state.byte);
        self.state.documents += chunk.ends.len() as u64;
        self.state.unlearned_documents += chunk.unlearned;
        chunk.skipped.warn(self.state.skipped.count);
        self.state.skipped.extend(&chunk.skipped);
        self.state.most_id = self.state.most_id.max(chunk.most_id);
        match self.packing.sample_size {
            None => self.each_document(chunk)?,
            Some(size) => {
                // Whole samples of a chunk are handed on as they are; only what hangs over is joined.
                let whole = if chunk.tracks.is_empty() {
                    self.whole_samples(chunk.input, size, &chunk.tokens)?
                } else {
                    0
                };
                self.state.rest.extend_from_slice(&chunk.tokens[whole..]);
                for (rest, new) in self.state.rest_tracks.iter_mut().zip(&chunk.tracks) {
                    rest.extend_from_slice(new);
                }
                self.full_samples(chunk.input, size)?;
                if is_end {
                    self.end_remainder(chunk.input, size)?;
                }
            }
        }
        let state = &mut self.state;
        (state.byte, state.line, state.stored) = (chunk.end_byte, chunk.end_line, chunk.stored);
        state.seen = chunk.seen;
        if chunk.is_last {
            (state.input, state.byte, state.line, state.stored) = (chunk.input + 1, 0, 0, 0);
        }
        self.since += done;
        let is_due = self.since >= self.packing.checkpoint_bytes || self.last.elapsed() >= MOST_WAIT;
        // Never more of them than the disk takes.
        if is_due && !self.checkpoints.is_going() {
            self.begin_checkpoint()?;
        }
        Ok(())
    }

    /// Writes a checkpoint: whatever happens after it, a rerun continues from here.
    fn checkpoint(&mut self) -> Result<()> {
        self.begin_checkpoint()?;
        self.checkpoints.wait()
    }

    fn begin_checkpoint(&mut self) -> Result<()> {
        let mut disk = Disk::new(self.packing.fsync);
        self.state.writer = self.writer.checkpoint(&mut disk)?;
        let text =
            serde_json::to_vec(&self.state).map_err(|e| Error::io("write it", &self.work, e.into()))?;
        self.checkpoints.begin(text, disk)?;
        self.since = 0;
        self.last = Instant::now();
        Ok(())
    }

    /// Whether a rerun has somewhere to continue from.
    fn has_checkpoint(&mut self) -> bool {
        // One that failed does not count; the one before it does.
        let _ = self.checkpoints.wait();
        self.checkpoints.is_there()
    }

    /// Keeps all that was packed, for a rerun to continue from; whether there is anything.
    pub(super) fn keep(&mut self) -> bool {
        self.state.documents > 0 && self.checkpoint().is_ok()
    }

    /// That of all that was packed at most the share `most` was left out. `can_continue` becomes true where more were: a run that
    /// allows them has nothing to pack again.
    pub(super) fn judge(&mut self, most: Option<f64>, can_continue: &mut bool) -> Result<()> {
        let judged = self.state.skipped.judge(self.state.documents, most);
        if judged.is_err() {
            *can_continue = self.keep();
        }
        judged
    }

    /// Whether what is left after an error is worth keeping: a rerun continues from it.
    pub(super) fn is_worth_keeping(&mut self, error: &Error) -> bool {
        match error.kind() {
            Kind::Interrupted if self.keep() => true,
            // After a failed write the state in memory may be ahead of the files: only what was kept before counts.
            Kind::Interrupted | Kind::Io => self.has_checkpoint(),
            _ => false,
        }
    }

    /// What was packed, and the format's writer, which is to be finished.
    pub(super) fn finish(mut self) -> Result<(State, Box<dyn RecordWriter>)> {
        self.checkpoints.wait()?;
        Ok((self.state, self.writer))
    }

    fn add(&mut self, input: usize, bytes: &[u8], tracks: &[&[u8]]) -> Result<()> {
        let len = (bytes.len() / self.packing.width()) as u64;
        let (number, extras) = (self.state.records, Extras::new());
        self.writer.add(&Stored {
            number,
            bytes,
            len,
            extras: &extras,
            input,
            tracks,
            is_first: true,
            is_last: true,
        })?;
        self.state.records += 1;
        self.state.tokens += len;
        Ok(())
    }

    fn each_document(&mut self, chunk: &EncodedChunk) -> Result<()> {
        let (width, mut start) = (self.packing.width(), 0);
        let mut tracks: Vec<&[u8]> = Vec::with_capacity(chunk.tracks.len());
        for end in &chunk.ends {
            // Counted from bytes in memory, so it fits.
            let end = *end as usize;
            tracks.clear();
            tracks.extend(chunk.tracks.iter().map(|track| &track[start..end]));
            self.add(chunk.input, &chunk.tokens[start * width..end * width], &tracks)?;
            start = end;
        }
        Ok(())
    }

    // Completes the sample that is begun and writes all that follow whole; how many bytes of the tokens that took.
    fn whole_samples(&mut self, input: usize, size: u64, tokens: &[u8]) -> Result<usize> {
        let of_tokens = self.packing.sample_bytes(size);
        let head = (of_tokens - self.state.rest.len()) % of_tokens;
        if tokens.len() < head {
            return Ok(0);
        }
        let (head, tail) = tokens.split_at(head);
        self.state.rest.extend_from_slice(head);
        self.full_samples(input, size)?;
        let samples = tail.chunks_exact(of_tokens);
        let whole = tail.len() - samples.remainder().len();
        for sample in samples {
            self.add(input, sample, &[])?;
        }
        Ok(head.len() + whole)
    }

    fn full_samples(&mut self, input: usize, size: u64) -> Result<()> {
        let rest = std::mem::take(&mut self.state.rest);
        let rest_tracks = std::mem::take(&mut self.state.rest_tracks);
        let of_tokens = self.packing.sample_bytes(size);
        let of_track = of_tokens / self.packing.width();
        let samples = rest.chunks_exact(of_tokens);
        let (n, left) = (samples.len(), samples.remainder().to_vec());
        let mut tracks: Vec<&[u8]> = Vec::with_capacity(rest_tracks.len());
        for (i, sample) in samples.enumerate() {
            tracks.clear();
            tracks.extend(rest_tracks.iter().map(|track| &track[i * of_track..(i + 1) * of_track]));
            self.add(input, sample, &tracks)?;
        }
        self.state.rest = left;
        self.state.rest_tracks =
            rest_tracks.iter().map(|t| t[n * of_track.min(t.len())..].to_vec()).collect();
        Ok(())
    }

    fn end_remainder(&mut self, input: usize, size: u64) -> Result<()> {
        let width = self.packing.width();
        let left = (self.state.rest.len() / width) as u64;
        if left == 0 {
            return Ok(());
        }
        match self.packing.remainder {
            Remainder::Drop => {
                self.state.dropped_tokens = left;
                self.state.rest.clear();
                self.state.rest_tracks.iter_mut().for_each(Vec::clear);
                Ok(())
            }
            Remainder::Pad(id) => {
                for _ in left..size {
                    self.state.rest.extend_from_slice(&id.to_le_bytes()[..width]);
                    for (track, value) in self.state.rest_tracks.iter_mut().zip(&self.packing.track_pads) {
                        track.push(*value);
                    }
                }
                self.state.padded_tokens = size - left;
                self.full_samples(input, size)
            }
        }
    }
}

impl Packing {
    /// Bytes per token.
    fn width(&self) -> usize {
        self.dtype.size()
    }

    /// Bytes of the tokens of a sample.
    fn sample_bytes(&self, size: u64) -> usize {
        usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(self.width())
    }
}

fn read_state(work: &Path, packing: &Packing) -> Option<State> {
    let state: State = serde_json::from_slice(&Checkpoints::read(work)?).ok()?;
    let fits = state.rest_tracks.len() == packing.track_pads.len() && state.input <= packing.inputs.len();
    fits.then_some(state)
}
