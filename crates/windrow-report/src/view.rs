//! What a view makes of the data: how much of it is seen, and some samples with the borders of records in them.

use windrow::preview::tokens::{self, Tokenizer};
use windrow::preview::{numbers, text};
use windrow::{Labels, Piece, Plan, Result, Samples, Segments, ViewRecipe};

use crate::page::Page;
use crate::sample::Sample;
use crate::svg::{Fill, Part, Svg};

const SAMPLES_DRAWN: u64 = 6;
const RECORDS_NAMED: usize = 10;
const PREVIEW_VALUES: u64 = 48;

pub(crate) fn coverage(samples: &Samples, page: &mut Page) -> Result<()> {
    page.section("Coverage of the view");
    let seen = samples.coverage()?;
    let view = samples.feed().view();
    page.text(&format!("{}: {}.", view.describe(), text::counted(samples.len(), "sample")));
    let all = seen.used.saturating_add(seen.unseen);
    let share = format!(
        "{:.1} % of {} values are seen in an epoch",
        seen.used as f64 * 100.0 / all.max(1) as f64,
        text::count(all)
    );
    page.figure(&share, &Svg::strip(&[Part { fill: Fill::Own, len: seen.used }], all), ["seen", "not seen"]);
    let row = [seen.used, seen.repeated, seen.padded, seen.unseen, seen.skipped_records];
    page.table(
        &["used", "read again", "padded positions", "unseen", "records left out"],
        &[row.map(text::count).to_vec()],
    );
    Ok(())
}

/// Samples as strips, in alternating colours for the records they are made of.
pub(crate) fn packs(
    samples: &Samples,
    plan: &Plan,
    tokenizer: Option<&Tokenizer>,
    page: &mut Page,
) -> Result<()> {
    page.section("Some samples, with the borders of documents");
    page.note(
        "The positions of the inputs, from left to right: the two colours are documents in turn; thin marks are EOS tokens, \
         grey is padding.",
    );
    let positions = samples.feed().view().positions();
    for sample in Sample::of(samples.len(), SAMPLES_DRAWN).records {
        let traced = plan.trace(0, sample)?;
        let (parts, spans) = (parts(samples, &traced.pieces), traced.spans);
        let records = numbered(spans.iter().map(|span| span.record));
        let caption = format!("sample {}: {records}", text::count(sample));
        page.figure(&caption, &Svg::strip(&parts, positions), ["0", &text::count(positions)]);
        if let (Some(tokenizer), Some(first)) = (tokenizer, spans.first()) {
            let mut first = *first;
            first.len = first.len.min(PREVIEW_VALUES);
            let ids = numbers::whole_numbers(samples.dataset().source().as_ref(), first)?;
            if let Some(begins) = tokens::decoded(tokenizer, &ids) {
                page.note(&format!("{}…", text::truncated(&begins, 300)));
            }
        }
    }
    Ok(())
}

// `record 7`, `records 3 to 9`, `records 3, 8, 11`.
fn numbered(records: impl Iterator<Item = u64>) -> String {
    let mut records: Vec<u64> = records.collect();
    records.dedup();
    let run =
        records.iter().zip(records.first().copied().unwrap_or(0)..).all(|(record, next)| *record == next);
    match records[..] {
        [] => "no record".to_string(),
        [one] => format!("record {}", text::count(one)),
        [first, .., last] if run => format!("records {} to {}", text::count(first), text::count(last)),
        _ => {
            let some: Vec<String> =
                records.iter().take(RECORDS_NAMED).map(|record| text::count(*record)).collect();
            let more = if records.len() > RECORDS_NAMED { ", …" } else { "" };
            format!("records {}{more}", some.join(", "))
        }
    }
}

// The inputs that each span fills: its values, up to where the row is full; the values after that are labels only.
fn parts(samples: &Samples, pieces: &[Piece]) -> Vec<Part> {
    // Here each span ends with a label of its own.
    let labels = u64::from(matches!(
        samples.recipe().view,
        ViewRecipe::Segments(Segments { labels: Labels::Next, .. })
    ));
    let mut left = samples.feed().view().positions();
    let mut documents = [Fill::Own, Fill::Next].into_iter().cycle();
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (fill, len) = match piece {
            Piece::Read(span) => (documents.next().unwrap_or(Fill::Own), span.len.saturating_sub(labels)),
            Piece::Value(_) => (Fill::End, 1),
            Piece::Fill(span) => (Fill::Nothing, span.len),
        };
        let len = len.min(left);
        left -= len;
        if len > 0 {
            parts.push(Part { fill, len });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_that_follow_each_other_are_named_from_to() {
        let said = |records: &[u64]| numbered(records.iter().copied());
        assert_eq!([said(&[]), said(&[7, 7]), said(&[3, 4, 5])], ["no record", "record 7", "records 3 to 5"]);
        assert_eq!([said(&[14, 60]), said(&[3, 5, 6])], ["records 14, 60", "records 3, 5, 6"]);
        assert_eq!(
            said(&(0..22).step_by(2).collect::<Vec<u64>>()),
            "records 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, …"
        );
    }
}
