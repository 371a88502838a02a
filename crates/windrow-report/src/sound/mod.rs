//! Sound files: what they are, which cannot be read, how long and how loud they are, and some of them to see and to hear.

mod clip;
mod files;
mod levels;
mod samples;
mod spectrogram;
mod survey;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windrow::prepare::Watch;
use windrow::preview::text;
use windrow::{Error, Paths, Result};

pub use self::files::Files;
pub(crate) use self::files::{has_content, has_name};
use self::levels::{Levels, db};
use self::survey::{BUDGET, Found, Survey};
use crate::Report;
use crate::durations::{Durations, said};
use crate::page::Page;
use crate::svg::Svg;

const KINDS_LISTED: usize = 40;
const FILES_LISTED: usize = 40;
const UNREAD_LISTED: usize = 50;
/// Bars of loudness: 2 dB each, the first for all that is more quiet.
const LOUDNESS_BARS: usize = 31;
/// The largest sample of 16 bits: what clips there comes no higher.
const FULL_SCALE: f64 = 32_767.0 / 32_768.0;

/// A page about sound files: durations, loudness, what cannot be read, and some of them to see and to hear. `watch` is
/// given how many bytes of the files were decoded.
///
/// # Errors
/// `Io`; `Interrupted` once `watch` wants to stop. A file that cannot be read is a finding, not an error.
pub fn of_sound(files: &Files, paths: &Paths, watch: &dyn Watch) -> Result<Report> {
    let mut page = Page::new(&format!("windrow: {paths}"));
    let survey = Survey::of(files, BUDGET, watch)?;
    facts(files, &survey, &mut page);
    unread(files, &survey, &mut page);
    let durations = durations(files, &survey, &mut page);
    let loudness = loudness(files, &survey, &mut page);
    let samples = samples::show(files, &survey, &mut page, watch)?;
    let listed: Vec<Value> = survey.unread().map(|(file, e)| unread_json(files, file, e)).collect();
    let json = json!({
        "files": files.list.len(), "files_read": survey.found.len(), "others": files.others, "bytes": files.bytes(),
        "kinds": kinds(&survey).into_iter().map(|(kind, (n, seconds))| json!({
            "container": kind.0, "codec": kind.1, "rate": kind.2, "channels": kind.3, "files": n, "seconds": seconds,
        })).collect::<Vec<_>>(),
        "unreadable": listed, "durations": durations, "loudness": loudness, "samples": samples,
    });
    let unread = survey.unread().count() as u64;
    let mut from = text::counted(survey.found.len() as u64, "sound file");
    if unread > 0 {
        from += &format!("; {} cannot be read", text::count(unread));
    }
    Ok(Report { html: page.finish(), from, json: json!({ "sound": json }), unread })
}

type Sort = (&'static str, &'static str, u32, usize);

// Files and seconds by container, codec, rate and channels.
fn kinds(survey: &Survey) -> BTreeMap<Sort, (u64, f64)> {
    let mut kinds = BTreeMap::new();
    for (_, found) in survey.readable() {
        let sound = &found.header.sound;
        let kind = (sound.container, sound.codec, sound.sample_rate_hz, sound.n_channels);
        let (n, seconds) = kinds.entry(kind).or_insert((0, 0.0));
        *n += 1;
        *seconds += found.seconds().unwrap_or(0.0);
    }
    kinds
}

fn facts(files: &Files, survey: &Survey, page: &mut Page) {
    page.section("What it is");
    let mut rows = vec![
        vec!["sound files".to_string(), text::count(files.list.len() as u64)],
        vec!["bytes".to_string(), text::size(files.bytes())],
    ];
    if files.others > 0 {
        rows.push(vec!["other files, not looked at".to_string(), text::count(files.others)]);
    }
    page.table(&[], &rows);
    let kinds = kinds(survey);
    let n_kinds = kinds.len();
    let rows: Vec<Vec<String>> = kinds
        .into_iter()
        .take(KINDS_LISTED)
        .map(|((container, codec, rate, channels), (n, seconds))| {
            let rate = format!("{} Hz", text::count(rate.into()));
            vec![
                container.to_string(),
                codec.to_string(),
                rate,
                channels.to_string(),
                text::count(n),
                said(seconds),
            ]
        })
        .collect();
    if !rows.is_empty() {
        page.table(&["kind", "codec", "rate", "channels", "files", "together"], &rows);
    }
    if n_kinds > KINDS_LISTED {
        page.note(&format!("The first {KINDS_LISTED} of {} kinds.", text::count(n_kinds as u64)));
    }
    page.note(&format!("From {}.", survey.said));
}

fn unread(files: &Files, survey: &Survey, page: &mut Page) {
    page.section("What cannot be read");
    page.text(&survey.checked());
    let n = survey.unread().count();
    if n == 0 {
        return;
    }
    let rows: Vec<Vec<String>> = survey
        .unread()
        .take(UNREAD_LISTED)
        .map(|(file, e)| {
            let byte = e.place().byte.map_or_else(String::new, |byte| format!(" (byte {byte})"));
            let hint = e.hint_text().unwrap_or_default().to_string();
            vec![files.list[file].name().to_string(), format!("{}{byte}", text::message(e)), hint]
        })
        .collect();
    page.table(&["file", "error", "hint"], &rows);
    if n > UNREAD_LISTED {
        page.note(&format!("The first {UNREAD_LISTED}; --json names all."));
    }
}

fn unread_json(files: &Files, file: usize, e: &Error) -> Value {
    json!({
        "file": files.list[file].name(), "kind": e.kind().name(), "message": text::message(e),
        "byte": e.place().byte, "hint": e.hint_text(),
    })
}

fn durations(files: &Files, survey: &Survey, page: &mut Page) -> Value {
    page.section("Durations");
    let known: Vec<(f64, u64)> = survey
        .readable()
        .filter_map(|(file, found)| found.seconds().map(|seconds| (seconds, file as u64)))
        .collect();
    let unknown = survey.readable().count() - known.len();
    let named = |file: u64| text::truncated(files.list[file as usize].name(), 60);
    let n = known.len() as u64;
    let durations = Durations::new(known);
    page.text(&format!("{} in all, in {}.", said(durations.total()), text::counted(n, "file")));
    durations.show("files", page, named);
    if unknown > 0 {
        page.note(&format!(
            "{} left out: the header does not say how long the sound is, and it was not decoded to its end.",
            text::counted(unknown as u64, "file")
        ));
    }
    json!({ "files": n, "unknown": unknown, "seconds": durations.total(), "of": durations.to_json(named) })
}

fn loudness(files: &Files, survey: &Survey, page: &mut Page) -> Value {
    page.section("Loudness");
    let heard: Vec<(usize, &Found, Levels)> =
        survey.readable().filter_map(|(file, found)| Some((file, found, found.levels?))).collect();
    if heard.is_empty() {
        page.text("No file was decoded.");
        return Value::Null;
    }
    let n =
        |holds: &dyn Fn(&Levels) -> bool| heard.iter().filter(|(.., levels)| holds(levels)).count() as u64;
    let (clipping, silent) = (n(&|levels| levels.peak >= FULL_SCALE), n(&|levels| levels.peak == 0.0));
    let is_whole = n(&|levels| levels.is_whole) == heard.len() as u64;
    page.text(&format!(
        "{} decoded: {} at or beyond full scale, {} silent.",
        text::counted(heard.len() as u64, "file"),
        text::count(clipping),
        text::count(silent)
    ));
    for (what, of) in
        [("highest sample", Levels::peak_db as fn(&Levels) -> Option<f64>), ("RMS", Levels::rms_db)]
    {
        let mut bars = vec![0u64; LOUDNESS_BARS];
        for (.., levels) in &heard {
            let up = of(levels).map_or(0.0, |db| (db / 2.0).floor() + LOUDNESS_BARS as f64);
            bars[(up.max(0.0) as usize).min(LOUDNESS_BARS - 1)] += 1;
        }
        let most = text::count(bars.iter().max().copied().unwrap_or(0));
        let caption = format!("files by {what}, 2 dB to a bar; the highest bar counts {most}");
        page.figure(&caption, &Svg::bars(&bars), ["-60 dBFS and less", "0 dBFS"]);
    }
    page.note("0 dBFS is full scale, so that a sine at full scale has an RMS of -3.01 dBFS.");
    let rows: Vec<Vec<String>> = heard
        .iter()
        .take(FILES_LISTED)
        .map(|(file, found, levels)| {
            let sound = &found.header.sound;
            let part = if levels.is_whole { "" } else { " (of a part)" };
            vec![
                files.list[*file].name().to_string(),
                sound.container.to_string(),
                text::count(sound.sample_rate_hz.into()),
                sound.n_channels.to_string(),
                found.seconds().map_or_else(String::new, said),
                decibels(levels.peak_db()),
                decibels(levels.rms_db()) + part,
            ]
        })
        .collect();
    page.table(&["file", "kind", "Hz", "channels", "duration", "peak, dBFS", "RMS, dBFS"], &rows);
    if heard.len() > FILES_LISTED {
        page.note(&format!(
            "The first {FILES_LISTED} of {}; --json names all.",
            text::count(heard.len() as u64)
        ));
    }
    if !is_whole || heard.len() < survey.readable().count() {
        page.note(&format!(
            "Decoding is what takes time: at most {} of each, {} in all, of files taken evenly.",
            said(BUDGET.seconds_of_one),
            said(BUDGET.seconds)
        ));
    }
    let each = heard.iter().map(|(file, found, levels)| {
        json!({
            "file": files.list[*file].name(), "seconds": found.seconds(), "decoded_seconds": levels.seconds,
            "peak_dbfs": levels.peak_db(), "rms_dbfs": levels.rms_db(),
        })
    });
    json!({
        "files": heard.len(), "at_full_scale": clipping, "silent": silent, "each": each.collect::<Vec<_>>(),
    })
}

fn decibels(db: Option<f64>) -> String {
    db.map_or_else(|| "silent".to_string(), |db| format!("{db:.2}"))
}

impl Levels {
    fn peak_db(&self) -> Option<f64> {
        db(self.peak)
    }

    fn rms_db(&self) -> Option<f64> {
        db(self.rms())
    }
}
