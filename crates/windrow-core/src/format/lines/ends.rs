//! Where lines end: one scan for `\n`, shared by what reads JSONL and what indexes it.

use std::ops::Range;

use memchr::memchr_iter;

use crate::error::Result;
use crate::store::Object;

/// Bytes looked at in one go: few enough to stay in the processor's cache where an object is read by position, and
/// enough for the system to copy them at its full speed.
const CHUNK: usize = 1 << 20;

/// The byte after each `\n` in a part of the object. `scratch` may be that of another part, whose memory is used again.
///
/// # Errors
/// `Io`; `Stale` when the object shrinks while it is read.
pub fn line_ends(object: &dyn Object, part: Range<u64>, scratch: &mut Vec<u8>) -> Result<Vec<u64>> {
    let mut ends = Vec::new();
    let mut at = part.start;
    while at < part.end {
        let size = (part.end - at).min(CHUNK as u64);
        let bytes = object.read(at, size as usize, scratch)?;
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
        let mut scratch = Vec::new();
        for size in [1_000, 299_999, 10_000_000] {
            let parts =
                (0..object.size()).step_by(size).map(|from| from..(from + size as u64).min(object.size()));
            let ends: Vec<u64> =
                parts.flat_map(|part| line_ends(object.as_ref(), part, &mut scratch).unwrap()).collect();
            assert_eq!(ends, naive, "{size}");
        }
    }
}
