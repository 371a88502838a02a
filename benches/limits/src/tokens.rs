//! Rows of tokens: copied, widened, and by windrow's loader.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Fallible, map, mix, rows_in_threads};

// Random blocks of u16, widened to int64 inputs and labels (`widen`) or copied as they are (`memcpy`) into one buffer that
// each thread uses again: the same bytes in and out as a batch of `input_ids` and `labels`, without order, queue or
// hand-over.
pub(crate) fn blocks(
    file: &str,
    length: usize,
    batch: usize,
    threads: usize,
    secs: f64,
    widen: bool,
) -> Fallible<Value> {
    let map = map(file)?;
    let n_blocks = (map.len() / 2 - 1) / length;
    let map = &map;
    Ok(rows_in_threads(threads, batch, secs, || {
        let mut inputs = vec![0i64; batch * length];
        let mut labels = vec![0i64; batch * length];
        move |numbers| {
            for (row, number) in numbers.enumerate() {
                let block = (mix(number) % n_blocks as u64) as usize * length * 2;
                let bytes = &map[block..block + (length + 1) * 2];
                let at = row * length..(row + 1) * length;
                if widen {
                    widen_row(&bytes[..length * 2], &mut inputs[at.clone()]);
                    widen_row(&bytes[2..], &mut labels[at]);
                } else {
                    let inputs = bytes_of(&mut inputs);
                    inputs[row * length * 2..(row + 1) * length * 2].copy_from_slice(&bytes[..length * 2]);
                }
            }
            black_box((&mut inputs, &mut labels));
        }
    }))
}

// Rows by windrow's loader, in Rust: what `widen` is compared with.
pub(crate) fn batches(file: &str, length: u64, batch: u64, threads: usize, secs: f64) -> Fallible<Value> {
    let options = windrow::format::Options {
        format: Some("tokens".into()),
        dtype: Some(windrow::DType::U16),
        ..Default::default()
    };
    let view = windrow::open_with(file, &options)?.pack(length)?;
    let mut loader = view.loader().batch_size(batch).num_threads(Some(threads)).build()?;
    let (start, until) = (Instant::now(), Duration::from_secs_f64(secs));
    let mut rows = 0;
    while start.elapsed() < until {
        let batch = loader.next_batch().ok_or("an endless loader ended")??;
        rows += black_box(&batch).rows() as u64;
    }
    Ok(json!({ "samples": rows, "secs": start.elapsed().as_secs_f64() }))
}

pub(crate) fn widen_row(bytes: &[u8], out: &mut [i64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(bytes: &[u8], out: &mut [i64]) {
            widen_here(bytes, out);
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide(bytes, out) };
    }
    widen_here(bytes, out);
}

#[inline(always)]
fn widen_here(bytes: &[u8], out: &mut [i64]) {
    for (place, chunk) in out.iter_mut().zip(bytes.chunks_exact(2)) {
        *place = i64::from(u16::from_le_bytes([chunk[0], chunk[1]]));
    }
}

fn bytes_of(numbers: &mut [i64]) -> &mut [u8] {
    // SAFETY: i64 has no padding and every byte pattern is one; the slice covers exactly the same memory.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}
