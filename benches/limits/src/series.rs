//! Windows of time series, scaled.

use std::hint::black_box;

use serde_json::Value;

use crate::{Fallible, map, mix, rows_in_threads};

// Random windows of float32 series of one length, scaled by the series' mean and deviation as they are copied into
// inputs, labels and a mask of ones: the same bytes in and out as a batch, without order, queue or hand-over.
pub(crate) fn windows(
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
    let (map, scales) = (&map, &scales);
    Ok(rows_in_threads(threads, batch, secs, || {
        let mut inputs = vec![0f32; batch * context];
        let mut labels = vec![0f32; batch * context];
        let mut masks = vec![0i32; batch * context];
        move |numbers| {
            for (row, number) in numbers.enumerate() {
                let window = (mix(number) % (n_series * per_series) as u64) as usize;
                let (series, k) = (window / per_series, window % per_series);
                let bytes = &map[4 * (series * length + k * stride)..][..4 * (context + 1)];
                let at = row * context..(row + 1) * context;
                scale(&bytes[..4 * context], &mut inputs[at.clone()], scales[series]);
                scale(&bytes[4..], &mut labels[at.clone()], scales[series]);
                masks[at].fill(1);
            }
            black_box((&mut inputs, &mut labels, &mut masks));
        }
    }))
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
