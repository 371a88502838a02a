//! What the order of documents costs a view: the first sample of an epoch, memory, samples/s; no values are read.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use windrow::dev::view::{Pack, View};
use windrow::dev::{Pass, Piece};

use crate::made::Documents;
use crate::{Fallible, mix};

// Packs of `documents` documents, in their own order, reshuffled, and within scopes.
pub(crate) fn views(documents: u64, length: u64, threads: usize, samples: u64) -> Fallible<Value> {
    let lengths = Arc::new(Documents::new(documents));
    let plain = Pack::new(lengths.clone(), length, None)?;
    let of_plain = measured(&plain, threads, samples)?;
    drop(plain);
    let whole = measured(&Pack::reshuffled(lengths.clone(), length, None, true, None)?, threads, samples)?;
    let scoped = measured(&Pack::reshuffled(lengths, length, None, true, Some(1024))?, threads, samples)?;
    Ok(json!({ "pack": of_plain, "reshuffled": whole, "scope of 1,024": scoped }))
}

// Of two epochs the first sample, which all threads ask for, and samples/s at random places.
fn measured(view: &dyn View, threads: usize, samples: u64) -> Fallible<Value> {
    let mut epochs = Vec::new();
    for epoch in 0..2 {
        let pass = Pass { seed: 1, epoch, ..Pass::default() };
        let begun = Instant::now();
        in_threads(threads, |_| pieces(view, [0].into_iter(), pass))?;
        let first_secs = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let each = samples / threads as u64;
        in_threads(threads, |thread| {
            let numbers = thread as u64 * each..(thread as u64 + 1) * each;
            pieces(view, numbers.map(|number| mix(number) % view.len()), pass)
        })?;
        let per_sec = (each * threads as u64) as f64 / begun.elapsed().as_secs_f64();
        epochs.push(json!({ "first_secs": first_secs, "samples_per_sec": per_sec, "resident": resident() }));
    }
    Ok(epochs.into())
}

fn in_threads(threads: usize, work: impl Fn(usize) -> Fallible<()> + Sync) -> Fallible<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread has panicked".into())))
    })
}

fn pieces(view: &dyn View, samples: impl Iterator<Item = u64>, pass: Pass) -> Fallible<()> {
    let mut pieces: Vec<Piece> = Vec::new();
    for sample in samples {
        pieces.clear();
        view.pieces(sample, pass.draw(sample), &mut pieces)?;
        std::hint::black_box(&pieces);
    }
    Ok(())
}

// Bytes of this process in memory.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}
