//! Makes one data set of all parts: by their manifests alone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use windrow_core::format::Table;
use windrow_core::format::in_parts;
use windrow_core::format::write::{PartFile, Parts};
use windrow_core::manifest::{FileRow, Manifest, Part, PartRow};
use windrow_core::{Error, Kind, Result, Watch};

use super::index::ROW;
use super::job::{Job, TOKENIZE};
use super::part::file_of;
use super::place::Place;
use super::status::each_part;
use crate::Report;
use crate::skipped::{self, Skipped};

/// Among the statistics: the files that are left out of a part, or of the data set, and why.
pub(super) const FAILED: &str = "failed";

/// What is kept of a part until all are there.
#[derive(Clone, Copy, Default)]
struct Kept {
    is_there: bool,
    row: PartRow,
    lines: [u64; 2],
    most_id: Option<i64>,
    channels: Option<u64>,
}

/// Makes the data set of all parts visible: its manifest lists them in the order of their tasks. Merged again, it is the same.
///
/// # Errors
/// `Stale` when a task is not done, with its number; `Corrupt` when a part contradicts itself or those beside it, and when more than
/// the share `max_skipped` of all records was left out; `Exists` when the folder holds another data set; `Interrupted`; `Io`.
pub fn merge(
    table: Table,
    place: &dyn Place,
    job: &Job,
    max_skipped: Option<f64>,
    watch: &dyn Watch,
) -> Result<Report> {
    let layout = in_parts(table)?;
    let (manifest, rows) = gathered(place, layout, job, watch)?;
    skipped::judge(&manifest, max_skipped)?;
    let skipped = Skipped::read(&manifest.statistics);
    let (records, values) = (manifest.records.unwrap_or(0), manifest.values.unwrap_or(0));
    for (name, text) in layout.joined(manifest, &rows)? {
        place.replace(&name, &text)?;
    }
    let of_texts = |number: u64| if job.task == TOKENIZE { number } else { 0 };
    Ok(Report {
        output: job.out.clone().into(),
        files: rows.len() as u64,
        records,
        documents: of_texts(records),
        tokens: of_texts(values),
        skipped,
        input_bytes: job.inputs.iter().map(|input| input.row.size).sum(),
        output_bytes: rows.iter().map(|row| row.bytes).sum(),
        ..Report::default()
    })
}

/// What the data set of all parts is, and the row of each.
///
/// # Errors
/// As [`merge`].
pub(super) fn gathered(
    place: &dyn Place,
    layout: &dyn Parts,
    job: &Job,
    watch: &dyn Watch,
) -> Result<(Manifest, Vec<PartRow>)> {
    let n = usize::try_from(job.tasks).map_err(|_| Error::memory(format!("{} tasks", job.tasks)))?;
    let mut kept: Vec<Kept> = Vec::new();
    kept.try_reserve_exact(n).map_err(|_| Error::memory(format!("what is kept of {n} parts")))?;
    kept.resize(n, Kept::default());
    let kept = Mutex::new((kept, BTreeMap::new()));
    let skipped: Mutex<BTreeMap<u64, Skipped>> = Mutex::default();
    let width = job.dtype.map_or(1, |dtype| dtype.size() as u64);
    let store = place.store();
    each_part(place, layout, job, watch, &|part| {
        let name = || store.display(&layout.file(part.task, PartFile::Manifest));
        let found = row_of(layout, &part, width).ok_or_else(|| {
            Error::corrupt("the part contradicts itself: its files do not hold what it says")
                .at(name())
                .hint("remove it and run the task again")
        })?;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Value::Array(failed)) = part.statistics.get(FAILED) {
            kept.1.insert(part.task, failed.clone());
        }
        let of_part = Skipped::read(&part.statistics);
        if !of_part.is_none() {
            skipped.lock().unwrap_or_else(PoisonError::into_inner).insert(part.task, of_part);
        }
        if let Some(place) = usize::try_from(part.task).ok().and_then(|task| kept.0.get_mut(task)) {
            let (lines, most_id, channels) = (part.lines, part.most_id, part.channels);
            *place = Kept { is_there: true, row: found, lines, most_id, channels };
        }
        Ok(())
    })?;
    let (kept, failed) = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let missing: Vec<usize> = (0..n).filter(|task| !kept[*task].is_there).collect();
    if let Some(first) = missing.first() {
        let shown: Vec<String> = missing.iter().take(20).map(usize::to_string).collect();
        let more = if missing.len() > 20 { ", …" } else { "" };
        return Err(Error::new(
            Kind::Stale,
            format!("the preparation is not finished: {} of {n} tasks are done", n - missing.len()),
        )
        .at(store.display(&layout.file(*first as u64, PartFile::Manifest)))
        .hint(format!(
            "run what is left: `windrow prep run {}`; tasks {}{more}",
            job_at(job, layout.job(&job.hash)),
            shown.join(", ")
        )));
    }
    check_borders(job, &kept, |task| store.display(&layout.file(task as u64, PartFile::Manifest)))?;
    let mut manifest = job.manifest(layout.name());
    let sum =
        |of: fn(&PartRow) -> u64| kept.iter().try_fold(0u64, |sum, kept| sum.checked_add(of(&kept.row)));
    let too_many = || Error::corrupt("more values than can be counted").at(store.display(""));
    let records = sum(|row| row.records).ok_or_else(too_many)?;
    let values = sum(|row| row.values).ok_or_else(too_many)?;
    sum(|row| row.bytes).ok_or_else(too_many)?;
    (manifest.records, manifest.values) = (Some(records), Some(values));
    manifest.channels = kept.iter().find_map(|kept| kept.channels);
    if job.task == TOKENIZE {
        manifest.statistics.insert("documents".to_string(), json!(records));
        manifest.statistics.insert("tokens".to_string(), json!(values));
    }
    let skipped = skipped.into_inner().unwrap_or_else(PoisonError::into_inner);
    of_all(job, &kept, &skipped).write(&mut manifest.statistics);
    if let Some(id) = kept.iter().filter_map(|kept| kept.most_id).max() {
        manifest.statistics.insert("most_id".to_string(), json!(id));
    }
    let failed: Vec<Value> = failed.into_values().flatten().collect();
    if let Some(first) = failed.first() {
        let [file, error] = ["file", "error"].map(|what| first[what].as_str().unwrap_or_default());
        windrow_core::warn!(
            "{} files could not be read and are not in it, first {file}: {error}",
            failed.len()
        );
        manifest.statistics.insert(FAILED.to_string(), failed.into());
    }
    manifest.statistics.insert("job".to_string(), json!(job.hash));
    Ok((manifest, kept.iter().map(|kept| kept.row).collect()))
}

// What all parts left out, by its number in its input.
fn of_all(job: &Job, kept: &[Kept], skipped: &BTreeMap<u64, Skipped>) -> Skipped {
    let mut all = Skipped::default();
    // Most jobs have none, and many tasks.
    for input in job.inputs.iter().filter(|_| !skipped.is_empty()) {
        let mut before = 0;
        for task in input.first_task..input.first_task + input.tasks {
            let records =
                usize::try_from(task).ok().and_then(|task| kept.get(task)).map_or(0, |kept| kept.row.records);
            if let Some(skipped) = skipped.get(&task) {
                // Rows have their numbers in all of the input already.
                all.extend(&skipped.clone().behind(if input.is_rows() { 0 } else { before }));
                before += skipped.count;
            }
            before += records;
        }
    }
    all
}

pub(super) fn job_at(job: &Job, name: String) -> String {
    format!("{}/{name}", job.out.trim_end_matches('/'))
}

// The row of a part, where its counts are those of its files.
fn row_of(layout: &dyn Parts, part: &Part, width: u64) -> Option<PartRow> {
    let file = |what| file_of(layout, part, what);
    let hash = |file: &FileRow| u64::from_str_radix(file.xxh3.as_deref()?, 16).ok();
    let (records, values) = (part.records, part.values);
    if let Some(rows) = file(PartFile::Rows) {
        let bytes = records.checked_mul(ROW)?;
        let row = PartRow { records, values, bytes, xxh3: hash(rows)?, lengths_xxh3: 0 };
        return (rows.size == bytes).then_some(row);
    }
    let (of_values, lengths) = (file(PartFile::Values)?, file(PartFile::Lengths)?);
    let bytes = values.checked_mul(part.channels.unwrap_or(1))?.checked_mul(width)?;
    (of_values.size == bytes && lengths.size == records.checked_mul(4)?).then_some(PartRow {
        records,
        values,
        bytes,
        xxh3: hash(of_values)?,
        lengths_xxh3: hash(lengths)?,
    })
}

// What a task read begins where the one before ended: no part is left out, and none is in the place of another.
fn check_borders(job: &Job, kept: &[Kept], name: impl Fn(usize) -> String) -> Result<()> {
    for input in &job.inputs {
        let first = usize::try_from(input.first_task).unwrap_or(usize::MAX);
        let mut behind = 0;
        for (i, kept) in
            kept.iter().enumerate().skip(first).take(usize::try_from(input.tasks).unwrap_or(usize::MAX))
        {
            if kept.lines[0] != behind || kept.lines[1] < behind {
                return Err(Error::corrupt(format!(
                    "the part is of {} to {} of {}, expected from {behind} on",
                    kept.lines[0], kept.lines[1], input.row.name
                ))
                .at(name(i))
                .hint("parts were moved or changed: remove them and run their tasks again"));
            }
            behind = kept.lines[1];
        }
    }
    Ok(())
}
