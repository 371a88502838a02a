//! Which lines a range of bytes owns: those whose first byte lies in it.

use std::ops::Range;

use windrow_core::Result;
use windrow_core::store::Object;

/// Bytes that are searched at a time.
const PART: u64 = 64 << 10;

/// The bytes of the lines that begin in `range`: from the first that begins at or behind its start to the end of the last that
/// begins before its end. Ranges that follow one another own all lines, each once; one in the middle of a long line owns none.
///
/// # Errors
/// What reading the object says.
pub(super) fn owned(object: &dyn Object, range: Range<u64>) -> Result<Range<u64>> {
    Ok(next_line(object, range.start)?..next_line(object, range.end)?)
}

// Where the first line begins that begins at `at` or behind it.
fn next_line(object: &dyn Object, at: u64) -> Result<u64> {
    let size = object.size();
    if at == 0 || at >= size {
        return Ok(at.min(size));
    }
    // A line begins here where the byte before is a line feed.
    let mut at = at - 1;
    let mut scratch = Vec::new();
    while at < size {
        let bytes = object.read(at, (size - at).min(PART) as usize, &mut scratch)?;
        if let Some(found) = memchr::memchr(b'\n', bytes) {
            return Ok(at + found as u64 + 1);
        }
        at += bytes.len() as u64;
    }
    Ok(size)
}

/// Line feeds before a byte: the number of the line that begins there.
///
/// # Errors
/// What reading the object says.
pub(super) fn lines_before(object: &dyn Object, end: u64) -> Result<u64> {
    let (mut at, mut lines, mut scratch) = (0, 0, Vec::new());
    while at < end {
        let bytes = object.read(at, (end - at).min(1 << 20) as usize, &mut scratch)?;
        lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        at += bytes.len() as u64;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use windrow_core::store::{Memory, Store};

    use super::*;

    #[test]
    fn ranges_own_each_line_once() {
        let long = "x".repeat(200_000);
        for text in ["", "a", "\n", "ab\ncd\nef\n", "\n\n\n", "a\r\nb", &format!("1\n{long}\n2\n3")] {
            let object = Memory::new().with("f", text.as_bytes()).open("f").unwrap();
            let size = text.len() as u64;
            for step in [1, 2, 3, 7, 1 << 16, 1 << 20] {
                let mut behind = 0;
                for start in (0..size.max(1)).step_by(step).take(1000) {
                    let found = owned(object.as_ref(), start..(start + step as u64).min(size)).unwrap();
                    assert_eq!(found.start, behind, "{step}");
                    let before = text.as_bytes()[..found.start as usize].last();
                    assert!(before.is_none_or(|byte| *byte == b'\n') || found.is_empty());
                    behind = found.end;
                }
                assert!(behind == size || size / step as u64 >= 1000);
            }
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() as u64;
            assert_eq!(lines_before(object.as_ref(), size).unwrap(), lines);
        }
    }

    #[test]
    fn ranges_are_the_recorded_ones() {
        #[derive(serde::Deserialize)]
        struct Case {
            text: String,
            task_bytes: u64,
            takes: Vec<(u64, u64)>,
        }
        let recorded = include_str!("../../../../testdata/golden/prep/line_ranges.json");
        let cases: Vec<Case> = serde_json::from_str(recorded).unwrap();
        assert!(cases.len() >= 60);
        for case in cases {
            let object = Memory::new().with("f", case.text.as_bytes()).open("f").unwrap();
            let size = case.text.len() as u64;
            assert_eq!(super::super::job::tasks_of(size, case.task_bytes), case.takes.len() as u64);
            for (task, want) in case.takes.iter().enumerate() {
                let start = task as u64 * case.task_bytes;
                let found = owned(object.as_ref(), start..(start + case.task_bytes).min(size)).unwrap();
                assert_eq!((found.start, found.end), *want, "{:?} {}", case.text, case.task_bytes);
            }
        }
    }
}
