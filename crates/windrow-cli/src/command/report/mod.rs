//! `windrow report`: a page about some data, to look at and to hand on.

mod codes;
mod cut;
mod durations;
mod histogram;
mod json;
mod lengths;
mod page;
mod picture;
mod replaced;
mod sample;
mod series;
mod sound;
mod svg;
mod tokens;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use windrow::output::write_whole;
use windrow::{DataSet, Error, Kind, Labels, Plan, Samples, ScalerName, ViewRecipe, open_with};

use self::codes::CodesArgs;
use self::page::Page;
use self::sample::{MOST_RECORDS, Sample};
use self::sound::Files;
use crate::args::{Cutting, Opening, no_stdin, no_stdout};
use crate::failure::{BAD_DATA, DONE, Failure};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::{look, text};

/// Write a page about some data: what it is, lengths, values, what is missing, what a view sees of it
///
/// One HTML file that needs no network and no script. Of much data a sample is read, and the page says so. Of audio codes it
/// shows durations, prompts, the use of the codebooks and where crops fall; of sound files durations, loudness, what cannot
/// be read, and some of them to see and to hear.
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
    /// Look at the sound files in the folder, whatever else lies there
    #[arg(long)]
    sound: bool,
    /// Decode with this tokenizer; by default the built-in one that the side file names
    #[arg(long, value_name = "T")]
    tokenizer: Option<String>,
    #[command(flatten)]
    cutting: Cutting,
    #[command(flatten)]
    codes: CodesArgs,
    #[command(flatten)]
    opening: Opening,
}

/// The view that shows how tokens are packed where none is named.
const EXAMPLE_PACK: u64 = 1024;
const FILES_LISTED: usize = 20;

pub(crate) fn run(args: &Report, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.path))?;
    no_stdout(&args.out)?;
    replaced::check(&args.out, args.overwrite)?;
    let data = match sound_or_data(args)? {
        Found::Data(data) => data,
        Found::Sound(files) => return sound(args, &files, out),
    };
    refuse_own_data(args, data.source().files().into_iter().map(|f| PathBuf::from(f.file)))?;
    let stop = Interrupt::listen();
    let mut page = Page::new(&format!("windrow: {}", args.path.display()));
    let sample = Sample::of(data.len(), MOST_RECORDS);
    let mut object = json!({ "out": args.out, "records": data.len(), "records_read": sample.records.len() });
    let mut said = sample.said();
    facts(&data, &mut page)?;
    if let Some(codes) = codes(args, &data, &mut page, &stop)? {
        said = format!("{} of codes", text::counted(data.len(), "track"));
        object["records_read"] = codes["codebooks"]["tracks_read"].clone();
        object["codes"] = codes;
    } else if data.is_json() {
        // A view of JSON is refused as everywhere.
        args.cutting.view()?.map_or(Ok(()), |view| data.view(view, None).map(|_| ()))?;
        lengths::show(&data, "lines", "bytes", &mut page, &stop)?;
        json::keys(&data, &mut page, &stop, &sample)?;
    } else {
        numbers(args, &data, &sample, &mut page, &stop)?;
    }
    finish(args, page, &said, object, out)?;
    Ok(DONE)
}

// The page to disk, and what is said of it.
fn finish(args: &Report, page: Page, from: &str, mut object: Value, out: &mut Out) -> Result<(), Failure> {
    let html = page.finish();
    write_whole(&args.out, html.as_bytes())?;
    let size = html.len() as u64;
    out.line(format_args!("{}: {}, from {from}", args.out.display(), text::size(size)))?;
    object["bytes"] = size.into();
    Ok(out.object(object)?)
}

/// What lies at the path.
enum Found {
    Data(Box<DataSet>),
    Sound(Files),
}

// Sound is no format of records: it is known by the names of files, or by the content of one.
fn sound_or_data(args: &Report) -> Result<Found, Failure> {
    let options = args.opening.options();
    let is_named = options.format.is_none() && args.path.is_file() && sound::has_name(&args.path);
    if args.sound || is_named {
        let files = Files::find(&args.path)?;
        return match files.is_empty() {
            true => Err(Error::not_found("no sound file lies in the folder").at(&args.path).into()),
            false => Ok(Found::Sound(files)),
        };
    }
    let refused = match open_with(&args.path, &options) {
        Ok(data) => return Ok(Found::Data(Box::new(data))),
        Err(e) => e,
    };
    // Beside sounds lie notes that some format takes for its own: they are not what the folder is about.
    let is_unknown = refused.kind() == Kind::Unrecognised;
    let may_be_sound = match refused.kind() {
        Kind::Unrecognised => args.path.is_dir() || sound::has_content(&args.path),
        Kind::Corrupt | Kind::Unsupported | Kind::Mismatch => args.path.is_dir(),
        _ => false,
    };
    if may_be_sound && options.format.is_none() && options.part.is_none() {
        let files = Files::find(&args.path)?;
        if !files.is_empty() && (is_unknown || files.are_most()) {
            if !is_unknown {
                log::warn!("{}: read as sound files; as records: {refused}", args.path.display());
            }
            return Ok(Found::Sound(files));
        }
    }
    Err(refused.into())
}

fn sound(args: &Report, files: &Files, out: &mut Out) -> Result<i32, Failure> {
    if let Some(option) = args.codes.given() {
        return Err(Failure::usage(format!(
            "{option} is an option of audio codes, and these are sound files"
        )));
    }
    if args.cutting.view()?.is_some() || args.tokenizer.is_some() {
        return Err(Failure::usage("sound files are not cut into samples, nor decoded by a tokenizer"));
    }
    refuse_own_data(args, files.paths().into_iter())?;
    let stop = Interrupt::listen();
    let mut page = Page::new(&format!("windrow: {}", args.path.display()));
    let progress = Progress::new("reading", out.quiet(), &stop).counting("file");
    let shown = sound::show(files, &mut page, &stop, &progress)?;
    drop(progress);
    let mut said = text::counted(shown.looked_at, "sound file");
    if shown.unread > 0 {
        said += &format!("; {} cannot be read", text::count(shown.unread));
    }
    finish(args, page, &said, json!({ "out": args.out, "sound": shown.json }), out)?;
    // As a broken record ends other reports with this code; here the page is there, and names the files.
    Ok(if shown.unread > 0 { BAD_DATA } else { DONE })
}

// The codes' part of the page, where the records are codes.
fn codes(args: &Report, data: &DataSet, page: &mut Page, stop: &Interrupt) -> Result<Option<Value>, Failure> {
    let view = args.cutting.view()?;
    let is_of_series = matches!(view, Some(ViewRecipe::Windows { .. } | ViewRecipe::Segments { .. }));
    if codes::are_codes(data.source().as_ref()) && !is_of_series && args.tokenizer.is_none() {
        return Ok(Some(codes::show(data, &args.codes, view, page, stop)?));
    }
    match args.codes.given() {
        None => Ok(None),
        Some(option) => {
            Err(Failure::usage(format!("{option} is an option of audio codes, and these are other records")))
        }
    }
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
        None => Some(with_plan(data.view(
            ViewRecipe::Pack {
                length: EXAMPLE_PACK,
                eos: None,
                shifted: false,
                fields: Vec::new(),
                labels: Labels::default(),
            },
            None,
        )?)?),
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
fn refuse_own_data(args: &Report, mut files: impl Iterator<Item = PathBuf>) -> Result<(), Failure> {
    let Ok(out) = args.out.canonicalize() else { return Ok(()) };
    let is_out = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == out);
    match is_out(args.path.clone()) || files.any(is_out) {
        true => Err(Error::config("the page would replace its own data").at(&args.out).into()),
        false => Ok(()),
    }
}
