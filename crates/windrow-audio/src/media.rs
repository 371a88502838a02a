//! A part of an object, behind a header made here where it needs one, as the stream that the codecs read.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use symphonia::core::io::MediaSource;
use windrow_core::store::Object;

/// Bytes `within` of an object behind a header, with a cursor of its own.
pub(crate) struct Media {
    header: Vec<u8>,
    object: Arc<dyn Object>,
    within: Range<u64>,
    at: u64,
    scratch: Vec<u8>,
}

impl Media {
    /// At the first byte of the header, or of the part where it is empty.
    pub(crate) fn new(header: Vec<u8>, object: Arc<dyn Object>, within: Range<u64>) -> Self {
        Media { header, object, within, at: 0, scratch: Vec::new() }
    }

    fn size(&self) -> u64 {
        self.header.len() as u64 + self.within.end - self.within.start
    }
}

impl Read for Media {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.size().saturating_sub(self.at).min(out.len() as u64) as usize;
        if size == 0 {
            return Ok(0);
        }
        let header = self.header.get(self.at as usize..).unwrap_or_default();
        let size = if header.is_empty() {
            let start = self.within.start + self.at - self.header.len() as u64;
            let bytes = self.object.read(start, size, &mut self.scratch).map_err(io::Error::other)?;
            out[..size].copy_from_slice(bytes);
            size
        } else {
            let size = size.min(header.len());
            out[..size].copy_from_slice(&header[..size]);
            size
        };
        self.at += size as u64;
        Ok(size)
    }
}

impl Seek for Media {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

impl MediaSource for Media {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.size())
    }
}
