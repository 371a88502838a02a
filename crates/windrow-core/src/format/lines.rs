//! Where lines end: one scan for `\n`, on all cores, shared by what reads JSONL and what indexes it.

use memchr::memchr_iter;

use crate::error::Result;
use crate::store::Object;
use crate::threads;

/// Bytes looked at in one go: few enough to stay in the processor's cache where an object is read by position.
const CHUNK: usize = 256 << 10;

/// A part of an object.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    /// The object.
    pub(crate) object: &'a dyn Object,
    /// First byte.
    pub(crate) from: u64,
    /// The byte after the last.
    pub(crate) to: u64,
}

/// The byte after each `\n` in each part. The parts are shared out among all cores; the threads end before this returns.
///
/// # Errors
/// `Io`; `Stale` when an object shrinks while it is read.
pub(crate) fn line_ends(parts: &[Part<'_>]) -> Result<Vec<Vec<u64>>> {
    threads::in_parts(parts.len(), |i| ends_in(&parts[i])).into_iter().collect()
}

fn ends_in(part: &Part<'_>) -> Result<Vec<u64>> {
    let mut ends = Vec::new();
    let mut scratch = Vec::new();
    let mut at = part.from;
    while at < part.to {
        let size = (part.to - at).min(CHUNK as u64);
        let bytes = part.object.read(at, size as usize, &mut scratch)?;
        ends.extend(memchr_iter(b'\n', bytes).map(|end| at + end as u64 + 1));
        at += size;
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Memory, Store};

    #[test]
    fn ends_are_those_of_line_feeds_only_and_parts_do_not_matter() {
        let text = "a\r\n\nb\rc\u{2028}d\n".repeat(50_000);
        let object = Memory::new().with("x", text.as_bytes()).open("x").unwrap();
        let naive: Vec<u64> = text.bytes().zip(1..).filter(|(b, _)| *b == b'\n').map(|(_, i)| i).collect();
        for size in [1_000, 299_999, 10_000_000] {
            let ends: Vec<u64> = (0..object.size()).step_by(size).collect();
            let parts: Vec<Part<'_>> = ends
                .iter()
                .map(|from| Part {
                    object: object.as_ref(),
                    from: *from,
                    to: (from + size as u64).min(object.size()),
                })
                .collect();
            assert_eq!(line_ends(&parts).unwrap().concat(), naive, "{size}");
        }
    }
}
