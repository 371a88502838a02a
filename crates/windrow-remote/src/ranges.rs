//! Ranges of bytes: which become one request.

use std::ops::Range;

/// Ranges with a smaller gap between them are one request: at 30 ms and 85 MB/s a gap of 2.5 MB takes as long as a request.
pub(crate) const GAP: u64 = 1 << 20;
/// What is here between two parts that are not comes once more with them, up to this size.
pub(crate) const HERE: u64 = 64 << 10;
/// No request asks for more, but for a rest of up to [`HERE`], which is not worth one of its own.
const LARGEST: u64 = 16 << 20;
/// Ranges in order, joined where they meet, and over gaps up to `gap` while they stay below [`LARGEST`].
pub(crate) fn joined(mut ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if range.start <= last.end
                    || range.start <= last.end.saturating_add(gap)
                        && range.end.max(last.end) - last.start <= LARGEST =>
            {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
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
        assert_eq!(joined(vec![5..6, 0..1, 3 << 20..4 << 20], GAP), [0..6, 3 << 20..4 << 20]);
        assert_eq!(joined(vec![0..GAP, 2 * GAP..3 * GAP], GAP), vec![0..3 * GAP]);
        let far: Vec<Range<u64>> = (0..20).map(|i| i * GAP..i * GAP + 1).collect();
        assert_eq!(joined(far, GAP), [0..15 * GAP + 1, 16 * GAP..19 * GAP + 1]);
        let long: Vec<Range<u64>> = (0..40).map(|i| i * GAP..(i + 1) * GAP + 4).collect();
        assert_eq!(joined(long, GAP), vec![0..40 * GAP + 4]);
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
