//! Ranges of bytes: which become one request.

use std::ops::Range;

/// A gap that costs less than a request of its own: at 30 ms and 85 MB/s, 2.5 MB take as long.
pub(crate) const GAP: u64 = 1 << 20;
/// What is here between two parts that are not comes once more with them, up to this size.
pub(crate) const HERE: u64 = 64 << 10;
/// Where what is in a gap is not kept, there is at most one byte in gaps for this number of wanted bytes.
const IN_VAIN: u64 = 5;
/// No request asks for more, but for a rest of up to [`HERE`], which is not worth one of its own.
const LARGEST: u64 = 16 << 20;

/// Over which gaps ranges become one request.
#[derive(Clone, Copy)]
pub(crate) enum Gaps {
    /// Up to this size: what is in a gap is kept, and read later.
    UpTo(u64),
    /// Up to a fifth of what is wanted, and [`GAP`]: what is in a gap comes in vain.
    Few,
}

impl Gaps {
    fn has(self, gap: u64, in_vain: u64, wanted: u64) -> bool {
        match self {
            Gaps::UpTo(most) => gap <= most,
            Gaps::Few => gap <= GAP && in_vain + gap <= wanted / IN_VAIN,
        }
    }
}

/// Ranges in order, joined where they meet, and over gaps while they stay below [`LARGEST`].
pub(crate) fn joined(mut ranges: Vec<Range<u64>>, gaps: Gaps) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    // Of the last one: what is in its gaps, and what is not.
    let (mut in_vain, mut wanted) = (0, 0);
    for range in ranges {
        if let Some(last) = joined.last_mut() {
            let (gap, more) =
                (range.start.saturating_sub(last.end), range.end.saturating_sub(last.end.max(range.start)));
            let is_small = range.end.max(last.end) - last.start <= LARGEST;
            if gap == 0 || is_small && gaps.has(gap, in_vain, wanted + more) {
                last.end = last.end.max(range.end);
                (in_vain, wanted) = (in_vain + gap, wanted + more);
                continue;
            }
        }
        (in_vain, wanted) = (0, range.end - range.start);
        joined.push(range);
    }
    joined
}

/// A range in parts that one request may ask for.
pub(crate) fn in_parts(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let (start, end) = (range.start, range.end);
    // At least one part of what there is.
    let cut = (end - start).saturating_sub(HERE).max(u64::from(start < end));
    (0..cut.div_ceil(LARGEST)).map(move |part| {
        let at = start + part * LARGEST;
        at..if at + LARGEST + HERE >= end { end } else { at + LARGEST }
    })
}

/// Whether two ranges have a byte in common.
pub(crate) fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// What of a range lies outside of all others, in order.
pub(crate) fn subtract(range: Range<u64>, others: &[Range<u64>], out: &mut Vec<Range<u64>>) {
    let mut within: Vec<&Range<u64>> = others.iter().filter(|other| overlap(other, &range)).collect();
    within.sort_unstable_by_key(|other| other.start);
    let mut at = range.start;
    for other in within {
        if at < other.start {
            out.push(at..other.start);
        }
        at = at.max(other.end);
    }
    if at < range.end {
        out.push(at..range.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_one_request() {
        let joined = |ranges| super::joined(ranges, Gaps::UpTo(GAP));
        assert_eq!(joined(vec![5..6, 0..1, 3 << 20..4 << 20]), [0..6, 3 << 20..4 << 20]);
        assert_eq!(joined(vec![0..GAP, 2 * GAP..3 * GAP]), vec![0..3 * GAP]);
        let far: Vec<Range<u64>> = (0..20).map(|i| i * GAP..i * GAP + 1).collect();
        assert_eq!(joined(far), [0..15 * GAP + 1, 16 * GAP..19 * GAP + 1]);
        let long: Vec<Range<u64>> = (0..40).map(|i| i * GAP..(i + 1) * GAP + 4).collect();
        assert_eq!(joined(long), vec![0..40 * GAP + 4]);
    }

    #[test]
    fn what_comes_in_vain_is_a_fifth_at_most() {
        let joined = |ranges: Vec<Range<u64>>| super::joined(ranges, Gaps::Few);
        assert_eq!(joined(vec![0..50, 60..110, 131..140]), [0..110, 131..140]);
        assert_eq!(joined(vec![0..50, 71..110]), [0..50, 71..110]);
        // What overlaps is wanted once.
        assert_eq!(joined(vec![0..50, 10..40, 10..50, 61..62]), [0..50, 61..62]);
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..200 {
            let sizes: Vec<(u64, u64)> =
                (0..50).map(|_| (random.u64(1..5000), random.u64(0..3000))).collect();
            let mut at = 0;
            let mut ranges = Vec::new();
            for (size, gap) in sizes {
                ranges.push(at..at + size);
                at += size + gap;
            }
            let bytes =
                |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
            let asked = joined(ranges.clone());
            assert!(asked.len() < ranges.len() && bytes(&asked) <= bytes(&ranges) * 6 / 5);
        }
    }

    #[test]
    fn a_rest_is_no_request_of_its_own() {
        let parts = |range: Range<u64>| in_parts(&range).collect::<Vec<_>>();
        assert_eq!(parts(5..5), []);
        for end in [6, LARGEST + 5, LARGEST + HERE + 5] {
            assert_eq!(parts(5..end), vec![5..end]);
        }
        assert_eq!(parts(0..LARGEST + HERE + 1), [0..LARGEST, LARGEST..LARGEST + HERE + 1]);
        assert_eq!(
            parts(0..3 * LARGEST + 7),
            [0..LARGEST, LARGEST..2 * LARGEST, 2 * LARGEST..3 * LARGEST + 7]
        );
    }

    #[test]
    fn what_lies_outside_of_others_is_left() {
        let mut out = Vec::new();
        subtract(0..10, &[2..3, 5..20, 30..40], &mut out);
        assert_eq!(out, [0..2, 3..5]);
    }
}
