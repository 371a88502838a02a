//! How long records are.

use windrow::prepare::Watch;
use windrow::preview::text;
use windrow::{Dataset, Result};

use crate::histogram::{Histogram, SHARES, shares};
use crate::page::Page;
use crate::sample::Sample;
use crate::watch::check;

/// How many lengths are looked at: they are cheap.
pub(crate) const MOST_LENGTHS: u64 = 1_000_000;

pub(crate) fn show(data: &Dataset, what: &str, unit: &str, page: &mut Page, watch: &dyn Watch) -> Result<()> {
    page.section(&format!("Lengths of {what}"));
    if let Some(length) = data.source().uniform() {
        page.text(&format!("Every one has {} {unit}.", text::count(length)));
        return Ok(());
    }
    let sample = Sample::of(data.len(), MOST_LENGTHS);
    let mut lengths = Vec::with_capacity(sample.records.len());
    for record in &sample.records {
        check(watch)?;
        lengths.push(data.length(*record)?);
    }
    lengths.sort_unstable();
    let Some(histogram) = Histogram::of(&lengths) else {
        page.text("There are none.");
        return Ok(());
    };
    let row = shares(&lengths).map(text::count);
    histogram.show(&format!("{what} by length in {unit}"), text::count, page);
    page.table(&SHARES, &[row.to_vec()]);
    page.note(&format!("From {}.", sample.said()));
    Ok(())
}
