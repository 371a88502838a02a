//! Where the samples of a view fall in some tracks, epoch after epoch.

use std::ops::Range;

use serde_json::{Value, json};
use windrow::dev::Pass;
use windrow::dev::collate::{CodesLayout, Masks};
use windrow::prepare::Watch;
use windrow::preview::text;
use windrow::{Dataset, Result, Samples, ViewRecipe};

use super::name;
use crate::durations::said;
use crate::page::Page;
use crate::sample::Sample;
use crate::svg::Svg;
use crate::watch::check;

const LENGTH: u64 = 600;
const TRACKS: u64 = 6;
/// Pieces of one track in one epoch that are drawn at most.
const MOST_PIECES: u64 = 1_000;

/// The samples: of the view that was named, else random crops of codes.
pub(crate) fn samples(data: &Dataset, view: Option<ViewRecipe>, length: Option<u64>) -> Result<Samples> {
    match view {
        Some(view) => data.view(view, None),
        None => {
            let layout = CodesLayout { masks: Masks::Lengths, ..CodesLayout::default() };
            data.codes(windrow::Codes::new(length.unwrap_or(LENGTH)).layout(layout))
        }
    }
}

pub(crate) fn show(
    samples: &Samples,
    epochs: u64,
    seed: u64,
    seconds: &dyn Fn(u64) -> f64,
    page: &mut Page,
    watch: &dyn Watch,
) -> Result<Value> {
    let data = samples.dataset();
    let view = samples.feed().view();
    page.section("Crops over time");
    page.text(&format!("{}, seed {seed}.", view.describe()));
    page.note(&format!(
        "A lane for each of {}, from the top: the frames that the track's samples read then. They are the same for every \
         number of ranks and threads, shuffled or not.",
        text::counted(epochs, "epoch")
    ));
    let mut tracks = Vec::new();
    // In the order of the data a position is a sample; what a sample reads does not depend on its position.
    let plan = if samples.is_empty() {
        None
    } else {
        Some(
            samples
                .loader()
                .batch_size(1)
                .shuffle(false)
                .seed(seed)
                .num_threads(Some(0))
                .rank(0, 1)
                .plan()?,
        )
    };
    for record in Sample::of(data.len(), TRACKS).records {
        let Some(plan) = &plan else { break };
        let length = data.length(record)?;
        let positions = view.samples_of(record, Pass::default())?;
        let positions = positions.start..positions.end.min(positions.start.saturating_add(MOST_PIECES));
        let mut lanes: Vec<Vec<Range<u64>>> = Vec::new();
        for epoch in 0..epochs {
            check(watch)?;
            let mut lane = Vec::new();
            for position in positions.clone() {
                let spans = plan.trace(epoch, position)?.spans;
                let own = spans.into_iter().filter(|span| span.record == record);
                lane.extend(own.map(|span| span.start..span.start.saturating_add(span.len)));
            }
            lanes.push(lane);
        }
        let seen = seen(lanes.iter().flatten().cloned().collect());
        let share = seen as f64 * 100.0 / length.max(1) as f64;
        let caption = format!(
            "{}: {}, {}; {share:.1} % seen",
            name(data, record),
            said(seconds(length)),
            text::counted(length, "frame")
        );
        page.figure(&caption, &Svg::lanes(length, &lanes), ["0 s", &said(seconds(length))]);
        let lanes: Vec<Vec<[u64; 2]>> =
            lanes.iter().map(|lane| lane.iter().map(|span| [span.start, span.end]).collect()).collect();
        tracks.push(json!({ "record": record, "frames": length, "seen": seen, "epochs": lanes }));
    }
    Ok(json!({ "view": view.describe(), "seed": seed, "epochs": epochs, "tracks": tracks }))
}

// How many frames are in at least one of the spans.
fn seen(mut spans: Vec<Range<u64>>) -> u64 {
    spans.sort_unstable_by_key(|span| span.start);
    let (mut seen, mut end) = (0, 0);
    for span in spans {
        seen += span.end.saturating_sub(span.start.max(end));
        end = end.max(span.end);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_several_crops_read_count_once() {
        assert_eq!(seen(vec![5..9, 0..4, 3..6]), 9);
        assert_eq!(seen(vec![0..10, 2..3, 20..21]), 11);
        assert_eq!(seen(Vec::new()), 0);
    }
}
