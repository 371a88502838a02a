//! What it costs that records were chosen of many: whole documents and a tenth of them, through windrow's loader.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windrow::{Choose, Pack, Records, Samples};

use crate::made::Made;
use crate::{Fallible, mix};

// Rows a second of processor time of packs and of records, of `documents` documents and of a tenth of them, in turns.
pub(crate) fn tenth(documents: u64, length: u64, threads: usize, secs: f64, turns: usize) -> Fallible<Value> {
    let whole = Made::dataset(documents)?;
    let mask: Vec<u8> = (0..documents).map(|i| u8::from(mix(!i).is_multiple_of(10))).collect();
    let begun = Instant::now();
    let tenth = whole.select(Choose::Mask(&mask))?;
    let select_secs = begun.elapsed().as_secs_f64();
    drop(mask);
    let views = [
        ("pack", whole.pack(Pack::new(length))?, tenth.pack(Pack::new(length))?),
        ("records", whole.records(Records::new(length))?, tenth.records(Records::new(length))?),
    ];
    let mut found = json!({ "select_secs": select_secs, "chosen": tenth.len() });
    for (name, whole, tenth) in views {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..turns {
            for (view, rates) in [&whole, &tenth].into_iter().zip(&mut rates) {
                rates.push(rows_per_processor_sec(view, threads, secs)?);
            }
        }
        let [whole, tenth] = rates.map(median);
        found[name] = json!({ "whole": whole, "chosen": tenth, "ratio": tenth / whole });
    }
    Ok(found)
}

fn rows_per_processor_sec(view: &Samples, threads: usize, secs: f64) -> Fallible<f64> {
    let mut loader = view.loader().batch_size(32).num_threads(Some(threads)).build()?;
    let mut next = || loader.next_batch().ok_or("an endless loader ended")?.map_err(|e| e.to_string());
    for _ in 0..8 {
        next()?;
    }
    let (start, until, before) = (Instant::now(), Duration::from_secs_f64(secs), processor_secs());
    let mut rows = 0;
    while start.elapsed() < until {
        rows += black_box(&next()?).rows();
    }
    Ok(rows as f64 / (processor_secs() - before))
}

// Processor time of this process, in the unit of 1/100 s that Linux counts it in.
fn processor_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have spaces: times are fields 14 and 15.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}
