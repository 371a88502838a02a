//! `windrow verify`: every claim that is written beside the data, checked.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::prepare::{self, VerifyOptions};

use crate::failure::{BAD_DATA, DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::text;

/// Check every claim: sizes, hashes, counts, offsets; exit 3 and a list where data is bad
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// A file or folder
    path: PathBuf,
    /// Remove what killed runs left behind
    #[arg(long)]
    gc: bool,
}

pub(crate) fn run(args: &Verify, out: &mut Out) -> Result<i32, Failure> {
    let interrupt = Interrupt::listen();
    let options = VerifyOptions { gc: args.gc, ..VerifyOptions::default() };
    let found = prepare::verify(&args.path, &options, &Progress::new("verify", out.quiet(), &interrupt))?;
    for problem in &found.problems {
        out.line(format_args!("bad: {}: {}", text::escaped(&problem.file), text::escaped(&problem.what)))?;
        out.line(format_args!("  expected: {}", text::escaped(&problem.expected)))?;
        out.line(format_args!("  found:    {}", text::escaped(&problem.found)))?;
    }
    for note in &found.notes {
        out.line(format_args!("note: {}", text::escaped(note)))?;
    }
    let (files, size) = (text::counted(found.checked_files, "file"), text::size(found.checked_bytes));
    let verdict = match found.problems.len() {
        0 => "good".to_string(),
        n => text::counted(n as u64, "problem"),
    };
    out.line(format_args!("{}: {verdict}; {files}, {size} checked", args.path.display()))?;
    out.object(json!({ "good": found.problems.is_empty(), "findings": found }))?;
    Ok(if found.problems.is_empty() { DONE } else { BAD_DATA })
}
