//! The records of a source in tasks: each copies a range of them; joined, they are the files of one conversion.

use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use windrow_core::format::write::{PartFile, Parts, WriteFormat, WriteOptions};
use windrow_core::format::{Table, in_parts};
use windrow_core::manifest::{FileRow, Manifest, Part};
use windrow_core::source::{Kind, Schema, Source};
use windrow_core::store::{is_url, without_secrets};
use windrow_core::{Buffer, DType, Error, Progress, Result, Span, Watch, check, store};

use super::job::{CONVERT, Job, JobInput, Tasks, absolute, refuse_secrets, tasks_of};
use super::merge::gathered;
use super::part::is_whole;
use super::place::{Draft, Place};
use super::task::{changed, run_task, show_values};
use crate::Report;
use crate::write::{
    Origin, PART, convert_from, copy_part, manifest_of, refuse_empty, stored_dtype, sum_of_lengths,
};

/// What records are converted, and into what.
#[derive(Clone, Copy)]
pub struct Conversion<'a> {
    /// The records.
    pub source: &'a dyn Source,
    /// The format of the files that are joined in the end; it decides the dtype of the parts.
    pub format: &'a dyn WriteFormat,
    /// How they are written.
    pub options: &'a WriteOptions,
}

impl Conversion<'_> {
    fn schema(&self) -> &Schema {
        self.source.schema()
    }

    // In which the writer of the format is handed numbers.
    fn dtype(&self) -> Result<DType> {
        let stored = stored_dtype(self.schema(), self.format, self.options)?;
        Ok(self.format.info().handed_dtype.unwrap_or(stored))
    }

    // What decides the parts.
    fn manifest(&self) -> Result<Manifest> {
        let mut manifest = manifest_of(self.source, self.format.name())?;
        let dtype = self.dtype()?;
        manifest.dtype = Some(dtype);
        if let Some(of) = self.options.of.as_ref().filter(|_| dtype.is_integer()) {
            manifest.take_ids_of(of);
        }
        Ok(manifest)
    }

    fn check(&self) -> Result<()> {
        let schema = self.schema();
        let hint = "open the data with @column@, which chooses numbers; `windrow prep plan tokenize` makes token IDs of a text";
        match schema.kind {
            Kind::Numbers => {}
            Kind::Json => return Err(Error::config("the records are JSON texts, not numbers").hint(hint)),
            Kind::Rows => return schema.need_numbers().map_err(|e| e.hint(hint)),
        }
        match schema.tracks.first() {
            None => Ok(()),
            Some(track) => Err(Error::config(format!(
                "parts hold values only, and the array {:?} runs beside these",
                track.made_of.first().unwrap_or(&track.name)
            ))
            .field("tracks")
            .hint("train on the data as it is: windrow opens it, and views deliver the array; @mask_column=none@ leaves it out")),
        }
    }
}

/// Plans to convert the records of a source, opened from `path`, in tasks of about `task_bytes` of their values, whose parts go
/// into the folder `out`. Nothing is read but lengths. `settings` is what the workers open the source by.
///
/// # Errors
/// `Config` for records that are not numbers, for arrays beside them, and for what the format cannot hold; `Unsupported` for a URL
/// with a query or a password; what the source says.
pub fn plan_convert(conversion: &Conversion<'_>, path: &Path, tasks: Tasks<'_>) -> Result<Job> {
    tasks.check()?;
    refuse_secrets(path)?;
    conversion.check()?;
    refuse_empty(conversion.source, conversion.options)?;
    let mut manifest = conversion.manifest()?;
    let source = conversion.source;
    let width = (conversion.dtype()?.size() * conversion.schema().channels.unwrap_or(1)) as u64;
    let bytes = sum_of_lengths(source)?.saturating_mul(width);
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let size = source.files().iter().map(|file| file.size).sum();
    let input = JobInput {
        row: FileRow { name: without_secrets(&name), size, ..FileRow::default() },
        path: if is_url(path) { path.to_path_buf() } else { absolute(path) },
        // A task without a record would be for nothing.
        tasks: tasks_of(bytes, tasks.bytes).min(source.len()).max(1),
        files: std::mem::take(&mut manifest.inputs),
        ..JobInput::default()
    };
    Ok(Job::of(CONVERT, vec![input], manifest, tasks))
}

/// What a worker has to know to run tasks that convert.
pub struct ConvertWorker<'a> {
    /// The formats.
    pub table: Table,
    /// The folder of the job.
    pub place: &'a dyn Place,
    /// The source of the job as it is here and now.
    pub conversion: Conversion<'a>,
}

impl ConvertWorker<'_> {
    /// Runs a task; whether it had to.
    ///
    /// # Errors
    /// `Stale` when the records are not those of the job; `Config` for a number that does not fit; as [`Worker::run`](super::Worker::run).
    pub fn run(&self, job: &Job, task: u64, watch: &dyn Watch) -> Result<bool> {
        let layout = in_parts(self.table)?;
        run_task(self.place, layout, job, task, watch, |watch| {
            store::whole_at_once(|| self.make(job, task, layout, watch))
        })
    }

    fn make(&self, job: &Job, task: u64, layout: &dyn Parts, watch: &dyn Watch) -> Result<()> {
        let (_, input, number) = job.input_of(task)?;
        is_planned(&self.conversion, job)?;
        let Conversion { source, .. } = self.conversion;
        let range = Job::records_of(input, number, source.len());
        let draft = |what| Draft::begin(self.place, layout.file(task, what));
        let (mut to, mut lengths) = (draft(PartFile::Values)?, draft(PartFile::Lengths)?);
        let values = copied(&self.conversion, range.clone(), &mut to, &mut lengths, watch)?;
        let part = Part {
            version: 1,
            job: job.hash.clone(),
            task,
            input: input.row.name.clone(),
            lines: [range.start, range.end],
            records: range.end - range.start,
            values,
            dtype: job.dtype,
            channels: self.conversion.schema().channels.map(|channels| channels as u64),
            ..Part::default()
        };
        show_values(self.place, layout, part, to, lengths)
    }
}

// Copies records; how many values they have.
fn copied(
    conversion: &Conversion<'_>,
    range: Range<u64>,
    to: &mut Draft<'_>,
    lengths: &mut Draft<'_>,
    watch: &dyn Watch,
) -> Result<u64> {
    let (source, dtype) = (conversion.source, conversion.dtype()?);
    let (mut numbers, mut scratch, mut total) = (Buffer::zeroed(0), Vec::new(), 0u64);
    for record in range.clone() {
        let len = source.length(record)?;
        let length = u32::try_from(len).map_err(|_| {
            Error::config(format!("a record of {len} values; a part holds at most {}", u32::MAX))
                .record(record)
        })?;
        let mut start = 0;
        while start < len {
            check(watch)?;
            let values = source.read(Span { record, start, len: PART.min(len - start) }, &mut scratch)?;
            let count = values.bytes.len() / values.element.size();
            if !numbers.resize_within(count * dtype.size()) {
                numbers = Buffer::zeroed(count * dtype.size());
            }
            copy_part(&values, start, numbers.bytes_mut(), dtype, record)?;
            to.write(numbers.bytes())?;
            start += PART.min(len - start);
        }
        lengths.write(&length.to_le_bytes())?;
        total += len;
        check(watch)?;
        let (done, all) = (record + 1 - range.start, range.end - range.start);
        watch.progress(Progress { done_bytes: done, total_bytes: all, records: done });
    }
    Ok(total)
}

// That the records are those of the job.
fn is_planned(conversion: &Conversion<'_>, job: &Job) -> Result<()> {
    let found = conversion.manifest()?;
    for name in ["from_format", "from_fingerprint"] {
        let of = |options: &serde_json::Map<String, Value>| options.get(name).cloned().unwrap_or_default();
        let (found, planned) = (of(&found.options), of(&job.options));
        if let (true, Some(input)) = (found != planned, job.inputs.first()) {
            return Err(changed(input, &format!("{name} {planned}, found {found}")));
        }
    }
    job.check(&found)
}

/// Writes what [`convert`](crate::convert()) would have written into `out`, out of the parts: the source says what is beside the
/// values, which are not read from it.
///
/// # Errors
/// As [`convert`](crate::convert()); `Stale` when a task is not done; `Corrupt` when a part is not what its manifest says.
pub fn join_convert(worker: &ConvertWorker<'_>, job: &Job, out: &Path, watch: &dyn Watch) -> Result<Report> {
    let layout = in_parts(worker.table)?;
    let Conversion { source, format, options } = worker.conversion;
    is_planned(&worker.conversion, job)?;
    let (manifest, rows) = gathered(worker.place, layout, job, watch)?;
    let n = source.len();
    if manifest.records != Some(n) {
        let found = manifest.records.unwrap_or(0);
        return Err(Error::corrupt(format!("the parts hold {found} records, the source {n}")).at(&job.out));
    }
    is_whole(worker.place, layout, &rows, watch)?;
    let values = layout.records(worker.place.store(), &manifest, &rows)?;
    // Another path may lead to them here than where the job was planned.
    let origin = Origin::of(source)?.of_files(job.inputs.iter().flat_map(JobInput::rows).collect());
    convert_from(source, values.as_ref(), &origin, out, format, options, watch)
}
