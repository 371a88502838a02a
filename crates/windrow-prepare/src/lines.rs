//! Where lines begin and end in bytes that come in pieces.

/// Finds lines in a stream; a line ends after its `\n`, the last one may lack it.
#[derive(Default)]
pub(super) struct LineScan {
    start: u64,
    end: u64,
}

impl LineScan {
    /// Takes the next bytes and gives `(first byte, size with the line break)` of each line that ends in them.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut impl FnMut(u64, u64)) {
        for at in memchr::memchr_iter(b'\n', bytes) {
            let end = self.end + at as u64 + 1;
            out(self.start, end - self.start);
            self.start = end;
        }
        self.end += bytes.len() as u64;
    }

    /// Gives the last line, if it lacks a line break.
    pub(super) fn finish(self, out: &mut impl FnMut(u64, u64)) {
        if self.end > self.start {
            out(self.start, self.end - self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_matter() {
        let text = b"ab\n\nc\r\nlast";
        for size in 1..=text.len() {
            let mut lines = Vec::new();
            let mut scan = LineScan::default();
            text.chunks(size).for_each(|part| scan.feed(part, &mut |b, n| lines.push((b, n))));
            scan.finish(&mut |b, n| lines.push((b, n)));
            assert_eq!(lines, [(0, 3), (3, 1), (4, 3), (7, 4)], "{size}");
        }
    }
}
