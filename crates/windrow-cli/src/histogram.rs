//! Records by length, in rows of a terminal.
//!
//! A row spans lengths up to twice its first one, or a part of that where nearly all lengths would be in a few such rows. So one
//! record that is much longer than the others leaves their rows as they are, and rows between them without any are one row.

use windrow::{Dataset, Result};

use crate::text;

/// Records whose length is at least `from` and at most `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Bar {
    from: u64,
    to: u64,
    records: u64,
}

/// Lengths are counted in `1 << FINEST` parts of each doubling.
const FINEST: u32 = 4;
/// The least number of rows for nearly all lengths.
const LEAST_ROWS: usize = 4;
/// The largest number of rows, unless whole doublings take more.
const MOST_ROWS: usize = 40;
/// One length in this many, on either side, may be far from the others.
const FAR: u64 = 20;

/// Counts records by length; only from the shortest to the longest.
pub(crate) fn histogram(data: &Dataset) -> Result<Vec<Bar>> {
    let source = data.source();
    let mut counts = Counts::default();
    match source.uniform() {
        Some(length) => counts.add(length, data.len()),
        None => {
            for record in 0..data.len() {
                counts.add(source.length(record)?, 1);
            }
        }
    }
    Ok(counts.bars())
}

/// The rows as lines of at most `columns` columns, each with its bar.
pub(crate) fn lines(bars: &[Bar], columns: usize) -> Vec<String> {
    let most = bars.iter().map(|bar| bar.records).max().unwrap_or(0).max(1);
    let name = |bar: &Bar| {
        if bar.from == bar.to {
            text::count(bar.from)
        } else {
            format!("{}..{}", text::count(bar.from), text::count(bar.to))
        }
    };
    let names: Vec<String> = bars.iter().map(name).collect();
    let counts: Vec<String> = bars.iter().map(|bar| text::count(bar.records)).collect();
    let (names_width, counts_width) = (widest(&names), widest(&counts));
    let room = columns.saturating_sub(names_width + counts_width + 6).max(1);
    let rows = bars.iter().zip(&names).zip(&counts).map(|((bar, name), count)| {
        let drawn = u128::from(bar.records) * room as u128 / u128::from(most);
        let drawn = "█".repeat(usize::try_from(drawn).unwrap_or(0).max(usize::from(bar.records > 0)));
        format!("  {name:>names_width$}  {count:>counts_width$}  {drawn}").trim_end().to_string()
    });
    rows.collect()
}

fn widest(texts: &[String]) -> usize {
    texts.iter().map(String::len).max().unwrap_or(0)
}

/// How many records have a length in each of the finest rows.
#[derive(Default)]
struct Counts(Vec<u64>);

impl Counts {
    fn add(&mut self, length: u64, records: u64) {
        let row = row(length, FINEST);
        if self.0.len() <= row {
            self.0.resize(row + 1, 0);
        }
        self.0[row] += records;
    }

    fn bars(&self) -> Vec<Bar> {
        let all: Vec<Vec<Bar>> = (0..=FINEST).map(|parts| merged(self.in_parts(parts))).collect();
        let rows: Vec<usize> = (0..=FINEST).map(|parts| self.rows_of_most(parts)).collect();
        // Of few records a row each says nothing more.
        let is_few = self.0.iter().sum::<u64>() < FAR;
        let enough = if is_few { 0 } else { rows.last().copied().unwrap_or(0).min(LEAST_ROWS) };
        let parts = rows.iter().position(|rows| *rows >= enough).unwrap_or(0);
        let fits = all[..=parts].iter().rposition(|bars| bars.len() <= MOST_ROWS).unwrap_or(0);
        all.into_iter().nth(fits).unwrap_or_default()
    }

    // With `1 << parts` rows in each doubling, from the first to the last that has a record.
    fn in_parts(&self, parts: u32) -> Vec<Bar> {
        let filled = || self.0.iter().enumerate().filter(|(_, records)| **records > 0);
        let of = |fine: usize| row(span(fine, FINEST).0, parts);
        let (Some(first), Some(last)) = (filled().next(), filled().next_back()) else { return Vec::new() };
        let first = of(first.0);
        let mut bars: Vec<Bar> = (first..=of(last.0))
            .map(|row| span(row, parts))
            .map(|(from, to)| Bar { from, to, records: 0 })
            .collect();
        filled().for_each(|(fine, records)| bars[of(fine) - first].records += records);
        bars
    }

    // How many rows nearly all records take.
    fn rows_of_most(&self, parts: u32) -> usize {
        let n: u64 = self.0.iter().sum();
        let far = n / FAR;
        let at = |number: u64| {
            let mut seen = 0;
            self.0.iter().position(|records| {
                seen += records;
                seen > number
            })
        };
        let ends = at(far).zip(at(n.saturating_sub(far + 1)));
        ends.map_or(0, |(low, high)| row(span(high, FINEST).0, parts) - row(span(low, FINEST).0, parts) + 1)
    }
}

// Rows between others that have no record are one.
fn merged(bars: Vec<Bar>) -> Vec<Bar> {
    let mut merged: Vec<Bar> = Vec::with_capacity(bars.len());
    for bar in bars {
        match merged.last_mut() {
            Some(last) if last.records == 0 && bar.records == 0 => last.to = bar.to,
            _ => merged.push(bar),
        }
    }
    merged
}

// The row that a length is in, where each doubling has `1 << parts` rows. The shortest have one each.
fn row(length: u64, parts: u32) -> usize {
    let bits = u64::BITS - length.leading_zeros();
    let doubling = bits.saturating_sub(parts + 1);
    ((u64::from(doubling) << parts) + (length >> doubling)) as usize
}

// The first and the last length of a row.
fn span(row: usize, parts: u32) -> (u64, u64) {
    let row = row as u64;
    let doubling = (row >> parts).saturating_sub(1);
    let from = (row - (doubling << parts)) << doubling;
    (from, from + ((1 << doubling) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(lengths: impl IntoIterator<Item = u64>) -> Vec<(u64, u64, u64)> {
        let mut counts = Counts::default();
        lengths.into_iter().for_each(|length| counts.add(length, 1));
        counts.bars().into_iter().map(|bar| (bar.from, bar.to, bar.records)).collect()
    }

    #[test]
    fn every_length_is_in_the_span_of_its_row() {
        let lengths = (0..100).chain((0..64).map(|bits| 1 << bits)).chain([1000, u64::MAX - 1, u64::MAX]);
        for length in lengths {
            for parts in 0..=FINEST {
                let (from, to) = span(row(length, parts), parts);
                assert!(from <= length && length <= to, "{length} {parts}: {from}..{to}");
                // Rows follow each other without a gap.
                assert!(
                    to == u64::MAX || span(row(length, parts) + 1, parts).0 == to + 1,
                    "{length} {parts}"
                );
            }
        }
    }

    #[test]
    fn lengths_of_many_sizes_are_in_doublings() {
        assert_eq!(
            bars([0, 1, 2, 3, 5, 9, 20, 100]),
            [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 1), (8, 15, 1), (16, 31, 1), (32, 63, 0), (64, 127, 1)]
        );
        assert_eq!(bars([]), []);
        assert_eq!(bars([700; 9]), [(512, 1023, 9)]);
    }

    #[test]
    fn a_record_that_is_far_from_the_others_is_a_row_of_its_own() {
        let found = bars((0..100).map(|i| 90 + i / 5).chain([45_525]));
        assert_eq!(
            found,
            [
                (88, 91, 10),
                (92, 95, 20),
                (96, 99, 20),
                (100, 103, 20),
                (104, 107, 20),
                (108, 111, 10),
                (112, 45_055, 0),
                (45_056, 47_103, 1)
            ]
        );
        // Many that are far apart are in doublings, however close the others are.
        let wide = bars((0..1000).map(|i| if i < 920 { 1000 + i } else { 1 << (i % 60) }));
        assert!(wide.len() <= 64, "{wide:?}");
    }

    #[test]
    fn bars_are_as_wide_as_there_is_room() {
        let bars = [Bar { from: 64, to: 127, records: 2 }, Bar { from: 128, to: 255, records: 40 }];
        assert_eq!(lines(&bars, 30), ["   64..127   2  █", "  128..255  40  ██████████████"]);
        assert!(lines(&bars, 100).iter().any(|line| line.chars().count() == 100));
        assert!(lines(&bars, 40).iter().all(|line| line.chars().count() <= 40));
    }
}
