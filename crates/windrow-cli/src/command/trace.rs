//! `windrow trace`: which bytes a step read, and which steps read a record.

use std::ops::Range;

use clap::Args;
use serde_json::{Value, json};
use windrow::dev::plan::{Steps, is_skipped};
use windrow::preview::numbers;
use windrow::preview::tokens::{self, Tokenizer};
use windrow::{Error, Plan, Recipe, Span, trace_row};

use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::plan::{OfRank, Planned};
use crate::text;

/// Show which bytes a step read, or which steps read a record
///
/// PLAN is a plan's JSON file (`-` for stdin), or data and how to cut it: `windrow trace tokens/ --pack 1024 --batch-size 8 --step 7`.
#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// The step, from 0; with --epoch counted in that epoch, else from the start of the run
    #[arg(long, value_name = "K", required_unless_present = "record", conflicts_with = "record")]
    step: Option<u64>,
    /// With --step: only this row of the batch
    #[arg(long, value_name = "R")]
    row: Option<u64>,
    /// The epoch, from 0
    #[arg(long, value_name = "E")]
    epoch: Option<u64>,
    #[command(flatten)]
    of_rank: OfRank,
    /// The other way: which steps read this record; numbers run through the data, with --file through that file
    #[arg(long, value_name = "N")]
    record: Option<u64>,
    /// With --record: the file it is in
    #[arg(long, value_name = "F")]
    file: Option<String>,
    /// With --record: the part of a mixture, by its name or its number from 0 [default: 0]
    #[arg(long, value_name = "I")]
    part: Option<String>,
    #[command(flatten)]
    planned: Planned,
}

/// Positions of one record that are looked for at most.
const MOST_FOUND: usize = 10_000;
const PREVIEW_VALUES: u64 = 64;

pub(crate) fn run(args: &Trace, out: &mut Out) -> Result<i32, Failure> {
    check(args)?;
    let (recipe, plan, steps) = args.planned.open(args.of_rank)?;
    match (args.step, args.record) {
        (Some(step), _) => forwards(args, &recipe, &plan, &steps, step, out)?,
        (None, Some(record)) => {
            args.planned.no_tokenizer("--record shows none of them")?;
            backwards(args, &recipe, &plan, &steps, record, out)?;
        }
        (None, None) => return Err(Failure::usage("name a --step or a --record")),
    }
    Ok(DONE)
}

// clap waives `requires` where --step and --record exclude each other.
fn check(args: &Trace) -> Result<(), Failure> {
    let options = [
        ("--row", args.row.is_some(), "--step", args.step.is_some()),
        ("--rank", args.of_rank.is_given(), "--step", args.step.is_some()),
        ("--file", args.file.is_some(), "--record", args.record.is_some()),
        ("--part", args.part.is_some(), "--record", args.record.is_some()),
    ];
    match options.into_iter().find(|(_, is_given, _, fits)| *is_given && !fits) {
        Some((option, _, way, _)) => Err(Failure::usage(format!("{option} is an option of {way}"))),
        None => Ok(()),
    }
}

fn forwards(
    args: &Trace,
    recipe: &Recipe,
    plan: &Plan,
    steps: &Steps,
    number: u64,
    out: &mut Out,
) -> Result<(), Failure> {
    let step = steps.find(plan.sampler(), args.epoch, number)?;
    let n_rows = step.all.end - step.all.start;
    let rows = rows(args, n_rows)?;
    let tokenizers = args.planned.tokenizers(recipe)?;
    let (epoch, first) = (step.epoch, text::count(step.all.start));
    let last = text::count(step.position(plan.sampler(), n_rows - 1));
    out.line(format_args!("step {number}  epoch {epoch}, positions {first} to {last}"))?;
    let mut objects = Vec::new();
    for row in rows {
        let object = show_row(plan, epoch, step.position(plan.sampler(), row), row, &tokenizers, out)?;
        if out.is_json() {
            objects.push(object);
        }
    }
    out.object(json!({
        "plan": plan.identity()?.to_string(),
        "seed": plan.seed(),
        "step": number,
        "epoch": epoch,
        "batch_rows": n_rows,
        "rows": objects,
    }))?;
    Ok(())
}

// Rows of the batch over all ranks; --row counts within the rank where one is named.
fn rows(args: &Trace, n_rows: u64) -> Result<Range<u64>, Failure> {
    let own = args.of_rank.shard()?.rows(n_rows);
    match args.row {
        Some(row) if row < own.end - own.start => Ok(own.start + row..own.start + row + 1),
        Some(row) => Err(Error::out_of_range("row", row, own.end - own.start).into()),
        None => Ok(own),
    }
}

fn show_row(
    plan: &Plan,
    epoch: u64,
    position: u64,
    row: u64,
    tokenizers: &[Option<Tokenizer>],
    out: &mut Out,
) -> Result<Value, Failure> {
    let traced = trace_row(plan, epoch, position, row)?;
    let part = match &traced.part_name {
        Some(name) => format!(", part {} ({})", traced.part, text::escaped(name)),
        None => String::new(),
    };
    let sample = text::count(traced.sample);
    out.line(format_args!("row {row}  position {position}{part}, sample {sample} of {}", traced.view))?;
    let is_whole = plan.feeds()[traced.part].collate().rows().is_some();
    for read in &traced.reads {
        let (record, from, to) =
            (text::count(read.record), text::count(read.start), text::count(read.start + read.len));
        for l in &read.locations {
            let (start, end) = (text::count(l.start), text::count(l.start + l.size));
            let file = text::escaped(&l.file);
            let channel = read.channel.map_or_else(String::new, |channel| format!(", channel {channel}"));
            let values = if is_whole { String::new() } else { format!("values {from}..{to}  ") };
            out.line(format_args!("  record {record}{channel}  {values}{file}  bytes {start}..{end}"))?;
        }
    }
    let mut object = json!(traced);
    let tokenizer = tokenizers.get(traced.part).and_then(Option::as_ref).filter(|_| !is_whole);
    if let (Some(tokenizer), Some(read)) = (tokenizer, traced.reads.first()) {
        let feed = &plan.feeds()[traced.part];
        let record = feed.record_of(read.record).unwrap_or(read.record);
        let first = Span { record, start: read.start, len: read.len.min(PREVIEW_VALUES) };
        let ids = numbers::whole_numbers(feed.source().as_ref(), first)?;
        if let Some(preview) = tokens::decoded(tokenizer, &ids) {
            out.line(text::truncated(&format!("  | {}", text::escaped(&preview)), text::width()))?;
            object["text"] = json!(preview);
        }
    }
    Ok(object)
}

fn backwards(
    args: &Trace,
    recipe: &Recipe,
    plan: &Plan,
    steps: &Steps,
    record: u64,
    out: &mut Out,
) -> Result<(), Failure> {
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
        Some(file) => record_in_file(feed, file, record)?,
        None => record,
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
                rows.push((at.position, at.sample, None, at.position % steps.global_batch_size));
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
    Ok(())
}

// Goes through the index: which record is the `n`th of a file no table says.
fn record_in_file(feed: &windrow::dev::plan::Feed, file: &str, n: u64) -> Result<u64, Failure> {
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
