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
    let width = ((max - min) / BARS).saturating_add(1);
    let mut bars = vec![0u64; ((max - min) / width) as usize + 1];
    lengths.iter().for_each(|length| bars[((length - min) / width) as usize] += 1);
    let most = text::count(bars.iter().max().copied().unwrap_or(0));
    let caption = format!("{what} by length in {unit}; the highest bar counts {most}");
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
