//! An object as a stream with a cursor of its own, for decoders that read one thing after the other.

use std::io::{self, Read, Seek, SeekFrom};

use super::Object;

/// Reads an object from its beginning, or from a given byte.
pub struct Stream<'a> {
    object: &'a dyn Object,
    at: u64,
}

impl<'a> Stream<'a> {
    /// At the first byte.
    pub fn new(object: &'a dyn Object) -> Self {
        Stream { object, at: 0 }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.object.size().saturating_sub(self.at).min(out.len() as u64) as usize;
        if size == 0 {
            return Ok(0);
        }
        self.object.read_into(self.at, &mut out[..size]).map_err(io::Error::other)?;
        self.at += size as u64;
        Ok(size)
    }
}

impl Seek for Stream<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.object.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
