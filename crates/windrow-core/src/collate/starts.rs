//! Where documents start within a row, and how far before it.

use std::ops::Range;

use memchr::memchr_iter;

use super::Sample;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::record::{Decode, Piece, Span, Values};
use crate::source::Source;
use crate::values::copy_span;

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

/// Marks what comes after each `eos` among `ids`: `out` begins one place later than they do.
pub(super) fn mark_after(ids: &[i64], eos: i64, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(ids: &[i64], eos: i64, out: &mut [u8]) {
            mark_after_here(ids, eos, out);
        }
        // SAFETY: the processor has AVX2, as was asked the line before.
        return unsafe { wide(ids, eos, out) };
    }
    mark_after_here(ids, eos, out);
}

// Compiled twice: for any processor, and for those that compare four IDs at once.
#[inline(always)]
fn mark_after_here(ids: &[i64], eos: i64, out: &mut [u8]) {
    // Most have none, and are only looked through.
    for (ids, starts) in ids.chunks(64).zip(out.chunks_mut(64)) {
        if ids.iter().fold(false, |is_there, id| is_there | (*id == eos)) {
            starts.iter_mut().zip(ids).for_each(|(start, id)| *start |= u8::from(*id == eos));
        }
    }
}

/// Values that are gone through at a time for where a document began.
const BACK: u64 = 1 << 14;
/// The furthest that a document is followed back to where it began.
const MOST_BACK: u64 = 1 << 27;

/// How many values of the document that a sample begins in come before the sample. Documents are records, end with `eos`, or start
/// where stored numbers say so.
///
/// # Errors
/// `Config` where none starts among the last 2^27 values; what reading them says.
pub(super) fn values_before(sample: &Sample<'_>, eos: Option<i64>, scratch: &mut Vec<u8>) -> Result<u64> {
    let Some(Piece::Read(Span { record, start, .. })) = sample.pieces.first() else { return Ok(0) };
    let (record, start) = (*record, *start);
    if start == 0 {
        return Ok(0);
    }
    let last = sample.source.read(Span { record, start: start - 1, len: 1 }, scratch)?;
    if eos.is_none() && !matches!(last.decode, Decode::Shift { .. }) {
        return Ok(start);
    }
    let mut end = start;
    while end > 0 && start - end < MOST_BACK {
        let from = end.saturating_sub(BACK);
        if let Some(at) =
            last_start(sample.source, eos, Span { record, start: from, len: end - from }, scratch)?
        {
            return Ok(start - at);
        }
        end = from;
    }
    match end {
        0 => Ok(start),
        _ => Err(Error::config(format!(
            "no document begins in the {MOST_BACK} values before value {start}: their positions are not known"
        ))
        .record(record)
        .hint("count positions from the start of the block, or check eos")),
    }
}

// The last value of a span, or the one after it, with which a document starts.
fn last_start(
    source: &dyn Source,
    eos: Option<i64>,
    span: Span,
    scratch: &mut Vec<u8>,
) -> Result<Option<u64>> {
    let values = source.read(span, scratch)?;
    let mut starts = vec![0; span.len as usize + 1];
    mark_starts(&values, span, &mut starts[..span.len as usize]);
    if let Some(eos) = eos {
        let mut ids = vec![0i64; span.len as usize];
        copy_span(&span, &values, 0, bytemuck::cast_slice_mut(&mut ids), DType::I64)?;
        mark_after(&ids, eos, &mut starts[1..]);
    }
    Ok(starts.iter().rposition(|start| *start == 1).map(|at| span.start + at as u64))
}
