//! `windrow prep run`: the tasks of one worker.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde_json::json;
use windrow::Kind;
use windrow::dev::threads;
use windrow::prep::Prep;
use windrow::prepare::{self, Watch};

use super::{grouped, named, partly};
use crate::args::{Stores, no_stdin, path};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::stderr::{Message, say};
use crate::text;

/// Run tasks of a job: all of them, some, or a worker's share
///
/// What is done is not done again. A task that fails is written down, and the others go on. Without --task, --tasks and --rank the
/// share is that of the environment: a Slurm array's, a Kubernetes Indexed Job's (with --of), RANK and WORLD_SIZE; else all tasks.
#[derive(Args, Debug)]
pub(super) struct Run {
    /// What `prep plan` wrote: a path or URL
    #[arg(value_name = "JOB", value_parser = path())]
    job: PathBuf,
    /// Only this task
    #[arg(long, value_name = "I", conflicts_with_all = ["tasks", "rank", "of", "steal"])]
    task: Option<u64>,
    /// Only these: 3,7,12-40
    #[arg(long, value_name = "I,J,K-L", value_delimiter = ',', value_parser = range, conflicts_with_all = ["rank", "of", "steal"])]
    tasks: Option<Vec<(u64, u64)>>,
    /// Number of this worker: it runs every N-th task
    #[arg(long, value_name = "R")]
    rank: Option<u64>,
    /// Number of workers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    of: Option<u64>,
    /// Then run what others left, in an order of its own: for workers that die or are slow
    #[arg(long)]
    steal: bool,
    /// Encoding threads; by default as many as there are cores
    #[arg(long, value_name = "N")]
    num_threads: Option<usize>,
    /// Of an output in a store: the folder in which parts are made before they are sent
    #[arg(long, value_name = "DIR", value_parser = path())]
    scratch: Option<PathBuf>,
    /// Do not wait for the disk
    #[arg(long)]
    no_fsync: bool,
    #[command(flatten)]
    stores: Stores,
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (number(first)?, number(last)?) {
        (first, last) if first <= last => Ok((first, last)),
        _ => Err(format!("{text:?} ends before it begins")),
    }
}

/// Which worker this is, of how many.
fn worker(args: &Run, variable: &dyn Fn(&str) -> Option<String>) -> Result<(u64, u64), Failure> {
    let number = |name: &str| {
        let text = variable(name)?;
        Some(
            text.parse::<u64>().map_err(|_| Failure::usage(format!("{name} is {text:?}; expected a number"))),
        )
    };
    let number = |name: &str| number(name).transpose();
    let (rank, of) = match (args.rank, args.of) {
        (Some(rank), of) => (rank, of),
        (None, of) => {
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            if let Some(index) = number("SLURM_ARRAY_TASK_ID")? {
                (index.saturating_sub(first), of.or(number("SLURM_ARRAY_TASK_COUNT")?))
            } else if let (Some(index), Some(of)) = (number("JOB_COMPLETION_INDEX")?, of) {
                (index, Some(of))
            } else if let (Some(rank), Some(size)) = (number("RANK")?, number("WORLD_SIZE")?) {
                (rank, of.or(Some(size)))
            } else if of.is_some_and(|of| of > 1) {
                return Err(Failure::usage("--of needs --rank, which no launcher's environment says here"));
            } else {
                (0, Some(1))
            }
        }
    };
    match of {
        Some(of) if rank < of => Ok((rank, of)),
        Some(of) => Err(Failure::usage(format!("rank {rank} of {of} workers; ranks count from 0"))),
        None => Err(Failure::usage("--rank needs --of, the number of workers")),
    }
}

pub(super) fn run(args: &Run, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.job))?;
    // Once, not as the error of each task.
    threads::check(args.num_threads, 1)?;
    let prep =
        Prep::open_with(&args.job, args.scratch.as_deref(), !args.no_fsync, &args.stores.of_worker()?)?;
    let count = prep.job().tasks;
    let tasks: Vec<u64> = match (args.task, &args.tasks) {
        (Some(task), _) => vec![task],
        (None, Some(ranges)) => {
            let last = count.saturating_sub(1);
            if let Some((first, end)) = ranges.iter().find(|(_, end)| *end > last) {
                return Err(Failure::usage(format!(
                    "tasks {first} to {end} of a job with tasks 0 to {last}"
                )));
            }
            ranges.iter().flat_map(|(first, end)| *first..=*end).collect()
        }
        (None, None) => {
            let (rank, of) = worker(args, &|name| std::env::var(name).ok())?;
            prep.tasks_of(rank, of, args.steal)
        }
    };
    // One error for all tasks where none could run.
    prep.check()?;
    let interrupt = Interrupt::listen();
    let watch = Progress::new("prep", out.quiet(), &interrupt);
    let sum = Sum {
        watch: &watch,
        before: AtomicU64::new(0),
        total: prep.job().task_bytes.saturating_mul(tasks.len() as u64),
    };
    let (mut made, mut there, mut failed) = (0u64, 0u64, Vec::new());
    for task in tasks {
        match prep.run(task, args.num_threads, &sum) {
            Ok(true) => made += 1,
            Ok(false) => there += 1,
            Err(e) if e.kind() == Kind::Interrupted || args.task.is_some() => return Err(e.into()),
            Err(e) => failed.push((task, e)),
        }
        sum.next(prep.job().task_bytes);
    }
    drop(watch);
    for (tasks, error) in grouped(failed.iter().map(|(task, error)| (*task, format!("{error:#}")))) {
        say(Message::Error, &format!("{} failed: {error}", named(&tasks)));
    }
    let (tasks, known) = (
        text::counted(made, "task"),
        if there == 0 { String::new() } else { format!(", {there} done before") },
    );
    let fails = if failed.is_empty() { String::new() } else { format!(", {} failed", failed.len()) };
    out.line(format_args!("{tasks} run{known}{fails}"))?;
    out.object(json!({
        "made": made,
        "was_there": there,
        "failed": failed.iter().map(|(task, e)| json!({ "task": task, "error": format!("{e:#}") })).collect::<Vec<_>>(),
    }))?;
    Ok(partly(failed.len()))
}

/// The progress of all tasks of a worker.
struct Sum<'a> {
    watch: &'a Progress<'a>,
    before: AtomicU64,
    total: u64,
}

impl Sum<'_> {
    fn next(&self, bytes: u64) {
        self.before.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Watch for Sum<'_> {
    fn progress(&self, now: prepare::Progress) {
        let before = self.before.load(Ordering::Relaxed);
        let done_bytes = (before + now.done_bytes).min(self.total);
        self.watch.progress(prepare::Progress { done_bytes, total_bytes: self.total, ..now });
    }

    fn counted(&self, done: u64, total: u64, one: &'static str) {
        self.watch.counted(done, total, one);
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(given: (Option<u64>, Option<u64>), known: &[(&str, &str)]) -> Result<(u64, u64), String> {
        let args = Run {
            job: PathBuf::new(),
            task: None,
            tasks: None,
            rank: given.0,
            of: given.1,
            steal: false,
            num_threads: None,
            scratch: None,
            no_fsync: false,
            stores: crate::args::Stores::default(),
        };
        let variable =
            |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        worker(&args, &variable).map_err(|e| e.to_string())
    }

    #[test]
    fn a_worker_finds_its_share() {
        let slurm =
            [("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_MIN", "2"), ("SLURM_ARRAY_TASK_COUNT", "9")];
        assert_eq!(found((None, None), &slurm), Ok((3, 9)));
        assert_eq!(found((Some(1), Some(4)), &slurm), Ok((1, 4)));
        assert_eq!(found((None, Some(8)), &[("JOB_COMPLETION_INDEX", "7")]), Ok((7, 8)));
        assert_eq!(found((None, None), &[("RANK", "1"), ("WORLD_SIZE", "2")]), Ok((1, 2)));
        assert_eq!(found((None, None), &[]), Ok((0, 1)));
        for (given, known) in [
            ((Some(4), Some(4)), &[][..]),
            ((Some(1), None), &[]),
            ((None, Some(3)), &[]),
            ((None, None), &[("SLURM_ARRAY_TASK_ID", "x")]),
        ] {
            assert!(found(given, known).is_err(), "{given:?}");
        }
    }

    #[test]
    fn tasks_are_typed_as_numbers_and_ranges() {
        assert_eq!((range("7"), range("3-9")), (Ok((7, 7)), Ok((3, 9))));
        assert!(["9-3", "a", "-1", "1-"].iter().all(|text| range(text).is_err()));
    }
}
