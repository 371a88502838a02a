//! Lines of JSON: found, and parsed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Fallible, map, mix};

pub(crate) fn newlines(file: &str) -> Fallible<Value> {
    let map = map(file)?;
    let start = Instant::now();
    let lines = memchr::memchr_iter(b'\n', &map).count();
    Ok(json!({ "lines": lines, "bytes": map.len(), "secs": start.elapsed().as_secs_f64() }))
}

// Lines at random, parsed whole.
pub(crate) fn parse(file: &str, secs: f64) -> Fallible<Value> {
    let map = map(file)?;
    let mut starts = vec![0usize];
    starts.extend(memchr::memchr_iter(b'\n', &map).map(|i| i + 1));
    let lines = starts.len() as u64 - 1;
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    let mut records = 0u64;
    while start.elapsed() < until {
        for _ in 0..100 {
            records += 1;
            let line = (mix(records) % lines) as usize;
            let value: Value = serde_json::from_slice(&map[starts[line]..starts[line + 1]])?;
            black_box(value);
        }
    }
    Ok(json!({ "records": records, "secs": start.elapsed().as_secs_f64() }))
}

// The same records by windrow, in Rust: what stands beside `parse`.
pub(crate) fn records(folder: &str, secs: f64) -> Fallible<Value> {
    let data = windrow::open(folder)?;
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    let mut records = 0u64;
    while start.elapsed() < until {
        for _ in 0..100 {
            records += 1;
            black_box(data.json(mix(records) % data.len())?);
        }
    }
    Ok(json!({ "records": records, "secs": start.elapsed().as_secs_f64() }))
}
