//! `windrow inspect`: what some data is.

use clap::Args;
use serde_json::{Value, json};
use windrow::dev::manifest::Manifest;
use windrow::{Dataset, Info};

use crate::args::{Data, Opening, shown};
use crate::codes;
use crate::failure::{DONE, Failure};
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
    #[command(flatten)]
    opening: Opening,
}

/// Records whose length is at least `from` and at most `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
struct Bar {
    from: u64,
    to: u64,
    records: u64,
}

const FILES_SHOWN: usize = 5;
const BAR_COLUMNS: u64 = 40;
const MOST_BARS: usize = 65;

pub(crate) fn run(args: &Inspect, out: &mut Out) -> Result<i32, Failure> {
    if args.mixing {
        if args.opening.is_given() {
            return Err(plan::says_itself("leave those options out"));
        }
        return mixing::show(&args.data, out);
    }
    let paths = args.data.paths()?;
    let data = paths.open(&args.opening.options()?)?;
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
        show_bars(bars, if data.is_json() { "bytes" } else { "values" }, out)?;
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

// Doubling ranges: 0, 1, 2..3, 4..7, …; only those from the shortest to the longest record.
fn histogram(data: &Dataset) -> Result<Vec<Bar>, Failure> {
    let source = data.source();
    let mut counts = [0u64; MOST_BARS];
    let mut count = |length: u64, n: u64| counts[(u64::BITS - length.leading_zeros()) as usize] += n;
    match source.uniform() {
        Some(length) => count(length, data.len()),
        None => {
            for record in 0..data.len() {
                count(source.length(record)?, 1);
            }
        }
    }
    let bars = counts.iter().enumerate().map(|(bits, &records)| {
        let from = if bits == 0 { 0 } else { 1u64 << (bits - 1) };
        Bar { from, to: from.saturating_mul(2).saturating_sub(1).max(from), records }
    });
    let filled = |bar: &Bar| bar.records > 0;
    let (first, last) = (counts.iter().position(|n| *n > 0), counts.iter().rposition(|n| *n > 0));
    Ok(match (first, last) {
        (Some(first), Some(last)) => bars.take(last + 1).skip(first).collect(),
        _ => bars.filter(filled).collect(),
    })
}

fn show_bars(bars: &[Bar], unit: &str, out: &mut Out) -> Result<(), Failure> {
    let most = bars.iter().map(|b| b.records).max().unwrap_or(0).max(1);
    let names: Vec<String> =
        bars.iter().map(|b| format!("{}..{}", text::count(b.from), text::count(b.to))).collect();
    let counts: Vec<String> = bars.iter().map(|b| text::count(b.records)).collect();
    let (names_width, counts_width) = (widest(&names), widest(&counts));
    out.line(format_args!("records by length in {unit}"))?;
    for ((bar, name), count) in bars.iter().zip(&names).zip(&counts) {
        let columns = u128::from(bar.records) * u128::from(BAR_COLUMNS) / u128::from(most);
        let drawn = "█".repeat(usize::try_from(columns).unwrap_or(0).max(usize::from(bar.records > 0)));
        out.line(
            format_args!("  {name:>names_width$}  {count:>counts_width$}  {drawn}").to_string().trim_end(),
        )?;
    }
    Ok(())
}

fn widest(texts: &[String]) -> usize {
    texts.iter().map(String::len).max().unwrap_or(0)
}
