//! `windrow peek`: some records as people read them.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use windrow::Span;
use windrow::dev::source::Extras;
use windrow::preview::numbers;
use windrow::preview::series::{self, Facts};
use windrow::preview::tokens::{self, Tokenizer};
use windrow::{Dataset, Error};

use crate::args::{Choosing, Data, Opening, only_token_ids, path, shown};
use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::plot::braille;
use crate::{codes, play, text};

/// Show records in readable form: text decoded, JSON arranged, series drawn
#[derive(Args, Debug)]
pub(crate) struct Peek {
    #[command(flatten)]
    data: Data,
    /// How many, from the first
    #[arg(short, value_name = "N", default_value_t = 3)]
    n: u64,
    /// Only this one; negative counts from the end
    #[arg(long, value_name = "I", conflicts_with = "n", allow_hyphen_values = true)]
    index: Option<i64>,
    /// Decode with this tokenizer; by default the built-in one that the manifest names
    #[arg(long, value_name = "T")]
    tokenizer: Option<String>,
    /// Write the sound of the record, of codes, to this .wav; the first record's where several are shown
    #[arg(long, value_name = "OUT.wav", value_parser = path())]
    play: Option<PathBuf>,
    /// With --play: the codec's weights
    #[arg(long, value_name = "FILE", requires = "play", value_parser = path())]
    weights: Option<PathBuf>,
    /// With --play: replace the file
    #[arg(long, requires = "play")]
    overwrite: bool,
    #[command(flatten)]
    opening: Opening,
    #[command(flatten)]
    choosing: Choosing,
}

/// Values of one record that are read at most.
const MOST_VALUES: u64 = 4096;
/// Numbers of one series that are drawn at most.
const MOST_DRAWN: u64 = 1 << 20;
/// The largest width of a plot in characters, and its largest height in lines.
const PLOT_COLUMNS: usize = 100;
const PLOT_ROWS: usize = 4;
/// Channels of one series that are drawn at most.
const MOST_CHANNELS: usize = 4;
/// Lines of one record that are shown at most.
const MOST_LINES: usize = 12;
/// An array of at least this number of numbers is shown as a plot.
const LEAST_PLOTTED: usize = 16;

pub(crate) fn run(args: &Peek, out: &mut Out) -> Result<i32, Failure> {
    let paths = args.data.paths()?;
    let data = args.choosing.of(paths.open(&args.opening.options()?)?)?;
    only_token_ids(args.tokenizer.as_deref(), data.source().as_ref())?;
    let tokenizer = if data.is_json() || data.is_rows() {
        None
    } else {
        tokens::tokenizer(args.tokenizer.as_deref(), data.manifest())?
    };
    let records = match args.index {
        Some(index) => {
            let record = from_the_end(index, data.len())
                .ok_or_else(|| Error::out_of_range("record", index, data.len()).at(paths.to_string()))?;
            record..record + 1
        }
        None => 0..args.n.min(data.len()),
    };
    if let Some(to) = &args.play {
        let nothing = || Failure::usage("--play writes the sound of the first record shown, and none is");
        let record = records.clone().next().ok_or_else(nothing)?;
        play::play(&data, record, args.weights.as_deref(), to, args.overwrite)?;
    }
    let mut objects = Vec::new();
    for record in records {
        if !out.has_reader() {
            break;
        }
        let length = data.length(record)?;
        let size = match (data.is_json(), data.is_rows()) {
            (true, _) => text::counted(length, "byte"),
            (_, true) if data.source().schema().is_value() => data.source().schema().columns[0].holds.clone(),
            (_, true) => text::counted(data.source().schema().columns.len() as u64, "column"),
            _ => text::counted(length, "value"),
        };
        out.line(format_args!("record {}  {size}", data.number(record)))?;
        let object = match (data.is_json(), data.is_rows()) {
            (true, _) => show_json(&data, record, out)?,
            (_, true) => show_row(&data, record, out)?,
            _ => show_numbers(&data, record, tokenizer.as_ref(), out)?,
        };
        if out.is_json() {
            objects.push(object);
        }
    }
    out.object(json!({ "path": shown(&paths), "records_in_all": data.len(), "records": objects }))?;
    Ok(DONE)
}

fn from_the_end(index: i64, len: u64) -> Option<u64> {
    let record = match index {
        0.. => u64::try_from(index).ok(),
        _ => len.checked_sub(index.unsigned_abs()),
    };
    record.filter(|r| *r < len)
}

fn show_json(data: &Dataset, record: u64, out: &mut Out) -> Result<Value, Failure> {
    let value = data.json(record)?;
    if !out.is_json() {
        let mut lines = Vec::new();
        write_lines(&value, &mut lines);
        show_lines(&lines, out)?;
    }
    Ok(json!({ "record": record, "value": value }))
}

fn show_row(data: &Dataset, record: u64, out: &mut Out) -> Result<Value, Failure> {
    let row = Value::Object(data.row(record)?.shown());
    // A record that is one value is shown as that.
    let row = match (data.source().schema().is_value(), row) {
        (true, Value::Object(row)) => row.into_iter().next().map_or(Value::Null, |(_, value)| value),
        (_, row) => row,
    };
    if !out.is_json() {
        let mut lines = Vec::new();
        write_lines(&row, &mut lines);
        show_lines(&lines, out)?;
    }
    Ok(json!({ "record": record, "row": row }))
}

fn show_numbers(
    data: &Dataset,
    record: u64,
    tokenizer: Option<&Tokenizer>,
    out: &mut Out,
) -> Result<Value, Failure> {
    let source = data.source();
    let span = Span { record, start: 0, len: data.length(record)?.min(MOST_VALUES) };
    let extras = data.extras(record)?;
    let mut lines = Vec::new();
    let is_whole = source.schema().element.dtype.is_integer();
    if !out.is_json() && codes::are_codes(source.as_ref()) {
        let channels = source.schema().channels.unwrap_or(1);
        for line in codes::grid(&numbers::whole_numbers(source.as_ref(), span)?, channels) {
            out.line(text::truncated(&line, text::width()))?;
        }
        return show_extras(&extras, out).map(|()| Value::Null);
    }
    if !out.is_json() && tokenizer.is_none() && !tokens::is_tokens(data.source().as_ref()) {
        show_series(data, record, out)?;
        return show_extras(&extras, out).map(|()| Value::Null);
    }
    let numbers = numbers::json(source.as_ref(), span)?;
    if is_whole {
        lines.push(format!("  {}", join(&numbers)));
        let ids: Option<Vec<i64>> = numbers.iter().map(Value::as_i64).collect();
        if let Some(text) = tokenizer.zip(ids).and_then(|(t, ids)| tokens::decoded(t, &ids)) {
            lines.extend(text.lines().map(|line| format!("  | {}", text::escaped(line))));
        }
    }
    show_lines(&lines, out)?;
    show_extras(&extras, out)?;
    let length = data.length(record)?;
    let mut object =
        json!({ "record": record, "length": length, "values": numbers, "extras": extras.shown() });
    if span.len < length {
        object["truncated"] = json!(true);
    }
    Ok(object)
}

fn show_extras(extras: &Extras, out: &mut Out) -> Result<(), Failure> {
    let mut lines = Vec::new();
    if !extras.is_empty() {
        write_lines(&Value::Object(extras.shown()), &mut lines);
    }
    show_lines(&lines, out)
}

// A plot per channel, and what it spans.
fn show_series(data: &Dataset, record: u64, out: &mut Out) -> Result<(), Failure> {
    let source = data.source();
    let channels = source.schema().channels.unwrap_or(1).max(1);
    let length = data.length(record)?;
    let len = length.min(MOST_DRAWN / channels as u64).max(length.min(1));
    let numbers = numbers::floats(source.as_ref(), Span { record, start: 0, len })?;
    let columns = text::width().min(PLOT_COLUMNS).saturating_sub(2);
    for c in 0..channels.min(MOST_CHANNELS) {
        let one = series::channel(&numbers, channels, c);
        let facts = Facts::of(&one);
        for line in braille(&one, columns, PLOT_ROWS) {
            out.line(format_args!("  {line}"))?;
        }
        let mut said = Vec::new();
        if channels > 1 {
            said.push(format!("channel {c}"));
        }
        match facts.range {
            Some((low, high)) => {
                said.push(format!("min {}", text::number(low)));
                said.push(format!("max {}", text::number(high)));
            }
            None => said.push("no finite number".to_string()),
        }
        said.push(format!("length {}", text::count(length)));
        said.push(format!("NaN {}", text::count(facts.nan)));
        if facts.infinite > 0 {
            said.push(format!("infinite {}", text::count(facts.infinite)));
        }
        if len < length {
            said.push(format!("of the first {}", text::count(len)));
        }
        out.line(format_args!("  {}", said.join("  ")))?;
    }
    if channels > MOST_CHANNELS {
        let more = text::counted((channels - MOST_CHANNELS) as u64, "more channel");
        out.line(format_args!("  … {more}"))?;
    }
    Ok(())
}

fn show_lines(lines: &[String], out: &mut Out) -> Result<(), Failure> {
    let width = text::width();
    for line in lines.iter().take(MOST_LINES) {
        out.line(text::truncated(line, width))?;
    }
    if lines.len() > MOST_LINES {
        out.line(format_args!("  … {} more lines", text::count((lines.len() - MOST_LINES) as u64)))?;
    }
    Ok(())
}

// One line per key; the parser bounds the depth.
fn write_lines(value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let width = map.keys().map(|k| k.chars().count()).max().unwrap_or(0).min(24);
            for (key, value) in map {
                lines.push(format!("  {:width$}  {}", text::escaped(key), one_line(value)));
            }
        }
        other => lines.push(format!("  {}", one_line(other))),
    }
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() >= LEAST_PLOTTED => {
            let numbers: Option<Vec<f64>> = items.iter().map(Value::as_f64).collect();
            match numbers {
                Some(numbers) => plot(&numbers),
                None => text::escaped(&value.to_string()),
            }
        }
        // The terminal cuts it anyway: a megabyte need not be escaped.
        Value::String(text) => {
            format!("\"{}\"", text::escaped(&text.chars().take(2_000).collect::<String>()))
        }
        other => text::escaped(&other.to_string()),
    }
}

fn join(ids: &[Value]) -> String {
    let shown: Vec<String> = ids.iter().take(64).map(Value::to_string).collect();
    format!("{}{}", shown.join(" "), if ids.len() > 64 { " …" } else { "" })
}

// A series as a row of bars, each the mean of its part.
fn plot(numbers: &[f64]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Some((low, high)) = Facts::of(numbers).range else {
        return format!("{} numbers, none of them finite", text::count(numbers.len() as u64));
    };
    let bars: String = series::parts(numbers, 48)
        .map(|part| {
            let known: Vec<f64> = part.iter().copied().filter(|x| x.is_finite()).collect();
            if known.is_empty() {
                return ' ';
            }
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let share = if high > low { series::share(mean, (low, high)) } else { 0.0 };
            LEVELS[((share * 8.0) as usize).min(7)]
        })
        .collect();
    format!(
        "{bars}  {} numbers, {} to {}",
        text::count(numbers.len() as u64),
        text::number(low),
        text::number(high)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_indices_count_from_the_end() {
        assert_eq!(from_the_end(-1, 5), Some(4));
        assert_eq!(from_the_end(-6, 5), None);
        assert_eq!(from_the_end(4, 5), Some(4));
        assert_eq!(from_the_end(5, 5), None);
    }

    #[test]
    fn a_series_is_plotted_and_control_characters_are_escaped() {
        let series: Vec<f64> = (0..16).map(f64::from).collect();
        assert_eq!(one_line(&json!(series)), "▁▁▂▂▃▃▄▄▅▅▆▆▇▇██  16 numbers, 0 to 15");
        assert_eq!(one_line(&json!("a\u{1b}b")), "\"a\\u{1b}b\"");
    }
}
