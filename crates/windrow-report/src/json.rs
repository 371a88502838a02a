//! JSON records: their keys, and some of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windrow::prepare::Watch;
use windrow::preview::text;
use windrow::{Dataset, Result};

use crate::page::Page;
use crate::sample::{MOST_VALUES, Sample};
use crate::watch::check;

const MOST_KEYS: usize = 1_000;
const KEYS_LISTED: usize = 50;
const RECORDS_SHOWN: usize = 3;

pub(crate) fn keys(data: &Dataset, page: &mut Page, watch: &dyn Watch, sample: &Sample) -> Result<()> {
    let mut keys: BTreeMap<String, (u64, BTreeSet<&'static str>, String)> = BTreeMap::new();
    let (mut parsed, mut bytes, mut others) = (0u64, 0u64, 0u64);
    let mut shown = Vec::new();
    for record in &sample.records {
        check(watch)?;
        if bytes >= MOST_VALUES * 16 {
            break;
        }
        bytes = bytes.saturating_add(data.length(*record)?);
        let value = data.json(*record)?;
        parsed += 1;
        if shown.len() < RECORDS_SHOWN {
            shown.push(vec![text::count(*record), text::truncated(&value.to_string(), 400)]);
        }
        let Value::Object(map) = value else {
            others += 1;
            continue;
        };
        for (key, value) in map {
            if keys.len() < MOST_KEYS || keys.contains_key(&key) {
                let example = || text::truncated(&value.to_string(), 60);
                let (n, kinds, _) = keys.entry(key).or_insert_with(|| (0, BTreeSet::new(), example()));
                *n += 1;
                kinds.insert(kind(&value));
            }
        }
    }
    page.section("Keys");
    let mut rows: Vec<_> = keys.into_iter().collect();
    rows.sort_by_key(|(_, (n, ..))| std::cmp::Reverse(*n));
    let (n_keys, more) = (rows.len(), rows.len().saturating_sub(KEYS_LISTED));
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .take(KEYS_LISTED)
        .map(|(key, (n, kinds, example))| {
            let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
            vec![text::truncated(&key, 100), text::count(n), kinds, example]
        })
        .collect();
    page.table(&["key", "records", "kind", "for example"], &rows);
    if more > 0 {
        let or_more = if n_keys == MOST_KEYS { " or more" } else { "" };
        page.note(&format!("… and {more}{or_more} other keys."));
    }
    if others > 0 {
        page.text(&format!(
            "{} no object.",
            match others {
                1 => "1 record is".to_string(),
                n => format!("{} records are", text::count(n)),
            }
        ));
    }
    let all = parsed == sample.records.len() as u64;
    let first = if all { String::new() } else { format!("the first {} of ", text::count(parsed)) };
    page.note(&format!("From {first}{}.", sample.said()));
    page.section("Some records");
    page.table(&["record", "text"], &shown);
    Ok(())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
