//! The byte-offset index as tasks: each finds the lines of a range of bytes; joined, their rows are those of one run.

use std::path::Path;

use windrow_core::format::write::{PartFile, Parts};
use windrow_core::format::{Table, in_parts, line_index};
use windrow_core::manifest::{FileRow, Part};
use windrow_core::output::{files, hex};
use windrow_core::store::{is_url, open_if_there};
use windrow_core::{Error, Kind, Progress, Result, Watch, check};
use xxhash_rust::xxh3::xxh3_64;

use super::job::{INDEX, Job, JobInput, Tasks, absolute, refuse_secrets, tasks_of};
use super::part::{file_of, part_of, read_whole};
use super::place::{Draft, Place};
use super::plan::kept;
use super::ranges::owned;
use super::task::{is_as_planned, run_task, show};
use crate::Report;
use crate::index::{IndexOptions, Rows, finish, inputs_below, no_lines, publish, wanted};
use crate::input::Input;
use crate::lines::LineScan;
use crate::places::{Places, Stores};
use crate::text_input::TextInput;

/// Bytes of a row of a part: the number of the input, the first byte and the size of a line.
pub(super) const ROW: u64 = 24;
/// Bytes that are read at a time.
const PART: u64 = 1 << 20;

/// Plans to index the lines below `base` in tasks of about `task_bytes`, whose parts go into the folder `out`.
///
/// # Errors
/// As [`index`](crate::index()) before anything is read; `Unsupported` for a compressed file, which one run expands, and for a URL with
/// a query or a password.
pub fn plan_index(
    table: Table,
    stores: &dyn Stores,
    base: &Path,
    options: &IndexOptions,
    tasks: Tasks<'_>,
) -> Result<Job> {
    let format = line_index(table)?;
    format.check_folder_name("index_folder", &options.index_folder)?;
    tasks.check()?;
    if options.checksum {
        return Err(Error::config("hashes of whole files are not taken in tasks").field("checksum"));
    }
    refuse_secrets(base)?;
    let places = Places(stores);
    let inputs = inputs_below(table, places, base, &options.index_folder)?;
    if let Some(input) = inputs.iter().find(|input| input.is_compressed()) {
        return Err(Error::unsupported(
            "a compressed file is expanded while it is indexed, which tasks do not do",
        )
        .at(&input.file)
        .hint("expand it, or use `windrow index`; `windrow tokenize` needs no index"));
    }
    if inputs.is_empty() && !options.allow_empty {
        return Err(windrow_core::format::lines::no_line_files(table, places.root(base)?.as_ref()));
    }
    if inputs.iter().all(|input| input.row.size == 0) && !options.allow_empty {
        return Err(no_lines(&inputs));
    }
    let manifest = wanted(format, &inputs, options);
    let planned = |input: &Input| JobInput {
        row: kept(&input.file, &input.row),
        path: if is_url(&input.file) { input.file.clone() } else { absolute(&input.file) },
        tasks: tasks_of(input.row.size, tasks.bytes),
        ..JobInput::default()
    };
    Ok(Job::of(INDEX, inputs.iter().map(planned).collect(), manifest, tasks))
}

/// What a worker has to know to run tasks that find lines.
pub struct IndexWorker<'a> {
    /// The formats.
    pub table: Table,
    /// Where URLs of inputs lead.
    pub stores: &'a dyn Stores,
    /// The folder of the job.
    pub place: &'a dyn Place,
}

impl IndexWorker<'_> {
    /// Runs a task; whether it had to.
    ///
    /// # Errors
    /// As [`Worker::run`](super::Worker::run).
    pub fn run(&self, job: &Job, task: u64, watch: &dyn Watch) -> Result<bool> {
        let layout = in_parts(self.table)?;
        run_task(self.place, layout, job, task, watch, |watch| {
            let (number, planned, of) = job.input_of(task)?;
            let input = Input::of(self.table, Places(self.stores), &planned.path, &planned.row.name)?;
            is_as_planned(&TextInput::Lines(input.clone()), planned)?;
            let stream = input.stream(0)?;
            let object =
                stream.plain().ok_or_else(|| Error::unsupported("a compressed file").at(&planned.path))?;
            let range = owned(object, job.bytes_of(planned, of))?;
            let mut rows = Draft::begin(self.place, layout.file(task, PartFile::Rows))?;
            let (mut scan, mut at, mut scratch) = (LineScan::default(), range.start, Vec::new());
            let (mut records, mut batch) = (0u64, Vec::new());
            let mut add = |batch: &mut Vec<u8>, byte: u64, size: u64| {
                records += 1;
                for field in [number as u64, range.start + byte, size] {
                    batch.extend_from_slice(&field.to_le_bytes());
                }
            };
            while at < range.end {
                check(watch)?;
                let bytes = object.read(at, (range.end - at).min(PART) as usize, &mut scratch)?;
                scan.feed(bytes, &mut |byte, size| add(&mut batch, byte, size));
                at += bytes.len() as u64;
                rows.write(&batch)?;
                batch.clear();
                watch.progress(Progress {
                    done_bytes: at - range.start,
                    total_bytes: range.end - range.start,
                    ..Progress::default()
                });
            }
            scan.finish(&mut |byte, size| add(&mut batch, byte, size));
            rows.write(&batch)?;
            stream.finish()?;
            let part = Part {
                version: 1,
                job: job.hash.clone(),
                task,
                input: planned.row.name.clone(),
                lines: [range.start, range.end],
                records,
                values: records * 3,
                ..Part::default()
            };
            show(self.place, layout, part, vec![(PartFile::Rows, rows, None)])
        })
    }
}

/// Writes the index that [`index`](crate::index()) would have written below `base`, out of the parts.
///
/// # Errors
/// As [`index`](crate::index()); `Stale` when a task is not done; `Corrupt` when a part is not what its manifest says.
pub fn join_index(
    table: Table,
    place: &dyn Place,
    job: &Job,
    base: &Path,
    options: &IndexOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let (format, layout) = (line_index(table)?, in_parts(table)?);
    let manifest = job.manifest(format.name());
    publish(format, base, options, manifest, |work, mut manifest| {
        let folder = work.join(&options.index_folder);
        files::remove(&folder)?;
        files::make_folder(&folder)?;
        let mut rows = Rows::begin(format, &folder, options.fsync)?;
        let store = place.store();
        for input in &job.inputs {
            let (first, number) = (rows.len(), manifest.files.len() as u64);
            for task in input.first_task..input.first_task + input.tasks {
                check(watch)?;
                let part = part_of(place, layout, job, task)?.ok_or_else(|| {
                    Error::new(
                        Kind::Stale,
                        format!("the preparation is not finished: task {task} is not done"),
                    )
                    .at(store.display(&layout.file(task, PartFile::Manifest)))
                })?;
                for row in rows_of(place, layout, &part)?.as_chunks::<{ ROW as usize }>().0 {
                    let field = |i: usize| u64::from_le_bytes(row.as_chunks::<8>().0[i]);
                    rows.add(number, field(1), field(2));
                }
                rows.flush()?;
                watch.progress(Progress {
                    done_bytes: task + 1,
                    total_bytes: job.tasks,
                    records: rows.len(),
                });
            }
            // Only files that hold a line are listed.
            if rows.len() > first {
                manifest.files.push(FileRow { etag: None, ..input.row.clone() });
            }
        }
        let records = rows.len();
        finish(format, &folder, rows, &mut manifest, None, options)?;
        files::sync_folder(&folder, options.fsync)?;
        Ok(Report {
            files: manifest.files.len() as u64,
            records,
            input_bytes: job.inputs.iter().map(|input| input.row.size).sum(),
            ..Report::default()
        })
    })
}

// The rows of a part: one for each of its lines.
fn rows_of(place: &dyn Place, layout: &dyn Parts, part: &Part) -> Result<Vec<u8>> {
    let (store, name) = (place.store(), layout.file(part.task, PartFile::Rows));
    let wrong = |what: String| {
        Error::corrupt(what).at(store.display(&name)).hint("remove the part and run its task again")
    };
    let Some(row) = file_of(layout, part, PartFile::Rows) else {
        return Err(wrong("the manifest of the part does not list its rows".to_string()));
    };
    let Some(object) = open_if_there(store.as_ref(), &name)? else {
        return Err(wrong("the rows are gone".to_string()));
    };
    if part.records.checked_mul(ROW) != Some(object.size()) || row.size != object.size() {
        return Err(wrong(format!("{} bytes, expected {} rows of {ROW}", object.size(), part.records)));
    }
    let bytes = read_whole(object.as_ref(), 0, row.size)?;
    if row.xxh3.as_deref() == Some(hex(xxh3_64(&bytes)).as_str()) {
        Ok(bytes)
    } else {
        Err(wrong("the rows are not those that were written".to_string()))
    }
}
