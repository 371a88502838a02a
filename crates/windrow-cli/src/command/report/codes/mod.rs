//! Audio codes: durations of tracks, prompts, what each codebook uses, some grids, and where crops fall.

mod crops;
mod grids;
mod prompts;
mod usage;

use clap::Args;
use serde_json::{Value, json};
use windrow::source::Source;
use windrow::{DType, DataSet, Result, ViewRecipe};

use super::durations::{Durations, said};
use super::lengths::MOST_LENGTHS;
use super::page::Page;
use super::sample::Sample;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::text;

/// What is known of codes only from outside, and which crops are drawn.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Of audio codes")]
pub(super) struct CodesArgs {
    /// Samples of sound that a frame stands for [default: 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    hop: Option<u32>,
    /// Samples of sound per second, in Hz [default: 44100]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Codes of a codebook; others are listed [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_CODEBOOK))]
    codebook_size: Option<u64>,
    /// Draw random crops of N frames [default: 600]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    length: Option<u64>,
    /// Draw the crops of so many epochs [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_EPOCHS))]
    epochs: Option<u64>,
    /// Keys the crops [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// More lanes than this are no drawing.
const MOST_EPOCHS: u64 = 64;
const CODEBOOK: u64 = 1024;
/// Codes of larger codebooks are counted nowhere.
const MOST_CODEBOOK: u64 = 1 << 16;

impl CodesArgs {
    /// An option of these that was typed.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--hop", self.hop.is_some()),
            ("--rate", self.rate.is_some()),
            ("--codebook-size", self.codebook_size.is_some()),
            ("--length", self.length.is_some()),
            ("--epochs", self.epochs.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    fn seconds(&self, frames: u64) -> f64 {
        frames as f64 * f64::from(self.hop.unwrap_or(512)) / f64::from(self.rate.unwrap_or(44_100))
    }
}

/// Whether records are shown as audio codes: of the layout made for them, or int16 frames of several channels in shards.
pub(super) fn are_codes(source: &dyn Source) -> bool {
    let schema = source.schema();
    let are_frames =
        schema.channels.is_some_and(|channels| channels > 1) && schema.element.dtype == DType::I16;
    let is_small = schema.vocab_size.is_none_or(|size| size <= MOST_CODEBOOK);
    is_small && (source.format() == "codes" || (source.format() == "shards" && are_frames))
}

/// All of the page that is about codes, and its numbers.
pub(super) fn show(
    data: &DataSet,
    args: &CodesArgs,
    view: Option<ViewRecipe>,
    page: &mut Page,
    stop: &Interrupt,
) -> std::result::Result<Value, Failure> {
    if let (Some(_), Some(_)) = (&view, args.length) {
        return Err(Failure::usage("--length is that of crops, and another view was named"));
    }
    // What cannot be cut is refused before anything is read.
    let samples = crops::cut(data, view, args.length)?;
    let durations = durations(data, args, page, stop)?;
    let prompts = prompts::show(data, page, stop)?;
    let codebook = args.codebook_size.or(data.source().schema().vocab_size).unwrap_or(CODEBOOK) as usize;
    let usage = usage::show(data, codebook, page, stop)?;
    grids::show(data, codebook, page, stop)?;
    let (epochs, seed) = (args.epochs.unwrap_or(4), args.seed.unwrap_or(0));
    let crops = crops::show(&samples, epochs, seed, &|frames| args.seconds(frames), page, stop)?;
    Ok(json!({ "durations": durations, "prompts": prompts, "codebooks": usage, "crops": crops }))
}

fn durations(data: &DataSet, args: &CodesArgs, page: &mut Page, stop: &Interrupt) -> Result<Value> {
    page.section("Durations of tracks");
    let sample = Sample::of(data.len(), MOST_LENGTHS);
    let mut seconds = Vec::with_capacity(sample.records.len());
    let mut frames = 0u64;
    for record in &sample.records {
        stop.check()?;
        let length = data.length(*record)?;
        frames = frames.saturating_add(length);
        seconds.push((args.seconds(length), *record));
    }
    let durations = Durations::new(seconds);
    let of = if sample.is_all() { "" } else { " in the sample" };
    let total = args.seconds(frames);
    page.text(&format!("{} in all{of}, {}.", said(total), text::counted(frames, "frame")));
    durations.show("tracks", page, |record| name(data, record));
    let (hop, rate) = (args.hop.unwrap_or(512), args.rate.unwrap_or(44_100));
    let from = match (args.hop, args.rate) {
        (None, None) => "as in the Descript Audio Codec; --hop and --rate say otherwise",
        _ => "as --hop and --rate say",
    };
    page.note(&format!(
        "From {}. A frame is taken for {} samples of sound at {} Hz, {from}.",
        sample.said_of("track"),
        text::count(hop.into()),
        text::count(rate.into())
    ));
    Ok(json!({
        "hop": hop, "rate": rate, "tracks": sample.records.len(), "frames": frames, "seconds": total,
        "of": durations.to_json(|record| name(data, record)),
    }))
}

/// What a track is called: its name beside the codes, else its number.
fn name(data: &DataSet, record: u64) -> String {
    let extras = data.extras(record).unwrap_or_default();
    match extras.get("name") {
        Some(Value::String(name)) => format!("{} (track {})", text::cut(name, 60), text::count(record)),
        _ => format!("track {}", text::count(record)),
    }
}
