//! What the machine can do with the same bytes: the denominators of the benchmarks, and windrow's Rust side where a
//! benchmark asks for it. Each command prints one JSON object.

use std::borrow::Cow;
use std::fs::File;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const USAGE: &str = "windrow-limits widen|memcpy|batches FILE LENGTH BATCH THREADS SECONDS
windrow-limits windows FILE SERIES CONTEXT STRIDE BATCH THREADS SECONDS
windrow-limits fill SIZE THREADS SECONDS | bytes FILE BYTE THREADS | documents FILE DTYPE EOS
windrow-limits newlines FILE | parse FILE SECONDS | records FOLDER SECONDS | encode FILE TOKENIZER THREADS [own]";

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let found = match args[..] {
        ["widen", file, length, batch, threads, secs] => {
            blocks(file, length.parse()?, batch.parse()?, threads.parse()?, secs.parse()?, true)?
        }
        ["memcpy", file, length, batch, threads, secs] => {
            blocks(file, length.parse()?, batch.parse()?, threads.parse()?, secs.parse()?, false)?
        }
        ["batches", file, length, batch, threads, secs] => {
            batches(file, length.parse()?, batch.parse()?, threads.parse()?, secs.parse()?)?
        }
        ["windows", file, series, context, stride, batch, threads, secs] => windows(
            file,
            series.parse()?,
            context.parse()?,
            stride.parse()?,
            batch.parse()?,
            threads.parse()?,
            secs.parse()?,
        )?,
        ["fill", size, threads, secs] => fill(size.parse()?, threads.parse()?, secs.parse()?)?,
        ["bytes", file, byte, threads] => bytes(file, byte.parse()?, threads.parse()?)?,
        ["documents", file, dtype, eos] => documents(file, dtype, eos.parse()?)?,
        ["newlines", file] => newlines(file)?,
        ["parse", file, secs] => parse(file, secs.parse()?)?,
        ["records", folder, secs] => records(folder, secs.parse()?)?,
        ["encode", file, tokenizer, threads] => encode(file, tokenizer, threads.parse()?, false)?,
        ["encode", file, tokenizer, threads, "own"] => encode(file, tokenizer, threads.parse()?, true)?,
        _ => return Err(USAGE.into()),
    };
    let mut out = std::io::stdout().lock();
    std::io::Write::write_all(&mut out, format!("{found}\n").as_bytes())?;
    Ok(())
}

fn map(file: &str) -> Fallible<memmap2::Mmap> {
    // SAFETY: a benchmark's own file, which nothing truncates while it runs.
    Ok(unsafe { memmap2::Mmap::map(&File::open(file)?) }?)
}

// A number for each counter: splitmix64.
// Writes as many bytes as a batch has, again and again into one buffer per thread: what laying it costs at least.
fn fill(size: usize, threads: usize, secs: f64) -> Fallible<Value> {
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

fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

// Random blocks of u16, laid as int64 inputs and labels (`widen`) or copied as they are (`memcpy`) into one buffer that
// each thread uses again: the same bytes in and out as a batch of `input_ids` and `labels`, without order, queue or
// hand-over.
fn blocks(
    file: &str,
    length: usize,
    batch: usize,
    threads: usize,
    secs: f64,
    widen: bool,
) -> Fallible<Value> {
    let map = map(file)?;
    let n_blocks = (map.len() / 2 - 1) / length;
    let rows = AtomicU64::new(0);
    let until = Instant::now() + Duration::from_secs_f64(secs);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (map, rows) = (&map, &rows);
            scope.spawn(move || {
                let mut inputs = vec![0i64; batch * length];
                let mut labels = vec![0i64; batch * length];
                let mut counter = (thread as u64) << 40;
                while Instant::now() < until {
                    for row in 0..batch {
                        counter += 1;
                        let block = (mix(counter) % n_blocks as u64) as usize * length * 2;
                        let bytes = &map[block..block + (length + 1) * 2];
                        let at = row * length..(row + 1) * length;
                        if widen {
                            lay(&bytes[..length * 2], &mut inputs[at.clone()]);
                            lay(&bytes[2..], &mut labels[at]);
                        } else {
                            let inputs = bytes_of(&mut inputs);
                            inputs[row * length * 2..(row + 1) * length * 2]
                                .copy_from_slice(&bytes[..length * 2]);
                        }
                    }
                    black_box((&mut inputs, &mut labels));
                    rows.fetch_add(batch as u64, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(json!({ "samples": rows.load(Ordering::Relaxed), "secs": start.elapsed().as_secs_f64() }))
}

// The same rows by windrow's loader, in Rust: what stands beside `widen`.
fn batches(file: &str, length: u64, batch: u64, threads: usize, secs: f64) -> Fallible<Value> {
    let options = windrow::format::Options {
        format: Some("tokens".into()),
        dtype: Some(windrow::DType::U16),
        ..Default::default()
    };
    let view = windrow::open_with(file, &options)?.pack(length)?;
    let mut loader = view.loader().batch_size(batch).threads(Some(threads)).build()?;
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    let mut rows = 0;
    while start.elapsed() < until {
        let batch = loader.next_batch().ok_or("an endless loader ended")??;
        rows += black_box(&batch).rows() as u64;
    }
    Ok(json!({ "samples": rows, "secs": start.elapsed().as_secs_f64() }))
}

fn lay(bytes: &[u8], out: &mut [i64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(bytes: &[u8], out: &mut [i64]) {
            lay_here(bytes, out);
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide(bytes, out) };
    }
    lay_here(bytes, out);
}

#[inline(always)]
fn lay_here(bytes: &[u8], out: &mut [i64]) {
    for (place, chunk) in out.iter_mut().zip(bytes.chunks_exact(2)) {
        *place = i64::from(u16::from_le_bytes([chunk[0], chunk[1]]));
    }
}

fn bytes_of(numbers: &mut [i64]) -> &mut [u8] {
    // SAFETY: i64 has no padding and every byte pattern is one; the slice covers exactly the same memory.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}

// Random windows of float32 series of one length, scaled by the series' mean and deviation as they are copied into
// inputs, labels and a mask of ones: the same bytes in and out as a batch, without order, queue or hand-over.
fn windows(
    file: &str,
    n_series: usize,
    context: usize,
    stride: usize,
    batch: usize,
    threads: usize,
    secs: f64,
) -> Fallible<Value> {
    let map = map(file)?;
    let length = map.len() / 4 / n_series;
    let per_series = 1 + (length - context - 1) / stride;
    let scales: Vec<(f32, f32)> = map
        .chunks_exact(4 * length)
        .map(|series| {
            let numbers = || series.as_chunks().0.iter().map(|x| f64::from(f32::from_le_bytes(*x)));
            let mean = numbers().sum::<f64>() / length as f64;
            let variance = numbers().map(|x| (x - mean) * (x - mean)).sum::<f64>() / length as f64;
            (mean as f32, variance.sqrt() as f32)
        })
        .collect();
    let rows = AtomicU64::new(0);
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (map, rows, scales) = (&map, &rows, &scales);
            scope.spawn(move || {
                let mut inputs = vec![0f32; batch * context];
                let mut labels = vec![0f32; batch * context];
                let mut masks = vec![0i32; batch * context];
                let mut counter = (thread as u64) << 40;
                while start.elapsed() < until {
                    for row in 0..batch {
                        counter += 1;
                        let window = (mix(counter) % (n_series * per_series) as u64) as usize;
                        let (series, k) = (window / per_series, window % per_series);
                        let bytes = &map[4 * (series * length + k * stride)..][..4 * (context + 1)];
                        let at = row * context..(row + 1) * context;
                        scale(&bytes[..4 * context], &mut inputs[at.clone()], scales[series]);
                        scale(&bytes[4..], &mut labels[at.clone()], scales[series]);
                        masks[at].fill(1);
                    }
                    black_box((&mut inputs, &mut labels, &mut masks));
                    rows.fetch_add(batch as u64, Ordering::Relaxed);
                }
            });
        }
    });
    Ok(json!({ "samples": rows.load(Ordering::Relaxed), "secs": start.elapsed().as_secs_f64() }))
}

fn scale(bytes: &[u8], out: &mut [f32], (mean, deviation): (f32, f32)) {
    #[inline(always)]
    fn here(bytes: &[u8], out: &mut [f32], mean: f32, deviation: f32) {
        for (place, x) in out.iter_mut().zip(bytes.as_chunks().0) {
            *place = (f32::from_le_bytes(*x) - mean) / deviation;
        }
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(bytes: &[u8], out: &mut [f32], mean: f32, deviation: f32) {
            here(bytes, out, mean, deviation);
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide(bytes, out, mean, deviation) };
    }
    here(bytes, out, mean, deviation);
}

// A byte, looked for by memchr in as many parts as there are threads.
fn bytes(file: &str, byte: u8, threads: usize) -> Fallible<Value> {
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
fn documents(file: &str, dtype: &str, eos: i64) -> Fallible<Value> {
    let options = windrow::format::Options {
        format: Some("tokens".into()),
        dtype: Some(windrow::DType::parse(dtype)?),
        eos: Some(eos),
        ..Default::default()
    };
    let bytes = std::fs::metadata(file)?.len();
    let start = Instant::now();
    let documents = windrow::open_with(file, &options)?.len();
    Ok(json!({ "documents": documents, "bytes": bytes, "secs": start.elapsed().as_secs_f64() }))
}

fn newlines(file: &str) -> Fallible<Value> {
    let map = map(file)?;
    let start = Instant::now();
    let lines = memchr::memchr_iter(b'\n', &map).count();
    Ok(json!({ "lines": lines, "bytes": map.len(), "secs": start.elapsed().as_secs_f64() }))
}

// Lines at random, parsed whole.
fn parse(file: &str, secs: f64) -> Fallible<Value> {
    let map = map(file)?;
    let mut starts = vec![0usize];
    starts.extend(memchr::memchr_iter(b'\n', &map).map(|i| i + 1));
    let lines = starts.len() as u64 - 1;
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    let mut records = 0u64;
    while start.elapsed() < until {
        for _ in 0..100 {
            records += 1;
            let line = (mix(records) % lines) as usize;
            let value: Value = serde_json::from_slice(&map[starts[line]..starts[line + 1]])?;
            black_box(value);
        }
    }
    Ok(json!({ "records": records, "secs": start.elapsed().as_secs_f64() }))
}

// The same records by windrow, in Rust: what stands beside `parse`.
fn records(folder: &str, secs: f64) -> Fallible<Value> {
    let data = windrow::open(folder)?;
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    let mut records = 0u64;
    while start.elapsed() < until {
        for _ in 0..100 {
            records += 1;
            black_box(data.json(mix(records) % data.len())?);
        }
    }
    Ok(json!({ "records": records, "secs": start.elapsed().as_secs_f64() }))
}

// Texts held in memory, encoded by threads that take the next one: with one tokenizer between them, or one each.
fn encode(file: &str, tokenizer: &str, threads: usize, own: bool) -> Fallible<Value> {
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
