//! Audio codes for people: a grid of the first frames, and how much of its codebook each channel uses.

use windrow::dev::source::Source;
use windrow::preview::numbers;
use windrow::{Dataset, Span};

use crate::failure::Failure;

/// Frames that a grid shows.
const FRAMES: usize = 14;
/// Channels that a grid shows.
const CHANNELS: usize = 18;
/// Codes that are looked at to say which are used.
const MOST_CODES: u64 = 1 << 23;
/// Codes beyond this are counted as one.
const MOST_CODEBOOK: usize = 1 << 16;

/// Whether records are grids of codes: of the layout made for them, or whole numbers `[T, C]` in shards.
pub(crate) fn are_codes(source: &dyn Source) -> bool {
    let schema = source.schema();
    let is_grid = schema.channels.is_some() && schema.element.dtype.is_integer();
    windrow::format_info(source.format()).is_some_and(|info| info.holds_codes(is_grid))
}

/// A line per channel: its first codes.
pub(crate) fn grid(codes: &[i64], channels: usize) -> Vec<String> {
    let frames = codes.len() / channels.max(1);
    let more = if frames > FRAMES { " …" } else { "" };
    let width = codes.iter().map(|code| code.to_string().len()).max().unwrap_or(1);
    let mut lines: Vec<String> = (0..channels.min(CHANNELS))
        .map(|channel| {
            let row =
                codes.chunks_exact(channels).take(FRAMES).map(|frame| format!(" {:>width$}", frame[channel]));
            format!("  channel {channel:>2} {}{more}", row.collect::<String>())
        })
        .collect();
    if channels > CHANNELS {
        lines.push(format!("  … {} more channels", channels - CHANNELS));
    }
    lines
}

/// How many different codes each channel has in the first tracks, and how many tracks these are.
///
/// # Errors
/// As reading.
pub(crate) fn used(data: &Dataset) -> Result<(Vec<u64>, u64), Failure> {
    let source = data.source().as_ref();
    let channels = source.schema().channels.unwrap_or(1).max(1);
    let mut seen = vec![Vec::<bool>::new(); channels];
    let mut left = MOST_CODES;
    let mut tracks = 0;
    for record in 0..source.len() {
        if left < channels as u64 {
            break;
        }
        let len = source.length(record)?.min(left / channels as u64);
        let codes = numbers::whole_numbers(source, Span { record, start: 0, len })?;
        for frame in codes.chunks_exact(channels) {
            for (seen, code) in seen.iter_mut().zip(frame) {
                let place = usize::try_from(*code).unwrap_or(MOST_CODEBOOK).min(MOST_CODEBOOK);
                if seen.len() <= place {
                    seen.resize(place + 1, false);
                }
                seen[place] = true;
            }
        }
        left -= len * channels as u64;
        tracks += 1;
    }
    let count = |seen: &Vec<bool>| seen.iter().filter(|used| **used).count() as u64;
    Ok((seen.iter().map(count).collect(), tracks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_a_line_per_channel() {
        assert_eq!(grid(&[1, 20, 300, 4], 2), ["  channel  0    1 300", "  channel  1   20   4"]);
        let long: Vec<i64> = (0..30).collect();
        assert_eq!(grid(&long, 1), ["  channel  0   0  1  2  3  4  5  6  7  8  9 10 11 12 13 …"]);
        assert_eq!(grid(&[], 1), ["  channel  0 "]);
        assert_eq!(grid(&[0; 20], 20).last().unwrap(), "  … 2 more channels");
    }
}
