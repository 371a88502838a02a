//! Where lines begin: one scan for `\n`, shared by what reads JSONL and what indexes it.

use memchr::memchr_iter;

use crate::error::Result;
use crate::store::Object;

/// Bytes looked at in one go where an object is not mapped.
const CHUNK: usize = 4 << 20;

/// Calls `found` with the first byte and the size, line end included, of every line of `bytes`, which begin at byte
/// `base` of their file. The last line may lack its line end.
pub(crate) fn scan_lines(bytes: &[u8], base: u64, found: &mut impl FnMut(u64, u64)) {
    let mut start = 0;
    for end in memchr_iter(b'\n', bytes).map(|at| at + 1) {
        found(base + start as u64, (end - start) as u64);
        start = end;
    }
    if start < bytes.len() {
        found(base + start as u64, (bytes.len() - start) as u64);
    }
}

/// Calls `found` with the first byte and the size of every line of an object, and reads it once, from front to back.
///
/// # Errors
/// `Io`; `Stale` when the object shrinks while it is read.
pub(crate) fn lines_of(object: &dyn Object, found: &mut impl FnMut(u64, u64)) -> Result<()> {
    if let Some(bytes) = object.mapped() {
        scan_lines(bytes, 0, found);
        return Ok(());
    }
    let mut start = 0;
    line_ends(object, 0, object.size(), &mut |end| {
        found(start, end - start);
        start = end;
    })?;
    if start < object.size() {
        found(start, object.size() - start);
    }
    Ok(())
}

/// Calls `found` with the byte after each `\n` that lies in `from..to`.
///
/// # Errors
/// As [`lines_of`].
pub(super) fn line_ends(object: &dyn Object, from: u64, to: u64, found: &mut impl FnMut(u64)) -> Result<()> {
    let mut scratch = Vec::new();
    let mut at = from;
    while at < to {
        let size = (to - at).min(CHUNK as u64);
        let bytes = object.read(at, size as usize, &mut scratch)?;
        for end in memchr_iter(b'\n', bytes) {
            found(at + end as u64 + 1);
        }
        at += size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        scan_lines(text.as_bytes(), 100, &mut |at, size| out.push((at, size)));
        out
    }

    #[test]
    fn lines_end_at_line_feeds_only() {
        assert_eq!(lines(""), []);
        assert_eq!(lines("a"), [(100, 1)]);
        assert_eq!(lines("a\n"), [(100, 2)]);
        assert_eq!(lines("a\r\n\nb\rc\u{2028}d"), [(100, 3), (103, 1), (104, 7)]);
    }
}
