//! `windrow verify`: every claim that is written beside the data, checked.

use clap::Args;
use serde_json::json;
use windrow::dev::format::lines::INDEX_FOLDER;
use windrow::prepare::{Findings, Problem, State, VerifyOptions};
use windrow::{Error, Kind};

use crate::args::{Data, Stores};
use crate::failure::{BAD_DATA, DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::text;

/// Files of each state that are listed.
const MOST_FILES: usize = 20;

/// Check sizes, hashes, counts and offsets; list damaged data and exit with 3
#[derive(Args, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    data: Data,
    /// Name of the index folder
    #[arg(long, value_name = "NAME", default_value = INDEX_FOLDER)]
    index_folder: String,
    /// Finish or remove what killed runs left behind
    #[arg(long)]
    gc: bool,
    #[command(flatten)]
    stores: Stores,
}

pub(crate) fn run(args: &Verify, out: &mut Out) -> Result<i32, Failure> {
    let paths = args.data.paths()?;
    let interrupt = Interrupt::listen();
    let options = VerifyOptions { index_folder: args.index_folder.clone(), gc: args.gc };
    let watch = Progress::new("verify", out.quiet(), &interrupt);
    let found = paths.verify_with(&options, &args.stores.options()?, &watch).map_err(stopped)?;
    drop(watch);
    problems(&found, out)?;
    for note in &found.notes {
        out.line(format_args!("note: {}", text::escaped(note)))?;
    }
    files(&found, out)?;
    let path = text::escaped(&paths.to_string());
    out.line(format_args!("{path}: {}; {}", verdict(&found), text::size(found.checked_bytes)))?;
    out.object(json!({ "state": found.state(), "findings": found }))?;
    Ok(if found.n_problems == 0 { DONE } else { BAD_DATA })
}

// What is wrong; an equal finding of consecutive records is printed once.
fn problems(found: &Findings, out: &mut Out) -> Result<(), Failure> {
    let is_next = |a: &Problem, b: &Problem| {
        let of = |problem: &Problem| {
            (problem.file.clone(), problem.what.clone(), problem.expected.clone(), problem.found.clone())
        };
        a.record.and_then(|record| record.checked_add(1)) == b.record && b.record.is_some() && of(a) == of(b)
    };
    for run in found.problems.chunk_by(is_next) {
        let [first, .., last] = run else {
            problem(&run[0], String::new(), out)?;
            continue;
        };
        let to = last.record.map_or(String::new(), |record| format!(" to {}", text::count(record)));
        problem(first, to, out)?;
    }
    let shown = found.problems.len() as u64;
    if found.n_problems > shown {
        out.line(format_args!("… and {}", text::counted(found.n_problems - shown, "more problem")))?;
    }
    Ok(())
}

fn problem(problem: &Problem, to: String, out: &mut Out) -> Result<(), Failure> {
    let records = if to.is_empty() { "record" } else { "records" };
    let record = problem.record.map_or(String::new(), |at| format!(", {records} {}{to}", text::count(at)));
    let (file, what) = (text::escaped(&problem.file), text::escaped(&problem.what));
    out.line(format_args!("bad: {file}{record}: {what}"))?;
    out.line(format_args!("  expected: {}", text::escaped(&problem.expected)))?;
    out.line(format_args!("  found:    {}", text::escaped(&problem.found)))?;
    Ok(())
}

// What was done with each file that is not bad: those that were only read first.
fn files(found: &Findings, out: &mut Out) -> Result<(), Failure> {
    for (state, n) in [(State::Read, found.read_files), (State::Checked, found.checked_files)] {
        for (file, verified) in found.files.iter().filter(|(_, it)| it.state == state).take(MOST_FILES) {
            let file = text::escaped(file);
            match &verified.by {
                Some(by) => out.line(format_args!("checked: {file}: {by}"))?,
                None => out.line(format_args!("read: {file}: no checksum to compare"))?,
            }
        }
        if let Some(more @ 1..) = n.checked_sub(MOST_FILES as u64) {
            out.line(format_args!("… and {} {}", text::counted(more, "more file"), word(state)))?;
        }
    }
    Ok(())
}

fn word(state: State) -> &'static str {
    match state {
        State::Checked => "checked",
        State::Read => "read",
        State::Bad => "bad",
    }
}

fn verdict(found: &Findings) -> String {
    let states = [
        (State::Bad, found.bad_files),
        (State::Checked, found.checked_files),
        (State::Read, found.read_files),
    ];
    let some = states.into_iter().filter(|(_, n)| *n > 0);
    let files: Vec<String> =
        some.map(|(state, n)| format!("{} {}", text::counted(n, "file"), word(state))).collect();
    let files = if files.is_empty() { "no file of data".to_string() } else { files.join(", ") };
    match found.n_problems {
        0 => files,
        n => format!("{}; {files}", text::counted(n, "problem")),
    }
}

// What tasks that write say of being stopped is not true of one that only reads.
fn stopped(error: Error) -> Error {
    match error.kind() {
        Kind::Interrupted => Error::new(Kind::Interrupted, "stopped before the end: not all was checked"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use windrow::dev::{Watch, check};

    use super::*;

    struct Asked;

    impl Watch for Asked {
        fn progress(&self, _now: windrow::prepare::Progress) {}

        fn cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_check_that_is_stopped_says_nothing_of_output() {
        let said = stopped(check(&Asked).unwrap_err());
        assert_eq!((said.kind(), said.hint_text()), (Kind::Interrupted, None));
        assert!(!said.message().contains("written"), "{said}");
        assert_eq!(stopped(Error::corrupt("bad")).message(), "bad");
    }
}
