//! A file whose first failure is the last: an archive's writer continues with it when it is dropped.

use std::io::{self, ErrorKind, Seek, SeekFrom, Write};

/// Passes everything on until something fails. What comes after that is taken, goes nowhere and succeeds: whoever wrote has
/// its error, and what was begun is removed.
pub(super) struct Latched<W> {
    inner: W,
    has_failed: bool,
    /// Where the file ends.
    end: u64,
}

impl<W: Write + Seek> Latched<W> {
    pub(super) fn new(inner: W) -> Latched<W> {
        Latched { inner, has_failed: false, end: 0 }
    }

    /// Whether nothing failed.
    ///
    /// # Errors
    /// `Other` when something did.
    pub(super) fn is_whole(&self) -> io::Result<()> {
        if self.has_failed { Err(io::Error::other("a write before this one failed")) } else { Ok(()) }
    }

    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.has_failed |= done.as_ref().is_err_and(|e| e.kind() != ErrorKind::Interrupted);
        done
    }
}

impl<W: Write + Seek> Write for Latched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_failed {
            return Ok(bytes.len());
        }
        let done = self.inner.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.has_failed {
            return Ok(());
        }
        let done = self.inner.flush();
        self.note(done)
    }
}

impl<W: Write + Seek> Seek for Latched<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if self.has_failed {
            // Nobody is given a place before what was written.
            return Ok(self.end);
        }
        let done = self.inner.seek(to);
        let at = self.note(done)?;
        self.end = self.end.max(at);
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use zip::CompressionMethod;
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    /// Fails at the operation of this number, and at no other.
    struct Fails(Cursor<Vec<u8>>, u32);

    impl Fails {
        fn next(&mut self) -> io::Result<()> {
            self.1 = self.1.wrapping_sub(1);
            if self.1 == u32::MAX { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }

    impl Write for Fails {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.next()?;
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    impl Seek for Fails {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.next()?;
            self.0.seek(to)
        }
    }

    fn archive(file: Fails) -> io::Result<()> {
        let mut archive = ZipWriter::new(Latched::new(file));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for name in ["a", "b", "c"] {
            archive.start_file(name, options)?;
            archive.write_all(&[7; 100])?;
            archive.write_all(&[8; 100])?;
        }
        archive.finish()?.is_whole()
    }

    #[test]
    fn an_archive_that_fails_anywhere_is_an_error_and_is_dropped_in_peace() {
        let whole = (0..).find(|n| archive(Fails(Cursor::default(), *n)).is_ok()).unwrap();
        assert!(whole > 20, "{whole}");
    }
}
