//! Tokens: the most frequent IDs.

use std::collections::HashMap;

use windrow::prepare::Watch;
use windrow::preview::tokens::{self, Tokenizer};
use windrow::preview::{numbers, text};
use windrow::{Dataset, Result};

use crate::page::Page;
use crate::sample::{Sample, part};
use crate::watch::check;

const MOST_LISTED: usize = 30;

pub(crate) fn frequent(
    data: &Dataset,
    tokenizer: Option<&Tokenizer>,
    page: &mut Page,
    watch: &dyn Watch,
    sample: &Sample,
) -> Result<()> {
    let (mut counts, mut n) = (HashMap::<i64, u64>::new(), 0u64);
    let room = sample.room(1);
    for record in &sample.records {
        check(watch)?;
        let read =
            numbers::whole_numbers(data.source().as_ref(), part(*record, data.length(*record)?, room))?;
        n += read.len() as u64;
        read.into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
    }
    let mut counts: Vec<(i64, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(id, count)| (std::cmp::Reverse(*count), *id));
    page.section("Most frequent token IDs");
    page.text(&format!(
        "{} differ among {}.",
        text::counted(counts.len() as u64, "ID"),
        text::counted(n, "token")
    ));
    let rows: Vec<Vec<String>> = counts
        .iter()
        .take(MOST_LISTED)
        .map(|(id, count)| {
            let share = format!("{:.2} %", *count as f64 * 100.0 / n.max(1) as f64);
            let mut row = vec![id.to_string(), text::count(*count), share];
            if let Some(t) = tokenizer {
                row.push(tokens::quoted(t, *id).unwrap_or_default());
            }
            row
        })
        .collect();
    let head = ["ID", "count", "share", "text"];
    page.table(&head[..if tokenizer.is_some() { 4 } else { 3 }], &rows);
    page.note(&format!(
        "From {}; at most {} of each, from a random place where it is longer.",
        sample.said(),
        text::counted(room, "token")
    ));
    Ok(())
}
