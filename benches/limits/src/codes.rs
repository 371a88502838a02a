//! As many bytes as a batch of audio codes has.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Fallible;

// Writes as many bytes as a batch has, again and again into one buffer per thread: what assembling it costs at least.
pub(crate) fn fill(size: usize, threads: usize, secs: f64) -> Fallible<Value> {
    let batches = AtomicU64::new(0);
    let until = Instant::now() + Duration::from_secs_f64(secs);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut buffer = vec![0u8; size];
                let mut byte = 0u8;
                while Instant::now() < until {
                    byte = byte.wrapping_add(1);
                    buffer.fill(byte);
                    black_box(&mut buffer);
                    batches.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(json!({ "batches": batches.load(Ordering::Relaxed), "secs": start.elapsed().as_secs_f64() }))
}
