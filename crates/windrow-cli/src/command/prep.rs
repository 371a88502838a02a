//! `windrow prep`: preparation in tasks, over any number of machines.

#[cfg(feature = "dac")]
mod encode;
mod run;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use windrow::dev::format::lines::INDEX_FOLDER;
use windrow::format::Options;
use windrow::prep::{self, Converting, TASK_BYTES, Tokenizing};
use windrow::prepare::{IndexOptions, Report};
use windrow::{DType, Error, Kind, Paths};

use self::run::Run;
#[cfg(not(feature = "dac"))]
use super::absent;
use super::tokenize::{How, left_out};
use crate::args::output::{self, refuse_input};
use crate::args::{Opening, Stores, no_stdin, no_stdout, path};
use crate::failure::{DONE, Failure, PARTLY};
use crate::interrupt::Interrupt;
use crate::options::{bytes, dtype};
use crate::out::Out;
use crate::own_options::OwnOptions;
use crate::progress::Progress;
use crate::{stderr, text, to};

#[cfg(not(feature = "dac"))]
absent::absent!(encode, Encode, "dac");

/// Prepare data in tasks, on one machine or many: the same bytes whoever runs them, however often
///
/// plan writes a job, run runs tasks of it anywhere, merge makes one data set of what they made.
#[derive(Args, Debug)]
pub(crate) struct Prep {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Plan a job and write it to OUT/prep/; prints its path
    #[command(subcommand)]
    Plan(Planned),
    Run(Run),
    /// What is done, what failed and why, what is left
    Status(OfJob),
    /// Make one data set of all parts
    Merge(OfJob),
    /// Write the files that one run would have written, out of the parts
    Join(Join),
    /// Remove what killed runs left; no run may be going on
    Clean(OfJob),
}

#[derive(Debug, Subcommand)]
enum Planned {
    Tokenize(Box<Tokenize>),
    Index(Index),
    Convert(Box<Convert>),
    Encode(Box<encode::Encode>),
}

/// What all plans take.
#[derive(Args, Debug)]
struct Planning {
    /// Folder of the parts, or its URL: every machine sees it under this name
    #[arg(short, long, value_name = "DIR", value_parser = path())]
    out: PathBuf,
    /// Input bytes of a task
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value_t = TASK_BYTES)]
    task_bytes: u64,
    /// Inputs without any record are planned too, and give an empty output
    #[arg(long)]
    allow_empty: bool,
    /// Also write the job here
    #[arg(long, value_name = "FILE", value_parser = path())]
    job: Option<PathBuf>,
    /// With --job: replace a file that holds something else
    #[arg(long, requires = "job")]
    overwrite: bool,
}

/// Plan to turn text into token IDs
#[derive(Args, Debug)]
struct Tokenize {
    /// As of `windrow tokenize`: JSONL files, folders, patterns, URLs; or rows with a column of text
    #[arg(required = true, value_name = "IN", value_parser = path())]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    planning: Planning,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    stores: Stores,
}

/// Plan to index the lines of the JSONL files below a folder
#[derive(Args, Debug)]
struct Index {
    /// The folder, or its URL
    #[arg(value_parser = path())]
    path: PathBuf,
    #[command(flatten)]
    planning: Planning,
    /// Name of the index folder that is joined in the end
    #[arg(long, value_name = "NAME", default_value = INDEX_FOLDER)]
    index_folder: String,
    #[command(flatten)]
    stores: Stores,
}

/// Plan to write records of numbers in another layout
#[derive(Args, Debug)]
struct Convert {
    /// As of `windrow convert`: a file or folder, a pattern in quotes, a URL
    #[arg(value_parser = path())]
    input: PathBuf,
    #[command(flatten)]
    planning: Planning,
    /// The format of the files that are joined in the end; it decides the dtype of the parts
    #[arg(long, value_name = "FORMAT", value_parser = to::of_records())]
    to: String,
    /// dtype of a written number, as of `windrow convert`
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    as_dtype: Option<DType>,
    #[command(flatten)]
    own: OwnOptions<false>,
    #[command(flatten)]
    opening: Opening,
}

/// A job.
#[derive(Args, Debug)]
struct OfJob {
    /// What `prep plan` wrote: a path or URL
    #[arg(value_name = "JOB", value_parser = path())]
    job: PathBuf,
    #[command(flatten)]
    stores: Stores,
}

/// Write the files that one run would have written, out of the parts: nothing is tokenised or encoded again
#[derive(Args, Debug)]
struct Join {
    #[command(flatten)]
    of: OfJob,
    /// Folder to write, or its URL
    #[arg(short, long, value_name = "DIR", value_parser = path())]
    out: PathBuf,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
}

impl OfJob {
    fn open(&self) -> Result<prep::Prep, Failure> {
        no_stdin(std::slice::from_ref(&self.job))?;
        Ok(prep::Prep::open(&self.job, &self.stores.options()?)?)
    }
}

pub(crate) fn run(args: &Prep, out: &mut Out) -> Result<i32, Failure> {
    match &args.what {
        What::Plan(Planned::Tokenize(args)) => plan_tokenize(args, out),
        What::Plan(Planned::Index(args)) => plan_index(args, out),
        What::Plan(Planned::Convert(args)) => plan_convert(args, out),
        What::Plan(Planned::Encode(args)) => encode::run(args, out),
        What::Run(args) => run::run(args, out),
        What::Status(args) => status(args, out),
        What::Merge(args) => merge(args, out),
        What::Join(args) => join(args, out),
        What::Clean(args) => clean(args, out),
    }
}

fn plan_tokenize(args: &Tokenize, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(&args.inputs)?;
    let how = Tokenizing { allow_empty: args.planning.allow_empty, ..args.how.tokenizing()? };
    planned(&args.planning, &args.stores.options()?, out, |to, task_bytes, stores| {
        let inputs = Paths::list(&args.inputs).inputs(stores, how.split.as_deref())?;
        prep::plan(&inputs, to, &how, task_bytes, stores)
    })
}

fn plan_index(args: &Index, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.path))?;
    planned(&args.planning, &args.stores.options()?, out, |to, task_bytes, stores| {
        let (index_folder, allow_empty) = (args.index_folder.clone(), args.planning.allow_empty);
        let options = IndexOptions { index_folder, allow_empty, ..IndexOptions::default() };
        prep::plan_index(&args.path, to, &options, task_bytes, stores)
    })
}

fn plan_convert(args: &Convert, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.input))?;
    let opening = Options { allow_empty: args.planning.allow_empty, ..args.opening.options()? };
    let (to, own) = (args.to.clone(), args.own.given().clone());
    let how = Converting { to, own, dtype: args.as_dtype, opening: opening.clone() };
    planned(&args.planning, &opening, out, |to, task_bytes, stores| {
        prep::plan_convert(&args.input, to, &how, task_bytes, stores)
    })
}

fn planned(
    args: &Planning,
    stores: &Options,
    out: &mut Out,
    plan: impl FnOnce(&Path, u64, &Options) -> windrow::Result<PathBuf>,
) -> Result<i32, Failure> {
    no_stdout(&args.out)?;
    args.job.as_deref().map_or(Ok(()), no_stdout)?;
    let path = plan(&args.out, args.task_bytes, stores)?;
    let job = prep::Prep::open(&path, stores)?;
    let job = job.job();
    if let Some(copy) = &args.job {
        refuse_input(copy, inputs_of(job))?;
        output::write(copy, job.to_text().as_bytes(), args.overwrite)?;
    }
    // A script reads this line alone.
    out.line(path.display())?;
    let bytes = text::size(job.inputs.iter().map(|input| input.row.size).sum());
    let (tasks, inputs) = (text::counted(job.tasks, "task"), text::counted(job.inputs.len() as u64, "input"));
    if !out.quiet() {
        stderr::print(&format!(
            "{tasks} of {inputs}, {bytes}; each machine runs: windrow prep run {} --rank R --of N",
            path.display()
        ));
    }
    out.object(json!({
        "job": path.display().to_string(),
        "hash": job.hash,
        "tasks": job.tasks,
        "inputs": job.inputs.len(),
        "task_bytes": job.task_bytes,
    }))?;
    Ok(DONE)
}

// The files that tasks read.
fn inputs_of(job: &prep::Job) -> impl Iterator<Item = PathBuf> {
    job.inputs.iter().flat_map(|input| {
        // Sounds are named within their folder, files of records beside what was typed.
        let folders = [Some(input.path.as_path()), input.path.parent()].into_iter().flatten();
        let files =
            folders.flat_map(move |folder| input.files.iter().map(move |file| folder.join(&file.name)));
        files.chain([input.path.clone()])
    })
}

fn status(args: &OfJob, out: &mut Out) -> Result<i32, Failure> {
    let (job, interrupt) = (args.open()?, Interrupt::listen());
    let found = job.status(&interrupt)?;
    let (done, bytes) = (found.done, text::size(found.bytes));
    out.line(format_args!("{done} of {} done, {bytes}", text::counted(found.tasks, "task")))?;
    for one in &found.running {
        let quiet = if one.is_heard() {
            String::new()
        } else {
            format!("; nothing was heard of it for {} s", one.quiet_secs)
        };
        let (done, rate) = (text::size(one.done_bytes), text::size(one.bytes_per_sec));
        let (task, host, pid) = (one.task, &one.host, one.pid);
        out.line(format_args!(
            "  task {task} runs on {host} (process {pid}) for {} s: {done}, {rate}/s{quiet}",
            one.secs
        ))?;
    }
    if let Some(secs) = found.left_secs {
        out.line(format_args!("  {}/s of input; about {} s left", text::size(found.bytes_per_sec), secs))?;
    }
    for (tasks, error) in grouped(found.failed.iter().map(|failed| (failed.task, failed.error.clone()))) {
        out.line(format_args!("  {} failed: {error}", named(&tasks)))?;
    }
    if !found.left.is_empty() {
        out.line(format_args!("  left: {}", runs(&found.left)))?;
    }
    out.object(json!({ "status": found }))?;
    Ok(DONE)
}

/// Each error once, with the tasks that had it; in the order of their first tasks.
fn grouped(failed: impl IntoIterator<Item = (u64, String)>) -> Vec<(Vec<u64>, String)> {
    let mut groups: Vec<(Vec<u64>, String)> = Vec::new();
    for (task, error) in failed {
        match groups.iter_mut().find(|(_, known)| *known == error) {
            Some((tasks, _)) => tasks.push(task),
            None => groups.push((vec![task], error)),
        }
    }
    groups
}

fn named(tasks: &[u64]) -> String {
    format!("task{} {}", if tasks.len() == 1 { "" } else { "s" }, runs(tasks))
}

// Numbers as one types them: 3,7-12.
fn runs(numbers: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let shown = runs
        .iter()
        .take(20)
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    let more = if runs.len() > 20 { ", …" } else { "" };
    shown.collect::<Vec<_>>().join(",") + more
}

fn merge(args: &OfJob, out: &mut Out) -> Result<i32, Failure> {
    let (job, interrupt) = (args.open()?, Interrupt::listen());
    let report = job.merge(&interrupt).map_err(|e| unfinished(&job, e))?;
    let what = match report.tokens {
        0 => text::counted(report.records, "record"),
        tokens => {
            let documents = text::counted(report.documents, "document");
            format!("{} of {documents}", text::counted(tokens, "token"))
        }
    };
    let parts = text::counted(report.files, "part");
    out.line(format_args!("{}: {what} in {parts}", report.output.display()))?;
    told_of_skipped(&report, out)?;
    out.object(json!({ "report": report }))?;
    Ok(DONE)
}

fn join(args: &Join, out: &mut Out) -> Result<i32, Failure> {
    no_stdout(&args.out)?;
    let (job, interrupt) = (args.of.open()?, Interrupt::listen());
    let watch = Progress::new("join", out.quiet(), &interrupt);
    let report = job.join(&args.out, args.overwrite, &watch).map_err(|e| unfinished(&job, e))?;
    drop(watch);
    let records = text::counted(report.records, "record");
    let what = match report.tokens {
        0 => records,
        tokens => format!("{} in {records}", text::counted(tokens, "token")),
    };
    let how = if report.unchanged { "was there already" } else { "joined" };
    out.line(format_args!("{}: {what}; {how}", args.out.display()))?;
    told_of_skipped(&report, out)?;
    out.object(json!({ "report": report }))?;
    Ok(DONE)
}

fn told_of_skipped(report: &Report, out: &mut Out) -> Result<(), Failure> {
    match report.skipped.count {
        0 => Ok(()),
        _ => Ok(out.line(format_args!("  {}", left_out(&report.skipped, report.documents)))?),
    }
}

fn clean(args: &OfJob, out: &mut Out) -> Result<i32, Failure> {
    let removed = args.open()?.clean()?;
    out.line(format_args!("{} removed", text::counted(removed, "file")))?;
    out.object(json!({ "removed": removed }))?;
    Ok(DONE)
}

// Tasks that are left are no fault of the data.
fn unfinished(job: &prep::Prep, error: Error) -> Failure {
    let is_left = || job.status(&()).is_ok_and(|found| !found.left.is_empty());
    if error.kind() == Kind::Stale && is_left() { Failure::Unfinished(error) } else { error.into() }
}

/// What a run ends with when some of its tasks failed.
fn partly(failed: usize) -> i32 {
    if failed == 0 { DONE } else { PARTLY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(runs(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(runs(&[]), "");
    }

    #[test]
    fn an_error_of_many_tasks_is_said_once() {
        let failed = [(0, "a"), (1, "b"), (2, "a"), (3, "a"), (9, "a")];
        let groups = grouped(failed.map(|(task, error)| (task, error.to_string())));
        let said: Vec<String> =
            groups.iter().map(|(tasks, error)| format!("{}: {error}", named(tasks))).collect();
        assert_eq!(said, ["tasks 0,2-3,9: a", "task 1: b"]);
    }
}
