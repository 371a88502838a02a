//! Rows of packed documents: the bytes of a batch, written without looking for borders.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::tokens::lay;
use crate::{Fallible, map, mix};

// Random blocks of u16 as int64 inputs and labels, and what keeps documents of `document` tokens apart as int32: positions,
// numbers of documents, their ends and the longest. A label after a document's last token is -100.
pub(crate) fn rows(
    file: &str,
    length: usize,
    batch: usize,
    document: usize,
    threads: usize,
    secs: f64,
) -> Fallible<Value> {
    let map = map(file)?;
    let n_blocks = (map.len() / 2 - 1) / length;
    let rows = AtomicU64::new(0);
    let (start, until) = (Instant::now(), Instant::now() + Duration::from_secs_f64(secs));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (map, rows) = (&map, &rows);
            scope.spawn(move || {
                let mut inputs = vec![0i64; batch * length];
                let mut labels = vec![0i64; batch * length];
                let mut positions = vec![0i32; batch * length];
                let mut segments = vec![0i32; batch * length];
                let mut ends = vec![0i32; batch * (length + 1)];
                let mut longest = vec![0i32; batch];
                let mut counter = (thread as u64) << 40;
                while Instant::now() < until {
                    for row in 0..batch {
                        counter += 1;
                        let drawn = mix(counter);
                        let block = (drawn % n_blocks as u64) as usize * length * 2;
                        let bytes = &map[block..block + (length + 1) * 2];
                        let at = row * length..(row + 1) * length;
                        lay(&bytes[..length * 2], &mut inputs[at.clone()]);
                        let labels = &mut labels[at.clone()];
                        lay(&bytes[2..], labels);
                        // The first document begins before the row.
                        let mut from = 0;
                        let mut to = (drawn >> 32) as usize % document + 1;
                        let mut segment = 0;
                        let ends = &mut ends[row * (length + 1)..(row + 1) * (length + 1)];
                        let (positions, segments) = (&mut positions[at.clone()], &mut segments[at]);
                        ends[0] = 0;
                        while from < length {
                            to = to.min(length);
                            positions[from..to].iter_mut().zip(0..).for_each(|(place, at)| *place = at);
                            segments[from..to].fill(segment);
                            if to < length {
                                labels[to - 1] = -100;
                            }
                            segment += 1;
                            ends[segment as usize] = to as i32;
                            longest[row] = longest[row].max((to - from) as i32);
                            (from, to) = (to, to + document);
                        }
                        ends[segment as usize..].fill(length as i32);
                    }
                    black_box((
                        &mut inputs,
                        &mut labels,
                        &mut positions,
                        &mut segments,
                        &mut ends,
                        &mut longest,
                    ));
                    rows.fetch_add(batch as u64, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(json!({ "samples": rows.load(Ordering::Relaxed), "secs": start.elapsed().as_secs_f64() }))
}
