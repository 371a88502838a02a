//! A folder whose parts are still being made: how far that is, and what to type.

use serde::Deserialize;
use windrow_core::format::Probe;
use windrow_core::format::write::PartFile;
use windrow_core::manifest::MOST_BYTES;
use windrow_core::store::read_small;
use windrow_core::{Error, Kind};

use super::names::{FOLDER, JOBS, task_of};

/// What is asked of a job.
#[derive(Deserialize)]
struct Job {
    version: u64,
    tasks: u64,
    hash: String,
}

/// The error of whoever opens a folder with a job and without a manifest of all parts; `None` where no job is there.
pub(super) fn unfinished(probe: &Probe) -> Option<Error> {
    let (key, tasks) = job(probe)?;
    let number = |what| move |name: &str| task_of(name.strip_prefix(FOLDER)?.strip_prefix('/')?, what);
    let is_done = number(PartFile::Manifest);
    let done = probe.names().filter_map(is_done).filter(|task| *task < tasks).count();
    let failed = probe.names().filter_map(number(PartFile::Failure));
    let failed = failed
        .filter(|task| *task < tasks && !probe.names().any(|name| is_done(name) == Some(*task)))
        .take(1_000)
        .count();
    let job = probe.store.display(&key);
    let failed = match failed {
        0 => String::new(),
        n => format!(", {n} failed: `windrow prep status {job}` says why"),
    };
    let run = if done as u64 >= tasks {
        String::new()
    } else {
        format!("`windrow prep run {job}` makes the others, then ")
    };
    let what = format!("the preparation is not finished: {done} of {tasks} tasks are done{failed}");
    let hint = format!("{run}`windrow prep merge {job}` makes one data set of the parts");
    Some(Error::new(Kind::Stale, what).at(probe.display()).hint(hint))
}

// The key of the job in this folder, and how many tasks it has.
fn job(probe: &Probe) -> Option<(String, u64)> {
    let is_job = |name: &&str| {
        let name = name.strip_prefix(JOBS).and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/') && name.ends_with(".json"))
    };
    probe.names().filter(is_job).find_map(|name| {
        let key = probe.below(name);
        let object = probe.store.open(&key).ok()?;
        let job: Job = serde_json::from_slice(&read_small(object.as_ref(), MOST_BYTES).ok()?).ok()?;
        // Its name is its hash.
        let is_one = job.version == 1 && name.ends_with(&format!("/{}.json", job.hash));
        is_one.then_some((key, job.tasks))
    })
}

/// What a job of this folder is called, for a command to type.
pub(super) fn job_name(probe: &Probe) -> String {
    let listed = probe.store.walk(&probe.below(JOBS)).unwrap_or_default();
    let key = listed.into_iter().map(|entry| entry.key).find(|key| key.ends_with(".json"));
    probe.store.display(&key.unwrap_or_else(|| probe.below(&format!("{JOBS}/HASH.json"))))
}
