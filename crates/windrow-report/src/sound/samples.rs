//! Some sound files to see and to hear.

use serde_json::{Value, json};
use windrow::Result;
use windrow::prepare::Watch;
use windrow::preview::text;

use super::clip::{MOST_SECONDS, clip, parts};
use super::files::Files;
use super::spectrogram::{self, FLOOR_DB};
use super::survey::{Found, Survey};
use crate::durations::said;
use crate::page::{Page, Pixels};
use crate::picture::data_uri;
use crate::sample::Sample;
use crate::svg::Svg;

const SAMPLES: u64 = 4;
/// Pixels of the page.
const HEIGHT: usize = 192;

pub(crate) fn show(files: &Files, survey: &Survey, page: &mut Page, watch: &dyn Watch) -> Result<Vec<Value>> {
    // Those whose samples are known to be good.
    let heard: Vec<(usize, &Found)> = survey.readable().filter(|(_, found)| found.levels.is_some()).collect();
    let chosen = Sample::of(heard.len() as u64, SAMPLES).records;
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    page.section("Some of them");
    page.note(&format!(
        "The beginning of each, at most {} and 1.5 MB: as a wave, as a spectrogram (mel scale; from {FLOOR_DB} dB, black, to a \
         sine at full scale, bright), and to play, with 16 bits.",
        said(MOST_SECONDS)
    ));
    let mut shown = Vec::new();
    for i in chosen {
        let (file, found) = heard[i as usize];
        let name = files.list[file].name();
        let own_rate_hz = found.header.sound.sample_rate_hz;
        page.part(&text::truncated(name, 200));
        let clip = clip(files.open(file)?, own_rate_hz, watch)?;
        let seconds = clip.seconds();
        let mut caption = format!("{} of {}", said(seconds), found.seconds().map_or("?".to_string(), said));
        if clip.sample_rate_hz != own_rate_hz {
            caption += &format!(
                "; at {} Hz instead of {} Hz",
                text::count(clip.sample_rate_hz.into()),
                text::count(own_rate_hz.into())
            );
        }
        page.text(&caption);
        let ends = ["0.00 s", &said(seconds)];
        for (c, channel) in clip.channels.iter().enumerate() {
            let parts = parts(channel);
            let full = parts.iter().fold(0f32, |full, (low, high)| full.max(-low).max(*high));
            let channel = if clip.n_channels() > 1 { format!("channel {c}: ") } else { String::new() };
            let caption = format!("{channel}the wave; its height is ±{full:.3} of full scale");
            page.figure(&caption, &Svg::wave(&parts, full), ends);
        }
        let top = text::count(u64::from(clip.sample_rate_hz) / 2);
        let caption = format!("the spectrogram, 0 to {top} Hz");
        let picture = spectrogram::picture(&clip);
        let marks = spectrogram::marks(clip.sample_rate_hz);
        page.picture(&caption, (&picture, Pixels::Joined), HEIGHT, &marks, ends)?;
        page.player(&format!("{name}, the first {}", said(seconds)), &data_uri("audio/wav", &clip.to_wav()?));
        shown.push(json!({
            "file": name, "seconds": found.seconds(), "seconds_played": seconds, "rate": clip.sample_rate_hz,
        }));
    }
    Ok(shown)
}
