//! What of a job is done: asked of the parts themselves, never of whoever runs it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use windrow_core::format::Table;
use windrow_core::format::in_parts;
use windrow_core::format::write::{PartFile, Parts};
use windrow_core::manifest::{FileRow, Part};
use windrow_core::stop::Stop;
use windrow_core::store::{key, open_if_there, read_small};
use windrow_core::threads::refused;
use windrow_core::{Kind, Result, Watch, check};

use super::job::Job;
use super::place::Place;
use super::running::{self, Running};

/// How many failures are named, with their errors.
const MOST_NAMED: usize = 100;

/// What of a job is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Tasks in all.
    pub tasks: u64,
    /// Tasks whose part is there, whole.
    pub done: u64,
    /// Tasks whose last run failed, at most 100 of them.
    pub failed: Vec<Failed>,
    /// Tasks that are not done, in order.
    pub left: Vec<u64>,
    /// Records of the parts that are there.
    pub records: u64,
    /// Values of the parts that are there.
    pub values: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Tasks that run, at most 100 of them, as their workers said within the last ten seconds or before they were killed.
    pub running: Vec<Running>,
    /// Input bytes a second of those that were heard of lately.
    pub bytes_per_sec: u64,
    /// Seconds until all is done, at this rate; `None` where nothing runs.
    pub left_secs: Option<u64>,
}

/// A task whose last run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Its number.
    pub task: u64,
    /// What kind of error it is, as [`Kind::name`] says: whether it helps to run it again.
    pub kind: String,
    /// Why.
    pub error: String,
}

/// All parts of a job that are there: `take` is given each, in no order.
pub(super) fn each_part(
    place: &dyn Place,
    layout: &dyn Parts,
    job: &Job,
    watch: &dyn Watch,
    take: &(dyn Fn(Part) -> Result<()> + Sync),
) -> Result<HashMap<String, u64>> {
    let store = place.store();
    let listed = match store.walk_again(layout.folder()) {
        Ok(listed) => listed,
        Err(e) if e.kind() == Kind::NotFound => Vec::new(),
        Err(e) => return Err(e),
    };
    let sizes: HashMap<String, u64> = listed.into_iter().map(|entry| (entry.key, entry.size)).collect();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let failed = Mutex::new(None);
    let read = |task: u64| -> Result<()> {
        let name = layout.file(task, PartFile::Manifest);
        if !sizes.contains_key(&name) {
            return Ok(());
        }
        let part = match Part::read(store.open(&name)?.as_ref()) {
            Err(e) if e.kind() == Kind::NotFound => return Ok(()),
            part => part?,
        };
        let has_size =
            |file: &FileRow| sizes.get(&key::below(layout.folder(), &file.name)) == Some(&file.size);
        if part.job == job.hash && part.task == task && part.files.iter().all(has_size) {
            take(part)
        } else {
            Ok(())
        }
    };
    let serve = || {
        while !stop.load(Ordering::Relaxed) {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= job.tasks {
                break;
            }
            if let Err(e) = read(task) {
                stop.store(true, Ordering::Relaxed);
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            }
        }
    };
    std::thread::scope(|scope| {
        let n = place.at_a_time().min(usize::try_from(job.tasks).unwrap_or(usize::MAX)).max(1);
        let of_this = Stop::of_this_thread();
        let started: std::io::Result<Vec<_>> = (0..n)
            .map(|_| {
                let of_this = of_this.clone();
                let work = move || of_this.hold(serve);
                std::thread::Builder::new().name("windrow-parts".to_string()).spawn_scoped(scope, work)
            })
            .collect();
        let threads = started.map_err(|e| {
            stop.store(true, Ordering::Relaxed);
            refused(e)
        })?;
        while threads.iter().any(|thread| !thread.is_finished()) {
            if let Err(e) = check(watch) {
                stop.store(true, Ordering::Relaxed);
                return Err(e);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Ok(())
    })?;
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None => Ok(sizes),
    }
}

/// What of a job is done.
///
/// # Errors
/// `Corrupt` for a part whose manifest cannot be understood; `Interrupted`; `Io`.
pub fn status(table: Table, place: &dyn Place, job: &Job, watch: &dyn Watch) -> Result<Status> {
    let layout = in_parts(table)?;
    let done = Mutex::new((Status { tasks: job.tasks, ..Status::default() }, Vec::new()));
    let sizes = each_part(place, layout, job, watch, &|part| {
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0.done += 1;
        done.0.records += part.records;
        done.0.values += part.values;
        done.0.bytes += part.files.iter().map(|file| file.size).sum::<u64>();
        done.1.push(part.task);
        Ok(())
    })?;
    let (mut status, mut tasks) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    tasks.sort_unstable();
    let mut behind = 0;
    for task in tasks.iter().copied().chain([job.tasks]) {
        status.left.extend(behind..task);
        behind = task + 1;
    }
    let store = place.store();
    for task in &status.left {
        let name = layout.file(*task, PartFile::Failure);
        if status.failed.len() < MOST_NAMED
            && sizes.contains_key(&name)
            && let Some(object) = open_if_there(store.as_ref(), &name)?
        {
            let said: serde_json::Value =
                serde_json::from_slice(&read_small(object.as_ref(), 1 << 20)?).unwrap_or_default();
            // That of another job says nothing of this one.
            if said["job"] == job.hash.as_str() {
                let text = |name: &str| said[name].as_str().unwrap_or("unknown").to_string();
                status.failed.push(Failed { task: *task, kind: text("kind"), error: text("error") });
            }
        }
    }
    for task in &status.left {
        let name = layout.file(*task, PartFile::Running);
        if status.running.len() < MOST_NAMED
            && sizes.contains_key(&name)
            && let Some(object) = open_if_there(store.as_ref(), &name)?
        {
            // It may be gone by now.
            let text = read_small(object.as_ref(), 1 << 20).unwrap_or_default();
            status.running.extend(running::heard(*task, &text, &job.hash));
        }
    }
    let heard = || status.running.iter().filter(|one| one.is_heard());
    status.bytes_per_sec = heard().map(|one| one.bytes_per_sec).sum();
    let behind: u64 = heard().map(|one| one.done_bytes).sum();
    let ahead = (status.left.len() as u64).saturating_mul(job.task_bytes).saturating_sub(behind);
    status.left_secs = ahead.checked_div(status.bytes_per_sec);
    Ok(status)
}
