//! Some tracks as pictures of their codes, time from left to right, with their prompts.

use windrow::prepare::Watch;
use windrow::preview::{numbers, text};
use windrow::{Dataset, Result, Span};

use super::name;
use crate::page::{Page, Pixels};
use crate::picture::{Picture, VIRIDIS};
use crate::sample::Sample;
use crate::watch::check;

const TRACKS: u64 = 4;
const FRAMES: u64 = 600;
/// Channels drawn at most.
const CHANNELS: usize = 64;
/// Pixels of the page for a channel.
const ROW: usize = 9;

pub(crate) fn show(data: &Dataset, size: usize, page: &mut Page, watch: &dyn Watch) -> Result<()> {
    page.section("Some tracks");
    page.note(&format!(
        "The codes of the first frames: time from left to right, channel 0 at the top, code 0 dark and code {} bright; red \
         is outside of the codebook.",
        text::count((size as u64).saturating_sub(1))
    ));
    let channels = data.source().schema().channels.unwrap_or(1).max(1);
    let mut scratch = String::new();
    for record in Sample::of(data.len(), TRACKS).records {
        check(watch)?;
        let length = data.length(record)?;
        let len = length.min(FRAMES);
        let mut caption = format!("{}: {}", name(data, record), text::counted(length, "frame"));
        if len < length {
            caption += &format!(", the first {}", text::count(len));
        }
        if channels > CHANNELS {
            caption += &format!("; {CHANNELS} of {} channels", text::count(channels as u64));
        }
        if len == 0 {
            page.text(&caption);
        } else {
            let codes = numbers::whole_numbers(data.source().as_ref(), Span { record, start: 0, len })?;
            let grid = picture(&codes, channels, size);
            let height = (grid.height() * ROW).max(24);
            page.picture(&caption, (&grid, Pixels::Apart), height, &[], ["0", &text::count(len)])?;
        }
        match data.source().text(record, &mut scratch)? {
            "" => page.note("No prompt."),
            prompt => page.note(&format!("Prompt: {}", text::truncated(prompt, 500))),
        }
    }
    Ok(())
}

// A row of pixels for each channel.
fn picture(codes: &[i64], channels: usize, size: usize) -> Picture {
    let level = |code: i64| match usize::try_from(code) {
        Ok(code) if code < size => Picture::level(code as f64 / (size - 1).max(1) as f64),
        _ => Picture::OUTSIDE,
    };
    let levels = (0..channels.min(CHANNELS))
        .flat_map(|channel| codes.iter().skip(channel).step_by(channels).map(|code| level(*code)))
        .collect();
    Picture { width: codes.len() / channels, colours: &VIRIDIS, levels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_a_row_for_each_channel_and_marks_what_is_outside() {
        let grid = picture(&[0, 1023, 1024, -1, 0, 0], 2, 1024);
        assert_eq!((grid.width, grid.height()), (3, 2));
        assert_eq!(grid.levels, [0, Picture::OUTSIDE, 0, Picture::TOP, Picture::OUTSIDE, 0]);
        assert_eq!(picture(&[0], 1, 1).levels, [0]);
    }
}
