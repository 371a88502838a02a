//! `windrow trace`: which bytes a step read.

use clap::Args;
use serde_json::{Value, json};
use windrow::dev::plan::Step;
use windrow::preview::numbers;
use windrow::preview::tokens::{self, Tokenizer};
use windrow::{Plan, RowOfStep, Span, rows_of_step};

use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::plan::{OfRank, Planned};
use crate::text;

/// Show which bytes a step read
///
/// PLAN is a plan's JSON file (`-` for stdin), or data and how to cut it: `windrow trace tokens/ --pack 1024 --batch-size 8 --step 7`.
#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// The step, from 0; with --epoch counted in that epoch, else from the start of the run
    #[arg(long, value_name = "K")]
    step: u64,
    /// Only this row of the batch
    #[arg(long, value_name = "R")]
    row: Option<u64>,
    /// The epoch, from 0
    #[arg(long, value_name = "E")]
    epoch: Option<u64>,
    #[command(flatten)]
    of_rank: OfRank,
    #[command(flatten)]
    planned: Planned,
}

const PREVIEW_VALUES: u64 = 64;

pub(crate) fn run(args: &Trace, out: &mut Out) -> Result<i32, Failure> {
    let (recipe, plan, steps) = args.planned.open(args.of_rank)?;
    let step = steps.find(plan.sampler(), args.epoch, args.step)?;
    let n_rows = step.all.end - step.all.start;
    let step = Step { shard: args.of_rank.shard()?, ..step };
    let rows = rows_of_step(&plan, &step, args.row, args.of_rank.world_size()?)?;
    let tokenizers = args.planned.tokenizers(&recipe)?;
    let (epoch, first) = (step.epoch, text::count(step.all.start));
    let last = text::count(step.position(plan.sampler(), n_rows - 1));
    out.line(format_args!("step {}  epoch {epoch}, positions {first} to {last}", args.step))?;
    let mut objects = Vec::new();
    for row in rows {
        let object = show_row(&plan, epoch, row, &tokenizers, out)?;
        if out.is_json() {
            objects.push(object);
        }
    }
    out.object(json!({
        "plan": plan.identity()?.to_string(),
        "seed": plan.seed(),
        "step": args.step,
        "epoch": epoch,
        "batch_rows": n_rows,
        "rows": objects,
    }))?;
    Ok(DONE)
}

fn show_row(
    plan: &Plan,
    epoch: u64,
    of_step: RowOfStep,
    tokenizers: &[Option<Tokenizer>],
    out: &mut Out,
) -> Result<Value, Failure> {
    let RowOfStep { row, rank, position } = of_step;
    let traced = of_step.trace(plan, epoch)?;
    let rank = rank.map_or_else(String::new, |rank| format!("  rank {rank}"));
    let part = match &traced.part_name {
        Some(name) => format!(", part {} ({})", traced.part, text::escaped(name)),
        None => String::new(),
    };
    let sample = text::count(traced.sample);
    out.line(format_args!("row {row}{rank}  position {position}{part}, sample {sample} of {}", traced.view))?;
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
