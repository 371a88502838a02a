//! How long a trainer waits for a batch where one epoch ends and the next one begins in another order.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windrow::Pack;
use windrow::dev::plan::Cursor;

use crate::Fallible;
use crate::made::Made;

const BATCH: u64 = 32;

// The longest wait for a batch of reshuffled packs, from `rows` rows before the end of an epoch to as many after it. `rate`: rows a
// second that are taken, 0 for all that there are.
pub(crate) fn longest(documents: u64, length: u64, threads: usize, rows: u64, rate: f64) -> Fallible<Value> {
    let view = Made::dataset(documents)?.pack(Pack::new(length).reshuffle(true))?;
    let mut loader = view.loader().batch_size(BATCH).num_threads(Some(threads)).build()?;
    let end = view.len() / BATCH * BATCH;
    loader.back_to(Cursor::at(0, end.saturating_sub(rows / BATCH * BATCH)));
    let mut next = || loader.next_batch().ok_or("an endless loader ended")?.map_err(|e| e.to_string());
    let begun = Instant::now();
    next()?;
    let first_secs = begun.elapsed().as_secs_f64();
    // What was ready ahead of the first batch is not what a run waits for.
    let (start, every) =
        (Instant::now(), Duration::from_secs_f64(if rate > 0.0 { BATCH as f64 / rate } else { 0.0 }));
    let n_batches = (2 * rows / BATCH).min(2 * end / BATCH) as usize;
    let mut waits = Vec::with_capacity(n_batches);
    for taken in 0..n_batches as u32 {
        let due = start + every * taken;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        next()?;
        waits.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let border = (rows / BATCH) as usize;
    let near = waits.iter().skip(border.saturating_sub(64)).take(128);
    let near = near.copied().fold(0.0, f64::max);
    waits.sort_by(f64::total_cmp);
    Ok(json!({
        "first_secs": first_secs,
        "longest_ms": waits.last(),
        "longest_near_border_ms": near,
        "median_ms": waits.get(waits.len() / 2),
        "batches": waits.len(),
        "secs": start.elapsed().as_secs_f64(),
    }))
}
