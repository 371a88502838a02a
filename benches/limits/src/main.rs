//! What the machine can do with the same bytes: the denominators of the benchmarks, and windrow's Rust side where a
//! benchmark asks for it. Each command prints one JSON object.

mod chosen;
mod codes;
mod documents;
mod made;
mod order;
mod packs;
mod pauses;
mod records;
mod series;
mod text;
mod tokens;

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "windrow-limits widen|memcpy|batches FILE LENGTH BATCH THREADS SECONDS
windrow-limits packs FILE LENGTH BATCH DOCUMENT THREADS SECONDS
windrow-limits windows FILE SERIES CONTEXT STRIDE BATCH THREADS SECONDS
windrow-limits fill SIZE THREADS SECONDS | bytes FILE BYTE THREADS | documents FILE DTYPE EOS
windrow-limits order DOCUMENTS LENGTH THREADS SAMPLES | chosen DOCUMENTS LENGTH THREADS SECONDS TURNS
windrow-limits pauses DOCUMENTS LENGTH THREADS ROWS ROWS_PER_SECOND
windrow-limits newlines FILE | parse FILE SECONDS | records FOLDER SECONDS | encode FILE TOKENIZER THREADS [own]
windrow-limits encode-batch FILE TOKENIZER THREADS TEXTS";

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let found = match args[..] {
        ["widen", file, length, batch, threads, secs] => {
            tokens::blocks(file, length.parse()?, batch.parse()?, threads.parse()?, secs.parse()?, true)?
        }
        ["memcpy", file, length, batch, threads, secs] => {
            tokens::blocks(file, length.parse()?, batch.parse()?, threads.parse()?, secs.parse()?, false)?
        }
        ["batches", file, length, batch, threads, secs] => {
            tokens::batches(file, length.parse()?, batch.parse()?, threads.parse()?, secs.parse()?)?
        }
        ["packs", file, length, batch, document, threads, secs] => packs::rows(
            file,
            length.parse()?,
            batch.parse()?,
            document.parse()?,
            threads.parse()?,
            secs.parse()?,
        )?,
        ["windows", file, series, context, stride, batch, threads, secs] => series::windows(
            file,
            series.parse()?,
            context.parse()?,
            stride.parse()?,
            batch.parse()?,
            threads.parse()?,
            secs.parse()?,
        )?,
        ["fill", size, threads, secs] => codes::fill(size.parse()?, threads.parse()?, secs.parse()?)?,
        ["bytes", file, byte, threads] => documents::bytes(file, byte.parse()?, threads.parse()?)?,
        ["documents", file, dtype, eos] => documents::documents(file, dtype, eos.parse()?)?,
        ["order", documents, length, threads, samples] => {
            order::views(documents.parse()?, length.parse()?, threads.parse()?, samples.parse()?)?
        }
        ["chosen", documents, length, threads, secs, turns] => chosen::tenth(
            documents.parse()?,
            length.parse()?,
            threads.parse()?,
            secs.parse()?,
            turns.parse()?,
        )?,
        ["pauses", documents, length, threads, rows, rate] => pauses::longest(
            documents.parse()?,
            length.parse()?,
            threads.parse()?,
            rows.parse()?,
            rate.parse()?,
        )?,
        ["newlines", file] => records::newlines(file)?,
        ["parse", file, secs] => records::parse(file, secs.parse()?)?,
        ["records", folder, secs] => records::records(folder, secs.parse()?)?,
        ["encode", file, tokenizer, threads] => text::encode(file, tokenizer, threads.parse()?, false)?,
        ["encode", file, tokenizer, threads, "own"] => text::encode(file, tokenizer, threads.parse()?, true)?,
        ["encode-batch", file, tokenizer, threads, texts] => {
            text::encode_batch(file, tokenizer, threads.parse()?, texts.parse()?)?
        }
        _ => return Err(USAGE.into()),
    };
    let mut out = std::io::stdout().lock();
    std::io::Write::write_all(&mut out, format!("{found}\n").as_bytes())?;
    Ok(())
}

/// Rows that threads assemble until the time is over: `begin` makes a thread's own memory and gives what fills a batch in it, told the
/// numbers of its rows.
fn rows_in_threads<F: FnMut(std::ops::Range<u64>)>(
    threads: usize,
    batch: usize,
    secs: f64,
    begin: impl Fn() -> F + Sync,
) -> serde_json::Value {
    let rows = AtomicU64::new(0);
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let (rows, begin) = (&rows, &begin);
            scope.spawn(move || {
                let mut fill = begin();
                let mut next = thread << 40;
                while start.elapsed() < until {
                    fill(next..next + batch as u64);
                    next += batch as u64;
                    rows.fetch_add(batch as u64, Ordering::Relaxed);
                }
            });
        }
    });
    serde_json::json!({ "samples": rows.load(Ordering::Relaxed), "secs": start.elapsed().as_secs_f64() })
}

fn map(file: &str) -> Fallible<memmap2::Mmap> {
    // SAFETY: a benchmark's own file, which nothing truncates while it runs.
    Ok(unsafe { memmap2::Mmap::map(&File::open(file)?) }?)
}

// A number for each counter: splitmix64.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
