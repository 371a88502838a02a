//! Rows of packed documents: the bytes of a batch, written without looking for borders.

use std::hint::black_box;

use serde_json::Value;

use crate::tokens::widen_row;
use crate::{Fallible, map, mix, rows_in_threads};

// Random blocks of u16 as int64 inputs and labels, and what keeps documents of `document` tokens apart as int32: positions,
// numbers of documents, their ends and the longest. A label after a document's last token is -100.
pub(crate) fn rows(
    file: &str,
    length: usize,
    batch: usize,
    document: usize,
    threads: usize,
    secs: f64,
) -> Fallible<Value> {
    let map = map(file)?;
    let n_blocks = (map.len() / 2 - 1) / length;
    let map = &map;
    Ok(rows_in_threads(threads, batch, secs, || {
        let mut inputs = vec![0i64; batch * length];
        let mut labels = vec![0i64; batch * length];
        let mut positions = vec![0i32; batch * length];
        let mut segments = vec![0i32; batch * length];
        let mut ends = vec![0i32; batch * (length + 1)];
        let mut longest = vec![0i32; batch];
        move |numbers| {
            for (row, number) in numbers.enumerate() {
                let drawn = mix(number);
                let block = (drawn % n_blocks as u64) as usize * length * 2;
                let bytes = &map[block..block + (length + 1) * 2];
                let at = row * length..(row + 1) * length;
                widen_row(&bytes[..length * 2], &mut inputs[at.clone()]);
                let labels = &mut labels[at.clone()];
                widen_row(&bytes[2..], labels);
                let ends = &mut ends[row * (length + 1)..(row + 1) * (length + 1)];
                let (positions, segments) = (&mut positions[at.clone()], &mut segments[at]);
                // The first document begins before the row.
                let (mut from, mut to, mut segment) = (0, (drawn >> 32) as usize % document + 1, 0);
                ends[0] = 0;
                longest[row] = 0;
                while from < length {
                    to = to.min(length);
                    positions[from..to].iter_mut().zip(0..).for_each(|(place, at)| *place = at);
                    segments[from..to].fill(segment);
                    if to < length {
                        labels[to - 1] = -100;
                    }
                    segment += 1;
                    ends[segment as usize] = to as i32;
                    longest[row] = longest[row].max((to - from) as i32);
                    (from, to) = (to, to + document);
                }
                ends[segment as usize..].fill(length as i32);
            }
            black_box((&mut inputs, &mut labels, &mut positions, &mut segments, &mut ends, &mut longest));
        }
    }))
}
