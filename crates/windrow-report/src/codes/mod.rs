//! Audio codes: durations of tracks, prompts, what each codebook uses, some grids, and where crops fall.

mod crops;
mod grids;
mod prompts;
mod usage;

use serde_json::{Value, json};
use windrow::dev::source::Source;
use windrow::prepare::Watch;
use windrow::preview::text;
use windrow::{DType, Dataset, Error, Result, ViewRecipe};

use crate::durations::{Durations, said};
use crate::lengths::MOST_LENGTHS;
use crate::page::Page;
use crate::sample::Sample;
use crate::watch::check;

/// How audio codes are shown: what is known of them only from outside, and which crops are drawn.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    /// Samples of sound per frame, at least 1; by default 512.
    pub hop: Option<u32>,
    /// Samples of sound per second, in Hz, at least 1; by default 44,100.
    pub rate: Option<u32>,
    /// Codes of a codebook, 1 to [`MOST_CODEBOOK`], others are listed; by default the vocabulary of the records, else 1,024.
    pub codebook_size: Option<u64>,
    /// Frames of the crops, where no view is named; by default 600.
    pub length: Option<u64>,
    /// Epochs whose crops are drawn, 1 to [`MOST_EPOCHS`]; by default 4.
    pub epochs: Option<u64>,
    /// Seed of the crops; by default 0.
    pub seed: Option<u64>,
}

/// Epochs whose crops are drawn at most: of more lanes a drawing shows nothing.
pub const MOST_EPOCHS: u64 = 64;
const CODEBOOK: u64 = 1024;
/// Codes of a codebook at most: those of larger ones are not counted.
pub const MOST_CODEBOOK: u64 = 1 << 16;

impl Codes {
    fn check(&self) -> Result<()> {
        let in_range = |given: Option<u64>, most: u64| given.is_none_or(|n| (1..=most).contains(&n));
        let options = [
            ("hop", in_range(self.hop.map(u64::from), u64::MAX)),
            ("rate", in_range(self.rate.map(u64::from), u64::MAX)),
            ("codebook_size", in_range(self.codebook_size, MOST_CODEBOOK)),
            ("length", in_range(self.length, u64::MAX)),
            ("epochs", in_range(self.epochs, MOST_EPOCHS)),
        ];
        match options.into_iter().find(|(_, fits)| !fits) {
            Some((option, _)) => Err(Error::config(format!("{option} is out of range")).field(option)),
            None => Ok(()),
        }
    }

    fn seconds(&self, frames: u64) -> f64 {
        frames as f64 * f64::from(self.hop.unwrap_or(512)) / f64::from(self.rate.unwrap_or(44_100))
    }
}

/// Whether records are shown as audio codes: of the layout made for them, or int16 frames of several channels in shards.
pub(crate) fn are_codes(source: &dyn Source) -> bool {
    let schema = source.schema();
    let are_frames =
        schema.channels.is_some_and(|channels| channels > 1) && schema.element.dtype == DType::I16;
    let is_small = schema.vocab_size.is_none_or(|size| size <= MOST_CODEBOOK);
    is_small && windrow::format_info(source.format()).is_some_and(|info| info.holds_codes(are_frames))
}

/// All of the page that is about codes, and its numbers.
pub(crate) fn show(
    data: &Dataset,
    args: &Codes,
    view: Option<ViewRecipe>,
    page: &mut Page,
    watch: &dyn Watch,
) -> Result<Value> {
    args.check()?;
    // A view that does not fit is refused before anything is read.
    let samples = crops::samples(data, view, args.length)?;
    let durations = durations(data, args, page, watch)?;
    let prompts = prompts::show(data, page, watch)?;
    let codebook = args.codebook_size.or(data.source().schema().vocab_size).unwrap_or(CODEBOOK) as usize;
    let usage = usage::show(data, codebook, page, watch)?;
    grids::show(data, codebook, page, watch)?;
    let (epochs, seed) = (args.epochs.unwrap_or(4), args.seed.unwrap_or(0));
    let crops = crops::show(&samples, epochs, seed, &|frames| args.seconds(frames), page, watch)?;
    Ok(json!({ "durations": durations, "prompts": prompts, "codebooks": usage, "crops": crops }))
}

fn durations(data: &Dataset, args: &Codes, page: &mut Page, watch: &dyn Watch) -> Result<Value> {
    page.section("Durations of tracks");
    let sample = Sample::of(data.len(), MOST_LENGTHS);
    let mut seconds = Vec::with_capacity(sample.records.len());
    let mut frames = 0u64;
    for record in &sample.records {
        check(watch)?;
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

/// What a track is called: its name in the metadata, else its number.
fn name(data: &Dataset, record: u64) -> String {
    let extras = data.extras(record).unwrap_or_default();
    match extras.get("name") {
        Some(windrow::Value::Text(name)) => {
            format!("{} (track {})", text::truncated(name, 60), text::count(record))
        }
        _ => format!("track {}", text::count(record)),
    }
}
