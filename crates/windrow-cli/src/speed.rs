//! How fast a loader feeds here, beside the plain copy of as many bytes.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use windrow::{Loader, Next, Result};

use crate::interrupt::Interrupt;

/// What a loader did in a while.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Speed {
    /// Seconds measured.
    pub(crate) seconds: f64,
    /// Batches a second.
    pub(crate) batches: f64,
    /// Rows a second.
    pub(crate) samples: f64,
    /// Model inputs a second.
    pub(crate) positions: f64,
    /// Bytes of tensors a second.
    pub(crate) bytes: f64,
    /// Bytes of one batch.
    pub(crate) batch_bytes: u64,
    /// Threads that laid batches.
    pub(crate) threads: usize,
}

/// Takes batches for `seconds`, after a first one that starts the threads; ends with the loader's last batch.
pub(crate) fn feed(loader: &mut Loader, seconds: f64, interrupt: &Interrupt) -> Result<Speed> {
    let positions: u64 = loader.plan().feeds().first().map_or(0, |f| f.view().positions());
    take(loader, interrupt)?;
    let first = loader.stats();
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds && take(loader, interrupt)? {}
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

/// Bytes a second of `threads` that each copy `size` bytes again and again: what memory gives here.
pub(crate) fn copying(size: u64, threads: usize, seconds: f64) -> f64 {
    let size = usize::try_from(size).unwrap_or(1 << 20).clamp(1, 1 << 28);
    let copied: u64 = thread::scope(|scope| {
        let copiers: Vec<_> =
            (0..threads.max(1)).map(|_| scope.spawn(move || copy_for(size, seconds))).collect();
        copiers.into_iter().map(|c| c.join().unwrap_or(0)).sum()
    });
    copied as f64 / seconds
}

fn copy_for(size: usize, seconds: f64) -> u64 {
    let from = vec![1u8; size];
    let mut to = vec![0u8; size];
    let mut copied = 0;
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        copied += size as u64;
    }
    copied
}

fn take(loader: &mut Loader, interrupt: &Interrupt) -> Result<bool> {
    loop {
        interrupt.check()?;
        match loader.next_within(Duration::from_millis(100))? {
            Next::Batch(_) => return Ok(true),
            Next::End => return Ok(false),
            Next::NotYet => {}
        }
    }
}
