//! How long records are.

use windrow::{DataSet, Result};

use super::page::Page;
use super::sample::Sample;
use super::svg::Svg;
use crate::interrupt::Interrupt;
use crate::text;

/// Lengths are cheap: so many are looked at.
const MOST_LENGTHS: u64 = 1_000_000;
const BARS: u64 = 32;
/// Where the longest is so many times the shortest, bars of one width would leave nearly all in the first.
const WIDE: u64 = 50;

pub(super) fn show(data: &DataSet, what: &str, unit: &str, page: &mut Page, stop: &Interrupt) -> Result<()> {
    page.section(&format!("Lengths of {what}"));
    if let Some(length) = data.source().uniform() {
        page.text(&format!("Every one has {} {unit}.", text::count(length)));
        return Ok(());
    }
    let sample = Sample::of(data.len(), MOST_LENGTHS);
    let mut lengths = Vec::with_capacity(sample.records.len());
    for record in &sample.records {
        stop.check()?;
        lengths.push(data.length(*record)?);
    }
    lengths.sort_unstable();
    let (Some(min), Some(max)) = (lengths.first().copied(), lengths.last().copied()) else {
        page.text("There are none.");
        return Ok(());
    };
    let is_wide = max / WIDE >= min.max(1);
    let bars = if is_wide { growing(&lengths, min, max) } else { even(&lengths, min, max) };
    let most = text::count(bars.iter().max().copied().unwrap_or(0));
    let mut caption = format!("{what} by length in {unit}; the highest bar counts {most}");
    if is_wide {
        caption += "; each bar spans lengths longer by the same factor";
    }
    page.figure(&caption, &Svg::bars(&bars), [&text::count(min), &text::count(max)]);
    let at = |percent: usize| text::count(lengths[(lengths.len() - 1) * percent / 100]);
    let shares = [0, 25, 50, 75, 95, 100];
    page.table(
        &["shortest", "25 %", "median", "75 %", "95 %", "longest"],
        &[shares.iter().map(|percent| at(*percent)).collect()],
    );
    page.note(&format!("From {}.", sample.said()));
    Ok(())
}

fn even(lengths: &[u64], min: u64, max: u64) -> Vec<u64> {
    let width = ((max - min) / BARS).saturating_add(1);
    let mut bars = vec![0u64; ((max - min) / width) as usize + 1];
    lengths.iter().for_each(|length| bars[((length - min) / width) as usize] += 1);
    bars
}

fn growing(lengths: &[u64], min: u64, max: u64) -> Vec<u64> {
    let log = |length: u64| (length.max(1) as f64).ln();
    let mut bars = vec![0u64; BARS as usize];
    for length in lengths {
        let share = (log(*length) - log(min)) / (log(max) - log(min));
        bars[((share * BARS as f64) as usize).min(BARS as usize - 1)] += 1;
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_in_a_bar() {
        let lengths = [0, 1, 2, 3, 1_000, 1 << 32];
        let bars = growing(&lengths, 0, 1 << 32);
        assert_eq!((bars.len(), bars.iter().sum::<u64>()), (32, 6));
        assert_eq!((bars[0], bars[1], bars[31]), (2, 2, 1));
        assert_eq!(even(&[5, 5, 7], 5, 7), [2, 0, 1]);
        assert_eq!(even(&[9], 9, 9), [1]);
    }
}
