//! `windrow report`: a page about some data, to look at and to hand on.

mod cut;
mod histogram;
mod json;
mod lengths;
mod page;
mod sample;
mod series;
mod svg;
mod tokens;
mod write;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::{DataSet, Error, Plan, Samples, ScalerName, ViewRecipe, open_with};

use self::page::Page;
use self::sample::{MOST_RECORDS, Sample};
use crate::args::{Cutting, Opening, no_stdin};
use crate::failure::{DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::{look, text};

/// Write a page about some data: what it is, lengths, values, what is missing, what a view sees of it
///
/// One HTML file that needs no network and no script. Of much data a sample is read, and the page says so.
#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A file or folder
    path: PathBuf,
    /// The page
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Replace an existing page
    #[arg(long)]
    overwrite: bool,
    /// Decode with this tokenizer; by default the built-in one that the side file names
    #[arg(long, value_name = "T")]
    tokenizer: Option<String>,
    #[command(flatten)]
    cutting: Cutting,
    #[command(flatten)]
    opening: Opening,
}

/// The view that shows how tokens are packed where none is named.
const EXAMPLE_PACK: u64 = 1024;
const FILES_LISTED: usize = 20;

pub(crate) fn run(args: &Report, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(&[args.path.clone(), args.out.clone()])?;
    write::check(&args.out, args.overwrite)?;
    let data = open_with(&args.path, &args.opening.options())?;
    refuse_own_data(args, &data)?;
    let stop = Interrupt::listen();
    let mut page = Page::new(&format!("windrow: {}", args.path.display()));
    let sample = Sample::of(data.len(), MOST_RECORDS);
    facts(&data, &mut page)?;
    if data.is_json() {
        // A view of JSON is refused as everywhere.
        args.cutting.view()?.map_or(Ok(()), |view| data.view(view, None).map(|_| ()))?;
        lengths::show(&data, "lines", "bytes", &mut page, &stop)?;
        json::keys(&data, &mut page, &stop, &sample)?;
    } else {
        numbers(args, &data, &sample, &mut page, &stop)?;
    }
    let html = page.finish();
    write::write(&args.out, &html)?;
    let size = html.len() as u64;
    let (looked_at, name) = (sample.said(), args.out.display());
    out.line(format_args!("{name}: {}, from {looked_at}", text::size(size)))?;
    out.object(json!({
        "out": args.out, "bytes": size, "records": data.len(), "records_read": sample.records.len(),
    }))?;
    Ok(DONE)
}

fn numbers(
    args: &Report,
    data: &DataSet,
    sample: &Sample,
    page: &mut Page,
    stop: &Interrupt,
) -> Result<(), Failure> {
    let tokenizer = look::tokenizer(args.tokenizer.as_deref(), data.side_file())?;
    let is_tokens = tokenizer.is_some() || look::is_tokens(data.source().as_ref());
    // Statistics for a scaler may take a while.
    let cut = |view| data.cut(view, None, None, &|| stop.asked());
    let asked = args.cutting.view()?.map(cut).transpose()?;
    let asked = asked.map(with_plan).transpose()?;
    let view = asked.as_ref().map(|(samples, plan)| (samples, plan.as_ref()));
    if !is_tokens {
        lengths::show(data, "series", "values", page, stop)?;
        let scaled =
            view.map(|(samples, _)| samples).filter(|s| *s.recipe().view.scaler() != ScalerName::None);
        series::values(data, scaled, page, stop, sample)?;
        let drawn = view.and_then(|(samples, plan)| Some((samples, plan?)));
        series::gallery(data, drawn, page, stop)?;
        return Ok(view.map_or(Ok(()), |(samples, _)| cut::coverage(samples, page))?);
    }
    lengths::show(data, "documents", "tokens", page, stop)?;
    tokens::frequent(data, tokenizer.as_ref(), page, stop, sample)?;
    let example = match view {
        Some(_) => None,
        None => Some(with_plan(
            data.view(ViewRecipe::Pack { length: EXAMPLE_PACK, eos: None, shifted: false }, None)?,
        )?),
    };
    if let Some((samples, _)) = view {
        cut::coverage(samples, page)?;
    }
    let shown = view.or(example.as_ref().map(|(samples, plan)| (samples, plan.as_ref())));
    if let Some((samples, Some(plan))) = shown {
        cut::packs(samples, plan, tokenizer.as_ref(), page)?;
        if example.is_some() {
            page.note(&format!("An example, as --pack {EXAMPLE_PACK} cuts them."));
        }
    }
    Ok(())
}

// In the order of the data, so that a position is a sample; none where there is no sample to plan.
fn with_plan(samples: Samples) -> windrow::Result<(Samples, Option<Plan>)> {
    let plan = match samples.is_empty() {
        true => None,
        false => Some(samples.loader().batch_size(1).shuffle(false).threads(Some(0)).plan()?),
    };
    Ok((samples, plan))
}

fn facts(data: &DataSet, page: &mut Page) -> Result<(), Failure> {
    let info = data.info()?;
    page.section("What it is");
    let mut rows = vec![("format", info.format.clone()), ("records", text::count(info.records))];
    rows.extend(info.values.filter(|_| !data.is_json()).map(|values| ("values", text::count(values))));
    rows.extend(info.dtype.clone().map(|dtype| ("dtype", dtype)));
    rows.extend(info.channels.map(|channels| ("channels", channels.to_string())));
    rows.extend(info.vocab_size.map(|size| ("vocabulary", text::count(size))));
    rows.extend(info.tokenizer.clone().map(|name| ("tokenizer", name)));
    if !info.extras.is_empty() {
        rows.push(("extras", text::cut(&info.extras.join(", "), 500)));
    }
    rows.push(("bytes", text::size(info.bytes)));
    rows.push(("files", text::count(info.files.len() as u64)));
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect();
    page.table(&[], &rows);
    let files: Vec<Vec<String>> =
        info.files.iter().take(FILES_LISTED).map(|f| vec![f.file.clone(), text::size(f.size)]).collect();
    page.table(&["file", "size"], &files);
    if info.files.len() > FILES_LISTED {
        page.note(&format!("… and {} more.", text::count((info.files.len() - FILES_LISTED) as u64)));
    }
    Ok(())
}

// `--overwrite` is for a page, never for the data it is about.
fn refuse_own_data(args: &Report, data: &DataSet) -> Result<(), Failure> {
    let Ok(out) = args.out.canonicalize() else { return Ok(()) };
    let is_out = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == out);
    let files = data.source().files();
    match is_out(args.path.clone()) || files.into_iter().any(|f| is_out(PathBuf::from(f.file))) {
        true => Err(Error::config("the page would replace its own data").at(&args.out).into()),
        false => Ok(()),
    }
}
