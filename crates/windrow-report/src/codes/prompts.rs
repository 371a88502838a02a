//! The prompts of tracks: how long they are, which tracks have none, and the tags in them.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use windrow::dev::collate::CodesLayout;
use windrow::prepare::Watch;
use windrow::preview::text;
use windrow::{Dataset, Result};

use super::name;
use crate::histogram::{Histogram, SHARES, shares};
use crate::page::Page;
use crate::sample::Sample;
use crate::watch::check;

/// Prompts that are read at most, their bytes, and bytes of different tags that are kept at most.
const MOST_PROMPTS: u64 = 100_000;
const MOST_PROMPT_BYTES: u64 = 64 << 20;
const MOST_TAG_BYTES: usize = 16 << 20;
const TAGS_LISTED: usize = 30;
const WITHOUT_LISTED: usize = 10;

#[derive(Default)]
struct Prompts {
    /// Of those that are not empty, ascending.
    sizes: Vec<u64>,
    /// Records with an empty one.
    empty: Vec<u64>,
    beyond: u64,
    tags: HashMap<String, u64>,
    tag_bytes: usize,
    /// Whether a tag was left out, for there were too many.
    is_cut: bool,
}

impl Prompts {
    fn add(&mut self, record: u64, prompt: &str, text_length: u64) {
        if prompt.is_empty() {
            self.empty.push(record);
            return;
        }
        self.sizes.push(prompt.len() as u64);
        self.beyond += u64::from(prompt.len() as u64 > text_length);
        // A tag counts once for a track, however often it says it.
        let tags: BTreeSet<&str> = prompt.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
        for tag in tags {
            match self.tags.get_mut(tag) {
                Some(n) => *n += 1,
                None if self.tag_bytes + tag.len() > MOST_TAG_BYTES => self.is_cut = true,
                None => {
                    self.tag_bytes += tag.len();
                    self.tags.insert(tag.to_string(), 1);
                }
            }
        }
    }
}

pub(crate) fn show(data: &Dataset, page: &mut Page, watch: &dyn Watch) -> Result<Value> {
    let text_length = CodesLayout::default().text_length;
    let sample = Sample::of(data.len(), MOST_PROMPTS);
    let mut prompts = Prompts::default();
    let mut scratch = String::new();
    let (mut n, mut bytes) = (0u64, 0u64);
    for record in &sample.records {
        check(watch)?;
        if bytes > MOST_PROMPT_BYTES {
            break;
        }
        let prompt = data.source().text(*record, &mut scratch)?;
        prompts.add(*record, prompt, text_length);
        (n, bytes) = (n + 1, bytes + prompt.len() as u64);
    }
    prompts.sizes.sort_unstable();
    let mut tags: Vec<(&str, u64)> = prompts.tags.iter().map(|(tag, n)| (tag.as_str(), *n)).collect();
    tags.sort_unstable_by_key(|(tag, n)| (std::cmp::Reverse(*n), *tag));
    page.section("Prompts");
    page.text(&format!(
        "Of {}, {} no prompt; {} one of more than {text_length} bytes, which is truncated there unless text_length says otherwise.",
        text::counted(n, "track"),
        have(prompts.empty.len() as u64),
        have(prompts.beyond),
    ));
    if let Some(histogram) = Histogram::of(&prompts.sizes) {
        let row = shares(&prompts.sizes).map(text::count);
        histogram.show("prompts by bytes of UTF-8, empty ones left out", text::count, page);
        page.table(&SHARES, &[row.to_vec()]);
    }
    if !prompts.empty.is_empty() {
        let named: Vec<String> =
            prompts.empty.iter().take(WITHOUT_LISTED).map(|record| name(data, *record)).collect();
        let more = if prompts.empty.len() > WITHOUT_LISTED { ", …" } else { "" };
        page.text(&format!("Without a prompt: {}{more}.", named.join(", ")));
    }
    if !tags.is_empty() {
        let or_more = if prompts.is_cut { " or more" } else { "" };
        page.text(&format!(
            "{}{or_more}: the words between commas. The most frequent:",
            text::counted(tags.len() as u64, "tag")
        ));
        let rows: Vec<Vec<String>> = tags
            .iter()
            .take(TAGS_LISTED)
            .map(|(tag, count)| {
                let share = format!("{:.1} %", *count as f64 * 100.0 / n.max(1) as f64);
                vec![text::truncated(tag, 100), text::count(*count), share]
            })
            .collect();
        page.table(&["tag", "tracks", "share"], &rows);
    }
    let mut from = sample.said_of("track");
    if n < sample.records.len() as u64 {
        from += &format!(", of these the first {}, for they are long", text::count(n));
    }
    page.note(&format!("From {from}."));
    let listed: Vec<Value> =
        tags.iter().take(TAGS_LISTED).map(|(tag, n)| json!({ "tag": tag, "tracks": n })).collect();
    let row = (!prompts.sizes.is_empty()).then(|| shares(&prompts.sizes));
    Ok(json!({
        "read": n, "empty": prompts.empty.len(), "text_length": text_length, "longer": prompts.beyond,
        "bytes": row.map(|[min, p25, median, p75, p95, max]| json!({
            "shortest": min, "percent_25": p25, "median": median, "percent_75": p75, "percent_95": p95, "longest": max,
        })),
        "tags": tags.len(), "most_frequent": listed,
    }))
}

fn have(n: u64) -> String {
    format!("{} {}", text::count(n), if n == 1 { "has" } else { "have" })
}
