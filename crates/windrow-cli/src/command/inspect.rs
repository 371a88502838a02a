//! `windrow inspect`: what some data is.

use clap::Args;
use serde_json::{Value, json};
use windrow::dev::manifest::Manifest;
use windrow::{Dataset, Info};

use crate::args::{Choosing, Data, Opening, shown};
use crate::codes;
use crate::failure::{DONE, Failure};
use crate::histogram::{histogram, lines};
use crate::mixing;
use crate::out::Out;
use crate::{plan, text};

/// Show what some data is: format, counts, dtype, lengths, files
///
/// With --mixing the path is a plan's JSON file: how well its order mixes.
#[derive(Args, Debug)]
pub(crate) struct Inspect {
    #[command(flatten)]
    data: Data,
    /// Count records by length
    #[arg(long)]
    histogram: bool,
    /// Of a plan: how well its order mixes, over 64 batches; no data is read
    #[arg(long, conflicts_with = "histogram")]
    mixing: bool,
    /// Of a plan with balance: how long this number of ranks wait for the dearest of them
    #[arg(long, value_name = "W", requires = "mixing")]
    world_size: Option<u64>,
    #[command(flatten)]
    opening: Opening,
    #[command(flatten)]
    choosing: Choosing,
}

const FILES_SHOWN: usize = 5;

pub(crate) fn run(args: &Inspect, out: &mut Out) -> Result<i32, Failure> {
    if args.mixing {
        if args.opening.is_given() || args.choosing.is_given() {
            return Err(plan::says_itself("leave those options out"));
        }
        return mixing::show(&args.data, args.world_size.unwrap_or(1), out);
    }
    let paths = args.data.paths()?;
    let data = args.choosing.of(paths.open(&args.opening.options()?)?)?;
    if args.histogram && data.is_rows() {
        return Err(Failure::usage(
            "--histogram counts records by length, and these are rows, which have none",
        ));
    }
    let side = data.manifest();
    let info = data.info()?;
    let bars = if args.histogram { Some(histogram(&data)?) } else { None };
    show(&data, &info, side, out)?;
    let used = if codes::are_codes(data.source().as_ref()) { Some(codes::used(&data)?) } else { None };
    if let Some((used, tracks)) = &used {
        let range = (used.iter().min().copied().unwrap_or(0), used.iter().max().copied().unwrap_or(0));
        let (low, high) = (text::count(range.0), text::count(range.1));
        let of = if *tracks < data.len() {
            format!(", in the first {} tracks", text::count(*tracks))
        } else {
            String::new()
        };
        out.pairs(&[("codes used", format!("{low} to {high} different ones per channel{of}"))])?;
    }
    if let Some(bars) = &bars {
        out.line(format_args!("records by length in {}", if data.is_json() { "bytes" } else { "values" }))?;
        lines(bars, text::width()).into_iter().try_for_each(|line| out.line(line))?;
    }
    let mut object = json!({ "path": shown(&paths), "info": info, "side_file": side.map(side_facts) });
    if let Some((used, _)) = used {
        object["codes_used"] = json!(used);
    }
    if let Some(bars) = bars {
        object["histogram"] = json!(bars);
    }
    out.object(object)?;
    Ok(DONE)
}

/// What `inspect` shows of an open data set, for people.
pub(crate) fn show(
    data: &Dataset,
    info: &Info,
    side: Option<&Manifest>,
    out: &mut Out,
) -> Result<(), Failure> {
    let mut pairs = vec![("format", info.format.clone()), ("records", text::count(info.records))];
    let unit = if data.is_json() { "bytes" } else { "values" };
    if let Some(values) = info.values.filter(|_| !data.is_json() && !data.is_rows()) {
        pairs.push(("values", text::count(values)));
    }
    pairs.extend(info.dtype.clone().map(|dtype| ("dtype", dtype)));
    pairs.extend(info.channels.map(|channels| ("channels", channels.to_string())));
    if !info.columns.is_empty() {
        let columns: Vec<String> =
            info.columns.iter().map(|(name, holds)| format!("{} ({holds})", text::escaped(name))).collect();
        pairs.push(("columns", columns.join(", ")));
    }
    let lengths = (info.length_min, info.length_mean, info.length_max);
    if let (Some(min), Some(mean), Some(max)) = lengths
        && !data.is_rows()
    {
        let (min, max) = (text::count(min), text::count(max));
        pairs.push(("length", format!("{min} to {max}, {mean:.1} on average, in {unit}")));
    }
    pairs.push(("bytes", text::size(info.bytes)));
    if let Some(side) = side {
        if let Some(tokenizer) = &side.tokenizer {
            let vocab_size = text::count(tokenizer.vocab_size);
            pairs.push(("tokenizer", format!("{}, {vocab_size} ids", text::escaped(&tokenizer.name))));
        }
        pairs.extend(side.eos.map(|eos| ("eos", eos.to_string())));
        pairs.push(("made by", format!("windrow {}", text::escaped(&side.windrow))));
        if let Some(failed) = side.statistics.get("failed").and_then(Value::as_array) {
            let first =
                failed.first().and_then(|row| row.get("file")).and_then(Value::as_str).unwrap_or_default();
            let files = text::counted(failed.len() as u64, "file");
            pairs.push((
                "left out",
                format!("{files} that could not be read, first {}", text::escaped(first)),
            ));
        }
    }
    let ids = if codes::are_codes(data.source().as_ref()) { "codebook" } else { "vocabulary" };
    pairs.extend(info.vocab_size.map(|vocab_size| (ids, text::count(vocab_size))));
    if !info.hidden.is_empty() {
        pairs.push(("hidden", text::escaped(&windrow::dev::store::some_of(&info.hidden))));
    }
    if !info.tracks.is_empty() {
        pairs.push(("tracks", text::escaped(&info.tracks.join(", "))));
    }
    if !info.mask_columns.is_empty() {
        pairs.push(("learned by", text::escaped(&info.mask_columns.join(", "))));
    }
    if let Some(unlearned) = info.unlearned_documents {
        pairs.push(("not learned", text::counted(unlearned, "document")));
    }
    if !info.extras.is_empty() {
        pairs.push(("extras", text::escaped(&info.extras.join(", "))));
    }
    pairs.push(("files", text::count(info.files.len() as u64)));
    out.pairs(&pairs)?;
    for file in info.files.iter().take(FILES_SHOWN) {
        out.line(format_args!("  {}  {}", text::escaped(&file.file), text::size(file.size)))?;
    }
    if info.files.len() > FILES_SHOWN {
        out.line(format_args!("  … and {} more", text::count((info.files.len() - FILES_SHOWN) as u64)))?;
    }
    Ok(())
}

fn side_facts(side: &Manifest) -> Value {
    json!({
        "windrow": side.windrow,
        "format": side.format,
        "record_length": side.record_length,
        "vocab_size": side.vocab_size,
        "eos": side.eos,
        "tokenizer": side.tokenizer.as_ref().map(|t| json!({
            "name": t.name, "hash": t.hash, "vocab_size": t.vocab_size, "special": t.special,
        })),
        "inputs": side.inputs.len(),
        "options": side.options,
        "statistics": side.statistics,
    })
}
