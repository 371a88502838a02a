//! `windrow coverage`: which parts, files and records a range of steps read.

use std::ops::Range;

use clap::Args;
use serde_json::json;
use windrow::dev::plan::{CoveredPart, Steps};

use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::plan::{self, OfRank, Planned};
use crate::progress::Progress;
use crate::text;

/// Show which parts, files and records a range of steps read
#[derive(Args, Debug)]
pub(crate) struct Coverage {
    /// The steps, counted from the start of the run: a..b, without b
    #[arg(long, value_name = "A..B", value_parser = plan::steps)]
    steps: Range<u64>,
    /// List the records by number
    #[arg(long)]
    list_records: bool,
    #[command(flatten)]
    of_rank: OfRank,
    #[command(flatten)]
    planned: Planned,
}

pub(crate) fn run(args: &Coverage, out: &mut Out) -> Result<i32, Failure> {
    args.planned.no_tokenizer("coverage shows none of them")?;
    let (recipe, plan, steps) = args.planned.open(args.of_rank)?;
    let steps = Steps { shard: args.of_rank.shard()?, ..steps };
    let interrupt = Interrupt::listen();
    let watch = Progress::new("coverage", out.quiet(), &interrupt);
    let covered = plan.covered(&steps, args.steps.clone(), args.list_records, &watch)?;
    drop(watch);
    out.line(format_args!(
        "steps {}..{}",
        text::count(args.steps.start),
        text::count(args.steps.start + covered.steps)
    ))?;
    let parts = plan.feeds().iter().zip(&covered.parts).enumerate();
    let mut objects = Vec::new();
    for (number, (feed, part)) in parts {
        let name = recipe.names.get(number);
        let n_records = feed.numbers();
        show(name.map(String::as_str), part, n_records, out)?;
        let mut object = json!(part);
        object["part"] = json!(number);
        object["name"] = json!(name);
        object["records_of"] = json!(n_records);
        objects.push(object);
    }
    out.object(json!({
        "plan": plan.identity()?.to_string(),
        "seed": plan.seed(),
        "from": args.steps.start,
        "steps": covered.steps,
        "parts": objects,
    }))?;
    Ok(DONE)
}

fn show(name: Option<&str>, part: &CoveredPart, n_records: u64, out: &mut Out) -> Result<(), Failure> {
    let name = name.map_or(String::new(), |name| format!("{}: ", text::escaped(name)));
    out.line(format_args!(
        "{name}{}, {}, {} of {} records",
        text::counted(part.samples, "sample"),
        text::counted(part.values, "value"),
        text::count(part.records),
        text::count(n_records)
    ))?;
    for file in &part.files {
        let (size, values) = (text::size(file.bytes), text::counted(file.values, "value"));
        out.line(format_args!("  {}  {size}, {values}", text::escaped(&file.file)))?;
    }
    for (from, to) in part.record_ranges.iter().flatten() {
        match to - from {
            1 => out.line(format_args!("  record {from}"))?,
            _ => out.line(format_args!("  records {from}..{to}"))?,
        }
    }
    Ok(())
}
