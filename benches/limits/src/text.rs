//! Text into ids, by a tokenizer and nothing else.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use splintr::{AnyTokenizer, Backend};

use crate::{Fallible, map};

// The texts of a file, held in memory.
fn texts(file: &str) -> Fallible<Vec<String>> {
    let map = map(file)?;
    map.split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let value: Value = serde_json::from_slice(line)?;
            Ok(value["text"].as_str().unwrap_or_default().to_string())
        })
        .collect()
}

// Encoded by the library's own call for many texts, as many at a time as are said.
pub(crate) fn encode_batch(file: &str, tokenizer: &str, threads: usize, at_once: usize) -> Fallible<Value> {
    let texts = texts(file)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let (tokenizer, load_secs) = load(tokenizer)?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let start = Instant::now();
    let ids: usize = pool.install(|| {
        let batches = texts.chunks(at_once.max(1)).map(|texts| tokenizer.encode_batch(texts));
        batches.map(|batch| batch.iter().map(Vec::len).sum::<usize>()).sum()
    });
    let secs = start.elapsed().as_secs_f64();
    Ok(json!({ "bytes": bytes, "ids": ids, "secs": secs, "load_secs": load_secs }))
}

// Encoded by the library, by threads that take the next text and keep nothing: with one tokenizer between them, or one each.
pub(crate) fn encode(file: &str, tokenizer: &str, threads: usize, own: bool) -> Fallible<Value> {
    let texts = texts(file)?;
    let (tokenizer, load_secs) = load(tokenizer)?;
    let Backend::Bpe(tokenizer) = tokenizer.into_backend() else {
        return Err("not a byte-pair vocabulary".into());
    };
    let bytes: usize = texts.iter().map(String::len).sum();
    let (next, ids) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| -> Fallible<()> {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let of_thread = own.then(|| tokenizer.clone());
                    let tokenizer = of_thread.as_ref().unwrap_or(&tokenizer);
                    while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                        let found = tokenizer.encode_ordinary(text);
                        ids.fetch_add(found.len() as u64, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| "an encoding thread panicked")?;
        }
        Ok(())
    })?;
    let secs = start.elapsed().as_secs_f64();
    Ok(json!({ "bytes": bytes, "ids": ids.load(Ordering::Relaxed), "secs": secs, "load_secs": load_secs }))
}

// The tokenizer, and how long that took.
fn load(tokenizer: &str) -> Fallible<(AnyTokenizer, f64)> {
    let start = Instant::now();
    let loaded = if Path::new(tokenizer).is_file() {
        splintr::from_json_path(tokenizer)?
    } else {
        splintr::from_pretrained(tokenizer)?
    };
    Ok((loaded, start.elapsed().as_secs_f64()))
}
