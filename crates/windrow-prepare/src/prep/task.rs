//! One task of a job: what it reads, and the part that it makes of it.

use serde_json::{Map, json};
use windrow_core::format::Table;
use windrow_core::format::in_parts;
use windrow_core::format::write::{PartFile, Parts};
use windrow_core::manifest::{FileRow, Part};
use windrow_core::output::Finished;
use windrow_core::threads::cores;
use windrow_core::{Error, Kind, Progress, Result, Watch, check};

use super::job::{Job, JobInput};
use super::part::{name_of, part_of};
use super::place::{Draft, Place, is_there};
use super::ranges::{lines_before, owned};
use super::running::Reporting;
use crate::chunks::Chunks;
use crate::encode::{Encode, EncodedChunk};
use crate::input::Input;
use crate::pipeline::{self, Work};
use crate::places::{Places, Stores};
use crate::skipped::Skipped;
use crate::text_input::TextInput;
use crate::tokenize::{TokenizeOptions, find, rules, wanted};

/// Input bytes that a thread encodes at a time.
const CHUNK: usize = 1 << 20;

/// What a worker has to know to run tasks of a job.
pub struct Worker<'a> {
    /// The formats that are read.
    pub table: Table,
    /// Where URLs of inputs lead.
    pub stores: &'a dyn Stores,
    /// The folder of the job.
    pub place: &'a dyn Place,
    /// Makes the IDs.
    pub encode: &'a dyn Encode,
    /// How: with the options of the job, and the threads of this worker.
    pub options: &'a TokenizeOptions,
}

impl Worker<'_> {
    /// Runs a task; whether it had to: where its part is there already, nothing is done.
    ///
    /// What is shown is the same whoever runs it, however often, and at the same time.
    ///
    /// # Errors
    /// `Stale` when the input is not the one of the job; `Mismatch` when the tokenizer or an option is not, and when another
    /// run of this task gave other bytes; as [`tokenize`](crate::tokenize()); `Interrupted`; `Io`.
    pub fn run(&self, job: &Job, task: u64, watch: &dyn Watch) -> Result<bool> {
        let layout = in_parts(self.table)?;
        run_task(self.place, layout, job, task, watch, |watch| self.make(job, task, layout, watch))
    }

    fn make(&self, job: &Job, task: u64, layout: &dyn Parts, watch: &dyn Watch) -> Result<()> {
        let rules = rules(self.encode, self.options)?;
        let (index, input, number) = job.input_of(task)?;
        let texts = [self.input(input)?];
        let here = wanted(&texts, &rules, self.encode, self.options);
        job.check(&here)?;
        is_as_planned(&texts[0], input)?;
        let [text] = texts;
        let (text, from, to) = match text {
            TextInput::Lines(lines) if !lines.is_compressed() => {
                let stream = lines.stream(0)?;
                let range = match stream.plain() {
                    Some(object) => owned(object, job.bytes_of(input, number))?,
                    None => 0..lines.row.size,
                };
                (TextInput::Lines(lines.up_to(range.end)), range.start, Some(range.end))
            }
            TextInput::Lines(lines) => (TextInput::Lines(lines), 0, None),
            TextInput::Rows(rows) => {
                let range = Job::records_of(input, number, rows.len());
                (TextInput::Rows(rows.up_to(range.end)), range.start, Some(range.end))
            }
        };
        let is_rows = matches!(text, TextInput::Rows(_));
        let texts = [text];
        let draft = |what| Draft::begin(self.place, layout.file(task, what));
        let mut made = Made {
            values: draft(PartFile::Values)?,
            lengths: draft(PartFile::Lengths)?,
            records: 0,
            written: 0,
            most_id: None,
            skipped: Skipped::default(),
            behind: (0, 0),
        };
        let names = [texts[0].display()];
        let work = Work { encode: self.encode, rules: &rules, inputs: &texts, names: &names };
        let (byte, line) = if is_rows { (0, from) } else { (from, 0) };
        let mut chunks = Chunks::new(&texts, CHUNK, 0, byte, line).skipping(rules.skips);
        let total_bytes = match (is_rows, to) {
            (false, Some(to)) => to - from,
            _ => input.row.size / input.tasks.max(1),
        };
        let mut take = |chunk: &EncodedChunk| {
            made.take(chunk)?;
            let done_bytes = if is_rows { 0 } else { chunk.end_byte.saturating_sub(from).min(total_bytes) };
            watch.progress(Progress { done_bytes, total_bytes, records: made.records });
            Ok(())
        };
        let mut ask = || check(watch);
        let threads = self.options.num_threads.unwrap_or_else(cores);
        let done = if self.encode.parallel() {
            pipeline::in_parallel(chunks, threads, &work, &mut ask, &mut take)
        } else {
            pipeline::in_line(&mut |room| chunks.read(room), &work, &mut ask, &mut take)
        };
        done.and_then(|()| ask()).map_err(|e| numbered(e, &texts[0], from))?;
        let width = rules.dtype.size() as u64;
        let mut statistics = Map::from_iter([("documents".to_string(), json!(made.records))]);
        // Of lines they are numbered within the part: those before it are known where all parts are.
        made.skipped.write(&mut statistics);
        if let Some(first) = made.skipped.first.first() {
            let (n, file, error) =
                (made.skipped.count, first.file.as_deref().unwrap_or_default(), &first.error);
            let at =
                first.byte.map_or_else(|| format!("record {}", first.record), |byte| format!("byte {byte}"));
            windrow_core::warn!("task {task}: {n} damaged records are left out, first {file}, {at}: {error}");
        }
        let behind = if is_rows { made.behind.1 } else { made.behind.0 };
        let part = Part {
            version: 1,
            job: job.hash.clone(),
            task,
            input: job.inputs[index].row.name.clone(),
            lines: [from, to.unwrap_or(behind)],
            records: made.records,
            values: made.written / width,
            dtype: Some(rules.dtype),
            channels: None,
            most_id: made.most_id,
            files: Vec::new(),
            statistics,
        };
        show_values(self.place, layout, part, made.values, made.lengths)
    }

    // The input as it is here and now.
    fn input(&self, input: &JobInput) -> Result<TextInput> {
        let places = Places(self.stores);
        if !input.is_rows() {
            return Input::of(self.table, places, &input.path, &input.row.name).map(TextInput::Lines);
        }
        let options = TokenizeOptions { split: input.split.clone(), ..self.options.clone() };
        let paths = [input.path.clone()];
        let (_, found) = find(self.table, places, &paths, self.encode.takes(), &options)?;
        match found.into_iter().next().flatten() {
            Some(rows) => Ok(TextInput::Rows(rows.named(&input.row.name))),
            None => Err(changed(input, "it holds lines now, not rows")),
        }
    }
}

/// Runs a task where its part is not there; whether it had to. Why it failed is written down.
pub(super) fn run_task(
    place: &dyn Place,
    layout: &dyn Parts,
    job: &Job,
    task: u64,
    watch: &dyn Watch,
    make: impl FnOnce(&dyn Watch) -> Result<()>,
) -> Result<bool> {
    job.input_of(task)?;
    if part_of(place, layout, job, task)?.is_some() {
        return Ok(false);
    }
    let reporting = Reporting::begin(place, layout.file(task, PartFile::Running), &job.hash, watch);
    let made = make(&reporting);
    drop(reporting);
    let failure = layout.file(task, PartFile::Failure);
    match &made {
        Ok(()) if is_there(place, &failure)? => place.remove(&failure)?,
        Ok(()) => {}
        Err(e) if e.kind() == Kind::Interrupted => {}
        Err(e) => {
            let text =
                json!({ "job": job.hash, "task": task, "kind": e.kind().name(), "error": format!("{e:#}") });
            // The error itself matters more.
            let _ = place.replace(&failure, (text.to_string() + "\n").as_bytes());
        }
    }
    made.map(|()| true)
}

/// Shows a part of values.
pub(super) fn show_values(
    place: &dyn Place,
    layout: &dyn Parts,
    part: Part,
    mut values: Draft<'_>,
    lengths: Draft<'_>,
) -> Result<()> {
    let finished = values.finish()?;
    let mut sums = Draft::begin(place, layout.file(part.task, PartFile::Sums))?;
    sums.write(&finished.sums)?;
    let files = vec![
        (PartFile::Values, values, Some(finished)),
        (PartFile::Lengths, lengths, None),
        (PartFile::Sums, sums, None),
    ];
    show(place, layout, part, files)
}

/// Completes the files of a part and shows them; then, once their names are on the disk, what names them.
pub(super) fn show(
    place: &dyn Place,
    layout: &dyn Parts,
    mut part: Part,
    files: Vec<(PartFile, Draft<'_>, Option<Finished>)>,
) -> Result<()> {
    let task = part.task;
    let mut drafts = Vec::with_capacity(files.len());
    for (what, mut draft, finished) in files {
        let row = match finished {
            Some(finished) => finished.row,
            None => draft.finish()?.row,
        };
        part.files.push(FileRow { name: name_of(layout, task, what), modified_ns: None, ..row });
        drafts.push(draft);
    }
    let mut manifest = Draft::begin(place, layout.file(task, PartFile::Manifest))?;
    manifest.write(part.to_text().as_bytes())?;
    manifest.finish()?;
    let shown = drafts.into_iter().try_for_each(Draft::show);
    // Of a killed attempt too: nothing but the part is there once it is done.
    let is_over = || place.remove(&layout.file(task, PartFile::Running));
    let shown = shown.and_then(|()| place.settle()).and_then(|()| is_over()).and_then(|()| manifest.show());
    shown.and_then(|()| place.settle()).map_err(|e| match e.kind() {
        // Its message alone: the place is named once.
        Kind::Exists => Error::mismatch(format!("two runs of task {task} gave different bytes: {}", e.message()))
            .at(e.place().file.clone().unwrap_or_default())
            .hint("a machine or a program differs from the others: find out which, remove the file with the wrong bytes, and run the task again"),
        _ => e,
    })
}

/// What is made of a part so far.
struct Made<'p> {
    values: Draft<'p>,
    lengths: Draft<'p>,
    records: u64,
    /// Bytes of the values.
    written: u64,
    most_id: Option<i64>,
    skipped: Skipped,
    /// Byte and record behind what was read.
    behind: (u64, u64),
}

impl Made<'_> {
    fn take(&mut self, chunk: &EncodedChunk) -> Result<()> {
        let (mut start, mut lengths) = (0, Vec::with_capacity(chunk.ends.len() * 4));
        for end in &chunk.ends {
            let length = u32::try_from(end - start).map_err(|_| {
                Error::config(format!(
                    "a document of {} tokens; a part holds at most {}",
                    end - start,
                    u32::MAX
                ))
                .record(self.records + (lengths.len() / 4) as u64)
            })?;
            lengths.extend_from_slice(&length.to_le_bytes());
            start = *end;
        }
        self.values.write(&chunk.tokens)?;
        self.lengths.write(&lengths)?;
        self.records += chunk.ends.len() as u64;
        self.written += chunk.tokens.len() as u64;
        self.most_id = self.most_id.max(chunk.most_id);
        self.skipped.extend(&chunk.skipped);
        self.behind = (chunk.end_byte, chunk.end_line);
        Ok(())
    }
}

/// That the input is the one of the job.
pub(super) fn is_as_planned(found: &TextInput, planned: &JobInput) -> Result<()> {
    let found = found.files();
    let planned_rows = planned.rows();
    if found.len() != planned_rows.len() {
        return Err(changed(planned, &format!("{} files, found {}", planned_rows.len(), found.len())));
    }
    for (found, row) in found.iter().zip(&planned_rows) {
        if found.size != row.size {
            return Err(changed(planned, &format!("{} bytes, found {}", row.size, found.size)));
        }
        if found.modified_ns != row.modified_ns || found.etag != row.etag {
            return Err(changed(planned, "its time of change or version is another one"));
        }
    }
    Ok(())
}

pub(super) fn changed(input: &JobInput, how: &str) -> Error {
    Error::new(Kind::Stale, format!("the input changed since the job was planned: {how}"))
        .at(&input.path)
        .hint("plan the job again, into a folder of its own")
}

// Lines are numbered where somebody asks: those before the task's are counted now.
fn numbered(error: Error, input: &TextInput, from: u64) -> Error {
    let (TextInput::Lines(lines), Some(record)) = (input, error.place().record) else { return error };
    let before = match lines.stream(0).as_ref().map(|stream| stream.plain()) {
        Ok(Some(object)) if from > 0 => lines_before(object, from),
        _ => Ok(0),
    };
    match before {
        Ok(before) => error.record(record + before),
        Err(_) => error,
    }
}
