//! `windrow verify`: every claim that is written beside the data, checked.

use clap::Args;
use serde_json::json;
use windrow::dev::format::lines::INDEX_FOLDER;
use windrow::prepare::VerifyOptions;
use windrow::{Error, Kind};

use crate::args::{Data, Stores};
use crate::failure::{BAD_DATA, DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::text;

/// Check every claim: sizes, hashes, counts, offsets; exit 3 and a list where data is bad
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
    let found = paths.verify_with(&options, &args.stores.options(), &watch).map_err(stopped)?;
    drop(watch);
    for problem in &found.problems {
        let record =
            problem.record.map_or(String::new(), |record| format!(", record {}", text::count(record)));
        let (file, what) = (text::escaped(&problem.file), text::escaped(&problem.what));
        out.line(format_args!("bad: {file}{record}: {what}"))?;
        out.line(format_args!("  expected: {}", text::escaped(&problem.expected)))?;
        out.line(format_args!("  found:    {}", text::escaped(&problem.found)))?;
    }
    let shown = found.problems.len() as u64;
    if found.n_problems > shown {
        out.line(format_args!("… and {}", text::counted(found.n_problems - shown, "more problem")))?;
    }
    for note in &found.notes {
        out.line(format_args!("note: {}", text::escaped(note)))?;
    }
    let (files, size) = (text::counted(found.checked_files, "file"), text::size(found.checked_bytes));
    let verdict = match found.n_problems {
        0 if found.checked_files == 0 => "nothing was compared".to_string(),
        0 => "good".to_string(),
        n => text::counted(n, "problem"),
    };
    let path = text::escaped(&paths.to_string());
    out.line(format_args!("{path}: {verdict}; {files}, {size} checked"))?;
    out.object(json!({ "good": found.n_problems == 0, "findings": found }))?;
    Ok(if found.n_problems == 0 { DONE } else { BAD_DATA })
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
