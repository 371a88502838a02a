//! Packs encoded documents into samples, in order, and writes them with restart points.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::documents::{DocumentLayout, DocumentPlace, DocumentWriter};
use super::encode::EncodedChunk;
use super::tokenize::Remainder;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format;
use crate::manifest::FileRow;
use crate::output::Checkpoints;
use crate::output::ChecksumsWriter;
use crate::output::Disk;
use crate::output::{Growing, files};

const MOST_WAIT: Duration = Duration::from_secs(30);

/// What is packed into what.
#[derive(Clone, Debug)]
pub(super) struct Packing {
    /// The files to write, relative to the work folder: one per input, or a single one for all of them.
    pub(super) outputs: Vec<String>,
    /// Where the index rows go; `None` writes a stream without rows.
    pub(super) rows: Option<String>,
    /// Where the block checksums go; `None` where a layout of documents writes its own, or none.
    pub(super) sums: Option<String>,
    /// Tokens per sample; `None` makes each document one.
    pub(super) sample_size: Option<u64>,
    /// dtype of a token.
    pub(super) dtype: DType,
    /// Name of the folder that a layout of documents writes.
    pub(super) folder: String,
    /// Values beside the padding, one per track.
    pub(super) track_pads: Vec<u8>,
    pub(super) remainder: Remainder,
    pub(super) durable: bool,
    /// Input bytes between restart points.
    pub(super) checkpoint_bytes: u64,
}

/// Everything that decides how the rest is written; a restart point is this on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Input, byte and line to go on from.
    pub(super) input: usize,
    pub(super) byte: u64,
    pub(super) line: u64,
    /// Bytes of this input behind it, as they are stored.
    pub(super) stored: u64,
    /// Outputs that are complete.
    pub(super) finished: Vec<FileRow>,
    /// Size of the output that is being written.
    pub(super) output_size: u64,
    /// Outputs that hold a sample, in the order of their first one.
    pub(super) listed: Vec<usize>,
    pub(super) records: u64,
    pub(super) documents: u64,
    pub(super) tokens: u64,
    pub(super) dropped_tokens: u64,
    pub(super) padded_tokens: u64,
    pub(super) most_id: Option<i64>,
    /// Tokens, and values of each track, that do not fill a sample yet.
    rest: Vec<u8>,
    rest_tracks: Vec<Vec<u8>>,
    /// How a layout of documents goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Value>,
}

/// What a packer wrote.
pub(super) struct Packed {
    pub(super) state: State,
    /// The file of the index rows.
    pub(super) rows: Option<FileRow>,
    /// Those of the outputs and of the rows, to be completed.
    pub(super) sums: Option<ChecksumsWriter>,
    pub(super) writer: Option<Box<dyn DocumentWriter>>,
}

/// Writes samples, or documents.
pub(super) struct Packer {
    work: PathBuf,
    packing: Packing,
    state: State,
    output: Option<Growing>,
    rows: Option<Growing>,
    sums: Option<ChecksumsWriter>,
    row_batch: Vec<u8>,
    writer: Option<Box<dyn DocumentWriter>>,
    points: Checkpoints,
    /// Brings what was written since the last restart point.
    disk: Disk,
    since: u64,
    last: Instant,
}

impl Packer {
    /// Goes on from the restart point in the work folder, or begins.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn open(work: &Path, packing: Packing, layout: Option<&dyn DocumentLayout>) -> Result<Self> {
        if let Some(state) = read_state(work, &packing).filter(|s| s.kept.is_some() == layout.is_some()) {
            match Self::start(work, packing.clone(), layout, state) {
                Ok(packer) => return Ok(packer),
                Err(e) => log::warn!("cannot go on from the restart point, beginning again: {e}"),
            }
        }
        files::remove(work)?;
        files::make_folder(work)?;
        for path in packing.outputs.iter().chain(&packing.rows) {
            if let Some(folder) = work.join(path).parent() {
                files::make_folder(folder)?;
            }
        }
        let state = State { rest_tracks: vec![Vec::new(); packing.track_pads.len()], ..State::default() };
        Self::start(work, packing, layout, state)
    }

    fn start(
        work: &Path,
        packing: Packing,
        layout: Option<&dyn DocumentLayout>,
        state: State,
    ) -> Result<Self> {
        let place =
            DocumentPlace { work, name: &packing.folder, dtype: packing.dtype, durable: packing.durable };
        let writer = layout.map(|layout| layout.begin(&place, state.kept.as_ref())).transpose()?;
        for row in &state.finished {
            let path = work.join(&row.name);
            if files::size(&path) != Some(row.size) {
                return Err(Error::corrupt(format!("expected {} bytes", row.size)).at(path));
            }
        }
        let rows = packing
            .rows
            .as_ref()
            .map(|name| {
                Growing::at(work.join(name), state.records * format::location_row(0, 0, 0).len() as u64)
            })
            .transpose()?;
        let output = match state.output_size {
            0 => None,
            size => {
                let number = packing.output_of(state.input.min(state.finished.len()));
                Some(Growing::at(work.join(&packing.outputs[number]), size)?)
            }
        };
        let sums = packing.sums.as_ref().map(|name| ChecksumsWriter::at(work.join(name), &state.finished));
        Ok(Packer {
            work: work.to_path_buf(),
            points: Checkpoints::of(work, packing.durable),
            disk: Disk::new(packing.durable),
            sums: sums.transpose()?,
            packing,
            state,
            output,
            rows,
            row_batch: Vec::new(),
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
        let number = self.packing.output_of(chunk.input);
        if self.output.is_none() && self.writer.is_none() {
            self.output = Some(Growing::create(self.work.join(&self.packing.outputs[number]))?);
        }
        self.state.documents += chunk.ends.len() as u64;
        self.state.most_id = self.state.most_id.max(chunk.most_id);
        match (&self.packing.rows, self.packing.sample_size) {
            (None, _) if self.writer.is_some() => self.add_documents(chunk)?,
            (None, _) => self.put(&chunk.tokens)?,
            (Some(_), None) => self.each_document(number, chunk)?,
            (Some(_), Some(size)) => {
                // Whole samples of a chunk go to the file as they are; only what hangs over is joined.
                let whole = match chunk.tracks.is_empty() {
                    true => self.whole_samples(number, size, &chunk.tokens)?,
                    false => 0,
                };
                self.state.rest.extend_from_slice(&chunk.tokens[whole..]);
                for (rest, new) in self.state.rest_tracks.iter_mut().zip(&chunk.tracks) {
                    rest.extend_from_slice(new);
                }
                self.full_samples(number, size)?;
                if is_end {
                    self.end_remainder(number, size)?;
                }
            }
        }
        self.flush_rows()?;
        let state = &mut self.state;
        (state.byte, state.line, state.stored) = (chunk.end_byte, chunk.end_line, chunk.stored);
        if chunk.is_last {
            (state.input, state.byte, state.line, state.stored) = (chunk.input + 1, 0, 0, 0);
            if self.packing.is_one_per_input() || is_end {
                self.finish_output(number)?;
            }
        }
        self.since += done;
        let is_due = self.since >= self.packing.checkpoint_bytes || self.last.elapsed() >= MOST_WAIT;
        // Never more of them than the disk takes.
        if is_due && !self.points.is_going() {
            self.begin_checkpoint()?;
        } else if let (Some(output), true) = (&mut self.output, self.packing.durable) {
            output.begin_sync();
        }
        Ok(())
    }

    /// Writes a restart point: whatever happens after it, a rerun goes on from here.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.begin_checkpoint()?;
        self.points.wait()
    }

    fn begin_checkpoint(&mut self) -> Result<()> {
        self.state.output_size = self.output.as_ref().map_or(0, Growing::size);
        if let Some(sums) = &mut self.sums {
            // A thousandth of what is written would grow with it. A rerun that goes on makes these again.
            sums.begin(&self.output.as_mut().map_or_else(Vec::new, Growing::take_sums))?;
        }
        let growing =
            self.rows.iter_mut().chain(&mut self.output).chain(self.sums.as_mut().map(ChecksumsWriter::file));
        for file in growing {
            self.disk.bring(file.unsynced()?)?;
        }
        if let Some(writer) = &mut self.writer {
            self.state.kept = Some(writer.keep()?);
        }
        let text =
            serde_json::to_vec(&self.state).map_err(|e| Error::io("write it", &self.work, e.into()))?;
        let disk = std::mem::replace(&mut self.disk, Disk::new(self.packing.durable));
        self.points.begin(text, disk)?;
        self.since = 0;
        self.last = Instant::now();
        Ok(())
    }

    /// Whether a rerun has somewhere to go on from.
    pub(super) fn has_checkpoint(&mut self) -> bool {
        // One that failed does not count; the one before it does.
        let _ = self.points.wait();
        self.points.is_there()
    }

    /// Closes all files but those of a layout of documents, which is handed out. Where no input was, every output is
    /// there and empty.
    pub(super) fn finish(mut self) -> Result<Packed> {
        self.points.wait()?;
        if self.state.finished.len() < self.packing.outputs.len() {
            self.output = Some(match self.output.take() {
                Some(output) => output,
                None => Growing::create(self.work.join(&self.packing.outputs[self.state.finished.len()]))?,
            });
            self.finish_output(self.state.finished.len())?;
        }
        let mut rows = None;
        if let (Some(name), Some(file)) = (&self.packing.rows, self.rows.take()) {
            let file = file.finish(self.packing.durable)?;
            rows = Some(match &mut self.sums {
                Some(sums) => sums.add(name, file)?,
                None => file.row_called(name),
            });
        }
        self.disk.wait()?;
        Ok(Packed { state: self.state, rows, sums: self.sums, writer: self.writer })
    }

    fn finish_output(&mut self, number: usize) -> Result<()> {
        if let Some(output) = self.output.take() {
            let name = self.packing.outputs[number].clone();
            let file = output.finish_on(&mut self.disk)?;
            self.state.finished.push(match &mut self.sums {
                Some(sums) => sums.add(name, file)?,
                None => file.row_called(name),
            });
            self.state.output_size = 0;
        }
        Ok(())
    }

    fn add_documents(&mut self, chunk: &EncodedChunk) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let mut start = 0;
        for end in &chunk.ends {
            let end = *end as usize * self.packing.width();
            writer.add(&chunk.tokens[start..end])?;
            start = end;
        }
        self.state.tokens += (chunk.tokens.len() / self.packing.width()) as u64;
        self.state.records += chunk.ends.len() as u64;
        Ok(())
    }

    fn put(&mut self, tokens: &[u8]) -> Result<()> {
        self.state.tokens += (tokens.len() / self.packing.width()) as u64;
        self.output.as_mut().map_or(Ok(()), |output| output.write(tokens))
    }

    fn add_row(&mut self, number: usize, size: u64) {
        self.add_row_at(number, 0, size);
    }

    // A row for bytes that begin `ahead` of the file's end.
    fn add_row_at(&mut self, number: usize, ahead: u64, size: u64) {
        if self.state.listed.last() != Some(&number) {
            self.state.listed.push(number);
        }
        let file = self.state.listed.len() as u64 - 1;
        let byte = self.output.as_ref().map_or(0, Growing::size) + ahead;
        self.row_batch.extend_from_slice(&format::location_row(file, byte, size));
        self.state.records += 1;
    }

    fn flush_rows(&mut self) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.write(&self.row_batch)?;
        }
        self.row_batch.clear();
        Ok(())
    }

    fn each_document(&mut self, number: usize, chunk: &EncodedChunk) -> Result<()> {
        let mut start = 0;
        for end in &chunk.ends {
            // Counted from bytes in memory, so it fits.
            let end = *end as usize * self.packing.width();
            self.add_row(number, (end - start) as u64);
            self.put(&chunk.tokens[start..end])?;
            start = end;
        }
        Ok(())
    }

    // Completes the sample that is begun and writes all that follow whole; how many bytes of the tokens that took.
    fn whole_samples(&mut self, number: usize, size: u64, tokens: &[u8]) -> Result<usize> {
        let of_tokens = usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(self.packing.width());
        let head = (of_tokens - self.state.rest.len()) % of_tokens;
        if tokens.len() < head {
            return Ok(0);
        }
        let (head, tail) = tokens.split_at(head);
        self.state.rest.extend_from_slice(head);
        self.full_samples(number, size)?;
        let whole = tail.len() - tail.len() % of_tokens;
        for i in 0..whole / of_tokens {
            self.add_row_at(number, (i * of_tokens) as u64, of_tokens as u64);
        }
        self.put(&tail[..whole])?;
        Ok(head.len() + whole)
    }

    fn full_samples(&mut self, number: usize, size: u64) -> Result<()> {
        let n_tracks = self.packing.track_pads.len();
        let rest = std::mem::take(&mut self.state.rest);
        let rest_tracks = std::mem::take(&mut self.state.rest_tracks);
        let of_tokens = usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(self.packing.width());
        let of_track = of_tokens / self.packing.width();
        let samples = rest.chunks_exact(of_tokens);
        let left = samples.remainder().to_vec();
        let n = samples.len();
        for (i, sample) in samples.enumerate() {
            self.add_row(number, (of_tokens + n_tracks * of_track) as u64);
            self.put(sample)?;
            for track in &rest_tracks {
                let values = &track[i * of_track..(i + 1) * of_track];
                self.output.as_mut().map_or(Ok(()), |output| output.write(values))?;
            }
        }
        self.state.rest = left;
        self.state.rest_tracks =
            rest_tracks.iter().map(|t| t[n * of_track.min(t.len())..].to_vec()).collect();
        Ok(())
    }

    fn end_remainder(&mut self, number: usize, size: u64) -> Result<()> {
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
                self.full_samples(number, size)
            }
        }
    }
}

impl Packing {
    /// Bytes per token.
    fn width(&self) -> usize {
        self.dtype.size()
    }

    fn is_one_per_input(&self) -> bool {
        self.rows.is_some()
    }

    fn output_of(&self, input: usize) -> usize {
        if self.is_one_per_input() { input } else { 0 }
    }
}

fn read_state(work: &Path, packing: &Packing) -> Option<State> {
    let state: State = serde_json::from_slice(&Checkpoints::read(work)?).ok()?;
    let fits = state.finished.len() <= packing.outputs.len()
        && state.rest_tracks.len() == packing.track_pads.len()
        && state.listed.iter().all(|n| *n < packing.outputs.len())
        && (state.output_size == 0 || state.finished.len() < packing.outputs.len());
    fits.then_some(state)
}
