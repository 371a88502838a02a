//! What a view makes of the data: how much of it is seen, and some samples with the borders of records in them.

use windrow::text::Tokenizer;
use windrow::{Plan, Result, Samples};

use super::page::Page;
use super::sample::Sample;
use super::svg::Svg;
use crate::{ids, text};

const SAMPLES_DRAWN: u64 = 6;
const PREVIEW_VALUES: u64 = 48;

pub(super) fn coverage(samples: &Samples, page: &mut Page) -> Result<()> {
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
    page.figure(&share, &Svg::strip(&[seen.used], all), ["seen", "not seen"]);
    let row = [seen.used, seen.repeated, seen.padded, seen.unseen, seen.skipped_records];
    page.table(
        &["used", "read again", "padded positions", "unseen", "records left out"],
        &[row.map(text::count).to_vec()],
    );
    Ok(())
}

/// Samples laid out, in turns of two colours for the records they are made of.
pub(super) fn packs(
    samples: &Samples,
    plan: &Plan,
    tokenizer: Option<&Tokenizer>,
    page: &mut Page,
) -> Result<()> {
    page.section("Some samples, with the borders of documents");
    let whole = samples.feed().view().positions().saturating_add(1);
    for sample in Sample::of(samples.len(), SAMPLES_DRAWN).records {
        let spans = plan.trace(0, sample)?.spans;
        let lengths: Vec<u64> = spans.iter().map(|span| span.len).collect();
        let records = match (spans.first(), spans.last()) {
            (Some(first), Some(last)) if first.record != last.record => {
                format!("records {} to {}", text::count(first.record), text::count(last.record))
            }
            (Some(first), _) => format!("record {}", text::count(first.record)),
            _ => "no record".to_string(),
        };
        let caption = format!("sample {}: {records}", text::count(sample));
        page.figure(&caption, &Svg::strip(&lengths, whole), ["0", &text::count(whole)]);
        if let (Some(tokenizer), Some(first)) = (tokenizer, spans.first()) {
            let mut first = *first;
            first.len = first.len.min(PREVIEW_VALUES);
            let ids = ids::whole_numbers(samples.data_set().source().as_ref(), first)?;
            if let Some(begins) = ids::decoded(tokenizer, &ids) {
                page.note(&format!("{}…", text::cut(&begins, 300)));
            }
        }
    }
    Ok(())
}
