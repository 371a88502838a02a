//! `windrow diff`: whether two plans give the same batches, else from which step on they do not, and why.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use windrow::compare;

use crate::args::path;
use crate::failure::{DONE, Failure, MISMATCH};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::{plan, text};

/// Compare two plans: the same batches (exit 0), or the first step that differs, and why (exit 4)
#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// A plan's JSON, as `windrow plan` writes it; `-` for stdin
    #[arg(value_name = "A", value_parser = path())]
    a: PathBuf,
    /// The other one
    #[arg(value_name = "B", value_parser = path())]
    b: PathBuf,
    /// Of a plan that holds only a hash of its record numbers: the .npy file with them, once for each
    #[arg(long, value_name = "FILE")]
    select: Vec<String>,
    /// Compare at most this number of steps, from the first that can differ
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: u64,
}

pub(crate) fn run(args: &Diff, out: &mut Out) -> Result<i32, Failure> {
    if args.a.as_os_str() == "-" && args.b.as_os_str() == "-" {
        return Err(Failure::usage("only one of two plans can come from stdin"));
    }
    let [a, b] = [&args.a, &args.b].map(|path| plan::read(path).map_err(|e| e.hint(plan::IS_A_PLAN)));
    let (mut a, mut b) = (a?, b?);
    for file in &args.select {
        // It is that of one of them, or of both.
        let file = std::slice::from_ref(file);
        if let (Err(e), Err(_)) = (plan::fill(&mut a, file), plan::fill(&mut b, file)) {
            return Err(e.into());
        }
    }
    let interrupt = Interrupt::listen();
    let found = compare(&a, &b, args.steps, &|| !interrupt.asked())?;
    match &found.first {
        _ if found.same => out.line("the same batches")?,
        Some(first) => out.line(format_args!(
            "first difference  step {}, epoch {}: {}",
            text::count(first.step),
            first.epoch,
            text::escaped(&first.what)
        ))?,
        None => out.line(format_args!(
            "the same in the first {}; --steps compares more",
            text::counted(found.compared, "step")
        ))?,
    }
    let width = found.differences.iter().map(|d| d.what.len()).max().unwrap_or(0);
    for difference in &found.differences {
        let [a, b] = [&difference.a, &difference.b].map(shown);
        let option = text::escaped(&difference.option);
        out.line(format_args!("{:width$}  {option}: {a} in A, {b} in B", difference.what))?;
    }
    out.object(json!(found))?;
    Ok(if found.same { DONE } else { MISMATCH })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not given".to_string(),
        value => text::escaped(&value.to_string()),
    }
}
