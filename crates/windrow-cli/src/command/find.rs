//! `windrow find`: which steps read a record, the inverse of trace.

use clap::Args;
use serde_json::{Value, json};
use windrow::dev::plan::{Feed, is_skipped};
use windrow::{Error, Span};

use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::plan::{OfRank, Planned};
use crate::text;

/// Show which steps read a record: the inverse of trace
///
/// PLAN is a plan's JSON file (`-` for stdin), or data and how to cut it: `windrow find tokens/ --pack 1024 --batch-size 8 --record 7`.
#[derive(Args, Debug)]
pub(crate) struct Find {
    /// The record, by its number in the data; with --file by its number in that file
    #[arg(long, value_name = "N")]
    record: u64,
    /// The file it is in
    #[arg(long, value_name = "F")]
    file: Option<String>,
    /// The part of a mixture that it is in, by its name or its number from 0 [default: 0]
    #[arg(long, value_name = "I")]
    part: Option<String>,
    /// The epoch, from 0 [default: 0]
    #[arg(long, value_name = "E")]
    epoch: Option<u64>,
    /// Number of ranks; with --batch-size they decide the rows of a step
    #[arg(long, value_name = "W")]
    world_size: Option<u64>,
    #[command(flatten)]
    planned: Planned,
}

/// Positions of one record that are looked for at most.
const MOST_FOUND: usize = 10_000;

pub(crate) fn run(args: &Find, out: &mut Out) -> Result<i32, Failure> {
    args.planned.no_tokenizer("find shows none of them")?;
    let (recipe, plan, steps) = args.planned.open(OfRank::of_all(args.world_size))?;
    let feeds = plan.feeds();
    let part = match args.part.as_deref() {
        None => 0,
        Some(given) => match given.parse() {
            Ok(number) => number,
            Err(_) => windrow::part_named(&recipe.names, given)?,
        },
    };
    let feed = feeds.get(part).ok_or_else(|| Error::out_of_range("part", part, feeds.len() as u64))?;
    let record = match &args.file {
        Some(file) => record_in_file(feed, file, args.record)?,
        None => args.record,
    };
    let epoch = args.epoch.unwrap_or(0);
    let found = plan.find(part, record, epoch, MOST_FOUND)?;
    let complete = found.len() < MOST_FOUND;
    let mut rows = Vec::new();
    for at in found {
        // A view says which samples may read a record; what was drawn decides.
        let spans = plan.trace(epoch, at.position)?.spans;
        if spans.iter().any(|span| feed.number_of(span.record) == record && span.len > 0) {
            let mut places = steps.places(plan.sampler(), epoch, at.position).peekable();
            if places.peek().is_none() {
                rows.push((at.position, at.sample, None, steps.row(plan.sampler(), epoch, at.position)));
            }
            rows.extend(places.map(|(step, row)| (at.position, at.sample, Some(step), row)));
        }
    }
    rows.sort_unstable();
    out.line(format_args!(
        "record {}  in epoch {epoch}: {}",
        text::count(record),
        text::counted(rows.len() as u64, "sample")
    ))?;
    for (position, sample, step, row) in &rows {
        let place = match step {
            Some(step) => format!("step {step}, row {row}"),
            None if is_skipped(plan.sampler(), epoch, *position) => "skipped".to_string(),
            None => "in a last batch, which is not full and left out".to_string(),
        };
        out.line(format_args!("  {place}  position {position}, sample {sample}"))?;
    }
    if !complete {
        out.line(format_args!(
            "  … only the first {} samples were looked at",
            text::count(MOST_FOUND as u64)
        ))?;
    }
    let reads: Vec<Value> = rows
        .iter()
        .map(|(position, sample, step, row)| json!({ "step": step, "row": row, "position": position, "sample": sample }))
        .collect();
    out.object(
        json!({ "record": record, "part": part, "epoch": epoch, "read_by": reads, "complete": complete }),
    )?;
    Ok(DONE)
}

// Goes through the index: which record is the `n`th of a file no table says.
fn record_in_file(feed: &Feed, file: &str, n: u64) -> Result<u64, Failure> {
    let source = feed.source();
    let channels = feed.per_record();
    if feed.numbers() * channels != source.len() {
        return Err(Failure::usage(
            "--file counts all records of a file, and this plan leaves out some: give the number in the data set",
        ));
    }
    let names: Vec<String> = source.files().into_iter().map(|f| f.file).collect();
    let below = format!("/{}", file.trim_start_matches("./"));
    let matching: Vec<&String> =
        names.iter().filter(|name| *name == file || name.ends_with(&below)).collect();
    let [name] = matching[..] else {
        let hint = names.first().map(|name| format!("the first file is {name}")).unwrap_or_default();
        let message = format!("{} of the data's files are called {file:?}, expected one", matching.len());
        return Err(Error::not_found(message).hint(hint).into());
    };
    let interrupt = Interrupt::listen();
    let mut seen = 0;
    for record in 0..feed.numbers() {
        interrupt.check()?;
        let first = record * channels;
        let whole = Span { record: first, start: 0, len: source.length(first)? };
        if source.locate(whole)?.iter().any(|l| l.file == *name) {
            if seen == n {
                return Ok(record);
            }
            seen += 1;
        }
    }
    Err(Error::out_of_range("record", n, seen).at(name).into())
}
