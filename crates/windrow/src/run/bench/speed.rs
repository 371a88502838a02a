//! How fast a loader feeds here, beside the plain copy of as many bytes.

use std::time::{Duration, Instant};

use serde::Serialize;
use windrow_core::loader::{Loader, Next};
use windrow_core::threads::beside;
use windrow_core::{Error, Kind, Result};

/// What a loader did in a while.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// Seconds measured.
    pub seconds: f64,
    /// Batches a second.
    pub batches: f64,
    /// Rows a second.
    pub samples: f64,
    /// Model inputs a second.
    pub positions: f64,
    /// Bytes of tensors and values a second.
    pub bytes: f64,
    /// Bytes of one batch.
    pub batch_bytes: u64,
    /// Threads that assembled batches.
    pub threads: usize,
}

/// Takes batches for `seconds`, after a first one that starts the threads; ends with the loader's last batch. `stop` is asked
/// before each.
///
/// # Errors
/// `Interrupted` once `stop` says so; what reading says.
pub fn feed(loader: &mut Loader, seconds: f64, stop: &dyn Fn() -> bool) -> Result<Speed> {
    let positions: u64 = loader.plan().feeds().first().map_or(0, |f| f.view().positions());
    take(loader, stop)?;
    let first = loader.stats();
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds && take(loader, stop)? {}
    let took = started.elapsed().as_secs_f64();
    let last = loader.stats();
    let per_second = |n: u64| n as f64 / took;
    Ok(Speed {
        seconds: took,
        batches: per_second(last.batches - first.batches),
        samples: per_second(last.samples - first.samples),
        positions: per_second((last.samples - first.samples).saturating_mul(positions)),
        bytes: per_second(last.bytes - first.bytes),
        batch_bytes: last.bytes / last.batches.max(1),
        threads: last.threads,
    })
}

/// Bytes a second of `threads` that each copy `data` bytes in pieces of `batch`, again and again, into as many batches
/// as a loader keeps: what memory and its caches give here for the same work without any thought.
pub fn copying(data: u64, batch: u64, threads: usize, seconds: f64) -> f64 {
    let batch = usize::try_from(batch).unwrap_or(MOST_COPIED).clamp(1, MOST_COPIED);
    let data = usize::try_from(data).unwrap_or(MOST_COPIED).clamp(batch, MOST_COPIED);
    let copy = || copy_for(data, batch, seconds);
    let copied: u64 = beside(threads, copy, copy).into_iter().sum();
    copied as f64 / seconds
}

const MOST_COPIED: usize = 64 << 20;
const BATCHES: usize = 8;

fn copy_for(data: usize, batch: usize, seconds: f64) -> u64 {
    let from = vec![1u8; data];
    let mut to = vec![vec![0u8; batch]; BATCHES];
    let mut copied = 0;
    let started = Instant::now();
    for (piece, next) in (0..data / batch).cycle().zip((0..BATCHES).cycle()) {
        to[next].copy_from_slice(std::hint::black_box(&from[piece * batch..][..batch]));
        std::hint::black_box(&mut to[next]);
        copied += batch as u64;
        if started.elapsed().as_secs_f64() >= seconds {
            break;
        }
    }
    copied
}

fn take(loader: &mut Loader, stop: &dyn Fn() -> bool) -> Result<bool> {
    loop {
        if stop() {
            return Err(Error::new(Kind::Interrupted, "interrupted").hint("it can be run again"));
        }
        match loader.next_within(Duration::from_millis(100))? {
            Next::Batch(_) | Next::Unfinished(..) => return Ok(true),
            Next::End => return Ok(false),
            Next::NotYet => {}
        }
    }
}
