//! How much of its codebook each channel uses, and which tracks hold codes beyond it.

use serde_json::{Value, json};
use windrow::prepare::Watch;
use windrow::preview::{numbers, text};
use windrow::{Dataset, Result, Span};

use super::name;
use crate::page::Page;
use crate::sample::{Sample, part};
use crate::svg::Svg;
use crate::watch::check;

/// Codes that are read at most, about: of more, tracks are taken evenly.
const MOST_CODES: u64 = 1 << 25;
/// Codes that are read at once.
const AT_ONCE: u64 = 1 << 18;
/// Channels whose codes are counted.
const MOST_CHANNELS: usize = 256;
const OUTSIDE_LISTED: usize = 20;

/// The codes of one channel.
#[derive(Clone)]
struct Codebook {
    counts: Vec<u64>,
}

impl Codebook {
    fn n(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn used(&self) -> u64 {
        self.counts.iter().filter(|count| **count > 0).count() as u64
    }

    /// exp of the entropy: of how many equally frequent codes it looks like.
    fn perplexity(&self) -> f64 {
        let n = self.n().max(1) as f64;
        let shares = self.counts.iter().filter(|count| **count > 0).map(|count| *count as f64 / n);
        (-shares.map(|share| share * share.ln()).sum::<f64>()).exp()
    }

    /// The code that comes most often, the lowest of several.
    fn most(&self) -> Option<(usize, u64)> {
        let most = self.counts.iter().copied().max().filter(|most| *most > 0)?;
        Some((self.counts.iter().position(|count| *count == most)?, most))
    }
}

/// A track with codes that no codebook has.
struct Outside {
    record: u64,
    n: u64,
    /// Frame, channel and code of the first.
    first: (u64, usize, i64),
}

struct Usage {
    codebooks: Vec<Codebook>,
    outside: Vec<Outside>,
    tracks_outside: u64,
    /// Tracks that were read in part, and how much of them.
    in_part: u64,
    room: u64,
    sample: Sample,
}

impl Usage {
    fn read(data: &Dataset, size: usize, most: u64, watch: &dyn Watch) -> Result<Usage> {
        let source = data.source().as_ref();
        let channels = source.schema().channels.unwrap_or(1).max(1);
        let (sample, room) = evenly(data, (most / channels as u64).max(1))?;
        let mut codebooks = vec![Codebook { counts: vec![0; size] }; channels.min(MOST_CHANNELS)];
        let at_once = (AT_ONCE / channels as u64).max(1);
        let (mut outside, mut tracks_outside, mut in_part) = (Vec::new(), 0, 0);
        for record in &sample.records {
            let length = source.length(*record)?;
            in_part += u64::from(length > room);
            let all = part(*record, length, room);
            let mut found: Option<Outside> = None;
            for start in (all.start..all.start + all.len).step_by(at_once as usize) {
                check(watch)?;
                let len = at_once.min(all.start + all.len - start);
                let codes = numbers::whole_numbers(source, Span { record: *record, start, len })?;
                for (frame, row) in (start..).zip(codes.chunks_exact(channels)) {
                    for (channel, (code, codebook)) in row.iter().zip(&mut codebooks).enumerate() {
                        match usize::try_from(*code).ok().and_then(|code| codebook.counts.get_mut(code)) {
                            Some(count) => *count += 1,
                            None => {
                                let first = (frame, channel, *code);
                                found.get_or_insert(Outside { record: *record, n: 0, first }).n += 1;
                            }
                        }
                    }
                }
            }
            tracks_outside += u64::from(found.is_some());
            outside.extend(found.filter(|_| outside.len() < OUTSIDE_LISTED));
        }
        Ok(Usage { codebooks, outside, tracks_outside, in_part, room, sample })
    }

    fn said(&self) -> String {
        let mut said = format!("From {}", self.sample.said_of("track"));
        if self.in_part > 0 {
            said += &format!(
                "; of {} longer than {} frames a part of that many from a random place",
                text::counted(self.in_part, "track"),
                text::count(self.room)
            );
        }
        said + "."
    }
}

// All tracks where they hold few frames, else a sample of them with about `most` frames; and the most frames of one track.
fn evenly(data: &Dataset, most: u64) -> Result<(Sample, u64)> {
    let few = Sample::of(data.len(), 10_000);
    let mut frames = 0u64;
    for record in &few.records {
        frames = frames.saturating_add(data.length(*record)?);
    }
    let mean = (frames / (few.records.len() as u64).max(1)).max(1);
    let sample = Sample::of(data.len(), (most / mean).max(1));
    // Some are longer than the mean.
    let room = (most / (sample.records.len() as u64).max(1)).saturating_mul(4).max(1);
    Ok((sample, room))
}

pub(crate) fn show(data: &Dataset, size: usize, page: &mut Page, watch: &dyn Watch) -> Result<Value> {
    let usage = Usage::read(data, size, MOST_CODES, watch)?;
    page.section("Use of the codebooks");
    page.text(&format!(
        "Each channel has a codebook of {} codes. A dead code never occurs. The perplexity is the exponential of the \
         entropy: that number of codes, all equally frequent, would be as hard to guess.",
        text::count(size as u64)
    ));
    let channels = data.source().schema().channels.unwrap_or(1);
    if channels > MOST_CHANNELS {
        page.text(&format!("The first {MOST_CHANNELS} of {} channels.", text::count(channels as u64)));
    }
    let rows: Vec<Vec<String>> = usage.codebooks.iter().enumerate().map(|(c, book)| row(c, book)).collect();
    page.table(&["channel", "codes read", "used", "dead", "perplexity", "most frequent"], &rows);
    let last = text::count((size as u64).saturating_sub(1));
    for (c, book) in usage.codebooks.iter().enumerate() {
        let caption =
            format!("channel {c}: {} of {} codes", text::count(book.used()), text::count(size as u64));
        page.figure(&caption, &Svg::outline(&book.counts), ["0", &last]);
    }
    page.note(&format!(
        "How often each code occurs, from left to right; marks below are dead ones. {}",
        usage.said()
    ));
    outside(data, &usage, size, page);
    let listed = |o: &Outside| {
        json!({
            "record": o.record, "codes": o.n,
            "first": { "frame": o.first.0, "channel": o.first.1, "code": o.first.2 },
        })
    };
    Ok(json!({
        "size": size, "tracks_read": usage.sample.records.len(), "tracks_read_in_part": usage.in_part,
        "channels": usage.codebooks.iter().map(|book| json!({
            "codes": book.n(), "used": book.used(), "dead": size as u64 - book.used(),
            "perplexity": (book.n() > 0).then(|| book.perplexity()),
        })).collect::<Vec<_>>(),
        "tracks_outside": usage.tracks_outside,
        "outside": usage.outside.iter().map(listed).collect::<Vec<_>>(),
    }))
}

fn row(channel: usize, book: &Codebook) -> Vec<String> {
    let n = book.n();
    let most = book.most().map_or_else(String::new, |(code, count)| {
        format!("{}, {:.2} %", text::count(code as u64), count as f64 * 100.0 / n as f64)
    });
    let perplexity = if n > 0 { format!("{:.1}", book.perplexity()) } else { String::new() };
    let dead = book.counts.len() as u64 - book.used();
    vec![channel.to_string(), text::count(n), text::count(book.used()), text::count(dead), perplexity, most]
}

fn outside(data: &Dataset, usage: &Usage, size: usize, page: &mut Page) {
    let last = text::count((size as u64).saturating_sub(1));
    if usage.tracks_outside == 0 {
        page.text(&format!("No code read is outside of 0 to {last}."));
        return;
    }
    page.text(&format!(
        "{} with codes outside of 0 to {last}, which training refuses:",
        text::counted(usage.tracks_outside, "track")
    ));
    let rows: Vec<Vec<String>> = usage
        .outside
        .iter()
        .map(|o| {
            let (frame, channel, code) = o.first;
            let first = format!("{code} in frame {}, channel {channel}", text::count(frame));
            vec![name(data, o.record), text::count(o.n), first]
        })
        .collect();
    page.table(&["track", "codes outside", "the first"], &rows);
    if usage.tracks_outside > usage.outside.len() as u64 {
        page.note(&format!("The first {}.", usage.outside.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_perplexity_of_equally_frequent_codes_is_their_number() {
        let book = |counts: &[u64]| Codebook { counts: counts.to_vec() };
        assert!((book(&[5, 5, 5, 5, 0]).perplexity() - 4.0).abs() < 1e-12);
        assert!((book(&[9, 0, 0]).perplexity() - 1.0).abs() < 1e-12);
        // 3/4 and 1/4: exp(0.5623…).
        assert!((book(&[3, 1]).perplexity() - 1.754_765_350_6).abs() < 1e-9);
        assert_eq!((book(&[3, 7, 7]).most(), book(&[0]).most()), (Some((1, 7)), None));
    }

    #[test]
    fn of_many_frames_some_tracks_are_read_and_of_long_ones_a_part() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..20u64 {
            // Code i in every frame of track i, one of them long.
            let n = if i == 10 { 900 } else { 10 };
            let codes = (i as i16).to_le_bytes().repeat(n);
            let tensor =
                windrow::format::tensor_file("a", windrow::DType::I16, [n as u64, 1], &codes).unwrap();
            std::fs::write(folder.path().join(format!("t{i}.pt")), tensor).unwrap();
        }
        let data = windrow::open(folder.path()).unwrap();
        let all = Usage::read(&data, 1024, 10_000, &()).unwrap();
        assert_eq!((all.codebooks[0].n(), all.codebooks[0].used()), (1090, 20));
        assert_eq!(all.said(), "From all of 20 tracks.");
        // A mean of 54 frames: half of the tracks.
        let some = Usage::read(&data, 1024, 560, &()).unwrap();
        assert_eq!((some.sample.records.len(), some.codebooks[0].used()), (10, 10));
        let of_each = |i: usize| some.codebooks[0].counts[i];
        assert!((0..20).all(|i| of_each(i) <= 4 * 56), "{:?}", &some.codebooks[0].counts[..20]);
        assert!(
            some.said().starts_with("From a sample of 10 of 20 tracks (the same at every run)"),
            "{}",
            some.said()
        );
        assert_eq!(some.in_part, u64::from(of_each(10) > 0), "{}", some.said());
    }
}
