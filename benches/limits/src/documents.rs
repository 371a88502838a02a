//! Documents in raw tokens: where each ends.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{Fallible, map};

// A byte, looked for by memchr in as many parts as there are threads.
pub(crate) fn bytes(file: &str, byte: u8, threads: usize) -> Fallible<Value> {
    let map = map(file)?;
    let start = Instant::now();
    let part = map.len().div_ceil(threads).max(1);
    let found: usize = std::thread::scope(|scope| {
        let parts: Vec<_> =
            map.chunks(part).map(|part| scope.spawn(|| memchr::memchr_iter(byte, part).count())).collect();
        parts.into_iter().map(|part| part.join().unwrap_or_default()).sum()
    });
    Ok(json!({ "found": found, "bytes": map.len(), "secs": start.elapsed().as_secs_f64() }))
}

// Ids that windrow cuts into documents: all that opening does, and the table of their ends that it keeps.
pub(crate) fn documents(file: &str, dtype: &str, eos: i64) -> Fallible<Value> {
    let options = windrow::format::Options {
        format: Some("tokens".into()),
        dtype: Some(windrow::DType::parse(dtype)?),
        document_eos: Some(eos),
        ..Default::default()
    };
    let bytes = std::fs::metadata(file)?.len();
    let start = Instant::now();
    let documents = windrow::open_with(file, &options)?.len();
    Ok(json!({ "documents": documents, "bytes": bytes, "secs": start.elapsed().as_secs_f64() }))
}
