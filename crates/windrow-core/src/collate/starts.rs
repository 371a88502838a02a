//! Where documents start within a row.

use std::ops::Range;

use memchr::memchr_iter;

use crate::record::{Decode, Span, Values};

/// The row cut where documents start; nothing before a start at its beginning.
pub(super) fn runs(starts: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let ends = memchr_iter(1, starts).skip_while(|start| *start == 0).chain([starts.len()]);
    ends.scan(0, |from, end| {
        let run = *from..end;
        *from = end;
        Some(run)
    })
}

/// Writes 1 where a document starts, by the stored numbers' bit 0 (flat-tokens) or with the record, and 0 elsewhere.
pub(super) fn mark_starts(values: &Values<'_>, span: Span, out: &mut [u8]) {
    match values.decode {
        Decode::Shift { .. } => {
            let width = values.element.size();
            // The byte that holds bit 0.
            let low = if values.element.big_endian { width - 1 } else { 0 };
            // Of a width that the compiler knows it makes a vector loop, and flat-tokens have this one. Whole numbers
            // are narrowed many at a time; their low bytes alone would be gathered one by one.
            if (width, low) == (4, 0) {
                for (start, stored) in out.iter_mut().zip(values.bytes.as_chunks::<4>().0) {
                    *start = (u32::from_le_bytes(*stored) & 1) as u8;
                }
                return;
            }
            for (start, stored) in out.iter_mut().zip(values.bytes.chunks_exact(width)) {
                *start = stored[low] & 1;
            }
        }
        _ => {
            out.fill(0);
            if let (Some(first), 0) = (out.first_mut(), span.start) {
                *first = 1;
            }
        }
    }
}
