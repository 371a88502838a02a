//! Files in tasks: each makes the records of a run of files, one of a file; joined, they are those of one run.

use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value, json};
use windrow_core::format::write::{PartFile, Parts};
use windrow_core::format::{Table, in_parts};
use windrow_core::manifest::{FileRow, Manifest, Part};
use windrow_core::source::SharedSource;
use windrow_core::store::{Local, Store, entry_if_there};
use windrow_core::{Error, Result, Watch};

use super::job::{ENCODE, Job, JobInput, Tasks, absolute};
use super::merge::{FAILED, gathered};
use super::part::is_whole;
use super::place::{Draft, Place};
use super::task::{changed, run_task, show_values};

/// Plans to make a record of numbers of each of these files of a folder, in tasks of about `task_bytes` of files, whose parts go
/// into the folder `out`. Nothing is read but sizes. `manifest` says what decides the records.
///
/// # Errors
/// `Config` for `task_bytes` of 0; `NotFound` for a file that is not there.
pub fn plan_encode(folder: &Path, files: &[String], manifest: Manifest, tasks: Tasks<'_>) -> Result<Job> {
    tasks.check()?;
    let store = Local::new(folder);
    let row = |name: &String| {
        let entry = store.entry(name)?;
        let (size, modified_ns) = (entry.size, entry.modified_ns);
        Ok(FileRow { name: name.clone(), size, modified_ns, ..FileRow::default() })
    };
    let files = files.iter().map(row).collect::<Result<Vec<_>>>()?;
    let last = places(&files, tasks.bytes).last().unwrap_or(0);
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
    let size = files.iter().map(|file| file.size).sum();
    let input = JobInput {
        row: FileRow { name, size, ..FileRow::default() },
        path: absolute(folder),
        tasks: last + 1,
        files,
        ..JobInput::default()
    };
    Ok(Job::of(ENCODE, vec![input], manifest, tasks))
}

// The task of each file: the one that its first byte is in, where all files follow each other. Of a file that is longer than a
// task, the tasks behind it are empty.
fn places(files: &[FileRow], task_bytes: u64) -> impl Iterator<Item = u64> {
    files.iter().scan(0u64, move |before, file| {
        let task = *before / task_bytes;
        *before = before.saturating_add(file.size);
        Some(task)
    })
}

// The files of a task.
fn files_of(input: &JobInput, task_bytes: u64, number: u64) -> Range<usize> {
    let before =
        |number: u64| places(&input.files, task_bytes.max(1)).take_while(|task| *task < number).count();
    before(number)..before(number + 1)
}

/// What makes records of files, such as a codec.
pub trait EncodeFiles {
    /// Hands the record of each of these files of a folder on, in order, and leaves out those that have none.
    ///
    /// # Errors
    /// What is not a file's fault, or may be over when it is tried again; `Interrupted`.
    fn encode(
        &self,
        folder: &Path,
        files: &[FileRow],
        out: &mut Records<'_>,
        watch: &dyn Watch,
    ) -> Result<()>;
}

/// The records of a part on their way.
pub struct Records<'p> {
    values: Draft<'p>,
    lengths: Draft<'p>,
    /// Bytes of a value.
    width: u64,
    n: u64,
    n_values: u64,
    left_out: Vec<Value>,
}

impl Records<'_> {
    /// Takes a record: whole values, little-endian, of the job's dtype and channels.
    ///
    /// # Errors
    /// `Config` for a part of a value, and for more of them than a part counts; `Io`.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64 / self.width;
        if len * self.width != bytes.len() as u64 {
            return Err(Error::config(format!("{} bytes of values of {} bytes", bytes.len(), self.width)));
        }
        let length = u32::try_from(len).map_err(|_| {
            Error::config(format!("a record of {len} values; a part holds at most {}", u32::MAX))
                .record(self.n)
        })?;
        self.values.write(bytes)?;
        self.lengths.write(&length.to_le_bytes())?;
        (self.n, self.n_values) = (self.n + 1, self.n_values + len);
        Ok(())
    }

    /// Leaves out a file and reports why.
    pub fn leave_out(&mut self, file: &str, error: &Error) {
        self.left_out.push(json!({ "file": file, "error": format!("{error:#}") }));
    }
}

/// What a worker has to know to run tasks that encode files.
pub struct EncodeWorker<'a> {
    /// The formats.
    pub table: Table,
    /// The folder of the job.
    pub place: &'a dyn Place,
    /// What decides the records here and now.
    pub here: &'a Manifest,
    /// What makes them.
    pub encode: &'a dyn EncodeFiles,
}

impl EncodeWorker<'_> {
    /// Runs a task; whether it had to.
    ///
    /// # Errors
    /// `Stale` when a file is not the one of the job; `Mismatch` when what decides the records is not; as [`Worker::run`](super::Worker::run).
    pub fn run(&self, job: &Job, task: u64, watch: &dyn Watch) -> Result<bool> {
        let layout = in_parts(self.table)?;
        run_task(self.place, layout, job, task, watch, |watch| self.make(job, task, layout, watch))
    }

    fn make(&self, job: &Job, task: u64, layout: &dyn Parts, watch: &dyn Watch) -> Result<()> {
        let (_, input, number) = job.input_of(task)?;
        job.check(self.here)?;
        let range = files_of(input, job.task_bytes, number);
        let files = &input.files[range.clone()];
        are_planned(input, files)?;
        let channels = self.here.channels;
        let draft = |what| Draft::begin(self.place, layout.file(task, what));
        let mut records = Records {
            values: draft(PartFile::Values)?,
            lengths: draft(PartFile::Lengths)?,
            width: job.dtype.map_or(1, |dtype| dtype.size() as u64) * channels.unwrap_or(1),
            n: 0,
            n_values: 0,
            left_out: Vec::new(),
        };
        self.encode.encode(&input.path, files, &mut records, watch)?;
        // They were read in the meantime.
        are_planned(input, files)?;
        let Records { values, lengths, n, n_values, left_out, .. } = records;
        let mut statistics = Map::new();
        if !left_out.is_empty() {
            statistics.insert(FAILED.to_string(), left_out.into());
        }
        let part = Part {
            version: 1,
            job: job.hash.clone(),
            task,
            input: input.row.name.clone(),
            lines: [range.start as u64, range.end as u64],
            records: n,
            values: n_values,
            dtype: job.dtype,
            channels,
            statistics,
            ..Part::default()
        };
        show_values(self.place, layout, part, values, lengths)
    }
}

// That files are those of the job.
fn are_planned(input: &JobInput, files: &[FileRow]) -> Result<()> {
    let store = Local::new(&input.path);
    for row in files {
        let name = &row.name;
        match entry_if_there(&store, name)? {
            None => return Err(changed(input, &format!("{name} is gone"))),
            Some(entry) if entry.size != row.size => {
                let (planned, found) = (row.size, entry.size);
                return Err(changed(input, &format!("{name} had {planned} bytes, now {found}")));
            }
            Some(entry) if entry.modified_ns != row.modified_ns => {
                return Err(changed(input, &format!("{name} was written since")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The records of all parts, and the manifest that says which files are left out of them.
///
/// # Errors
/// `Stale` when a task is not done; `Mismatch` when what decides the records is another one here; `Corrupt` when a part is not
/// what its manifest says.
pub fn encoded(worker: &EncodeWorker<'_>, job: &Job, watch: &dyn Watch) -> Result<(Manifest, SharedSource)> {
    let layout = in_parts(worker.table)?;
    job.check(worker.here)?;
    let (manifest, rows) = gathered(worker.place, layout, job, watch)?;
    is_whole(worker.place, layout, &rows, watch)?;
    let records = layout.records(worker.place.store(), &manifest, &rows)?;
    Ok((manifest, records))
}

/// That the files of a folder are those that a job of them was planned with.
///
/// # Errors
/// `Stale` naming the first that is not.
pub fn check_files(job: &Job, files: &[String]) -> Result<()> {
    let Some(input) = job.inputs.first() else { return Ok(()) };
    let planned = input.files.iter().map(|row| row.name.as_str());
    match planned.clone().zip(files).find(|(planned, found)| planned != found) {
        Some((planned, found)) => Err(changed(input, &format!("{found} in the place of {planned}"))),
        None if input.files.len() != files.len() => {
            Err(changed(input, &format!("{} files, found {}", input.files.len(), files.len())))
        }
        None => are_planned(input, &input.files),
    }
}
