//! Text into ids, by a tokenizer and nothing else.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::{Fallible, map};

// Texts held in memory, encoded by threads that take the next one: with one tokenizer between them, or one each.
pub(crate) fn encode(file: &str, tokenizer: &str, threads: usize, own: bool) -> Fallible<Value> {
    #[derive(Debug)]
    struct Texts(Vec<String>);
    let map = map(file)?;
    let mut texts = Texts(Vec::new());
    for line in map.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let value: Value = serde_json::from_slice(line)?;
        texts.0.push(value["text"].as_str().map_or(Cow::Borrowed(""), Cow::Borrowed).into_owned());
    }
    let loading = Instant::now();
    let tokenizer = windrow::text::Tokenizer::load(tokenizer)?;
    let load_secs = loading.elapsed().as_secs_f64();
    let bytes: usize = texts.0.iter().map(String::len).sum();
    let (next, ids) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| -> Fallible<()> {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| -> windrow::Result<()> {
                    let of_thread = own.then(|| tokenizer.clone());
                    let tokenizer = of_thread.as_ref().unwrap_or(&tokenizer);
                    let mut out = Vec::new();
                    while let Some(text) = texts.0.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                        out.clear();
                        tokenizer.encode(text, &mut out)?;
                        ids.fetch_add(out.len() as u64, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| "an encoding thread panicked")??;
        }
        Ok(())
    })?;
    let secs = start.elapsed().as_secs_f64();
    Ok(
        json!({ "bytes": bytes, "ids": ids.load(Ordering::Relaxed), "secs": secs, "load_secs": load_secs, "backend": tokenizer.backend() }),
    )
}
