//! A part of an object as the stream that the codecs read.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use symphonia::core::io::MediaSource;
use windrow_core::store::Object;

use crate::streamed::Patch;

/// Bytes `within` of an object, with a cursor of its own.
pub(crate) struct Media {
    object: Arc<dyn Object>,
    within: Range<u64>,
    patches: Vec<Patch>,
    at: u64,
    scratch: Vec<u8>,
}

impl Media {
    /// At the first byte of the part; `patches` are read in place of what the object holds there.
    pub(crate) fn new(object: Arc<dyn Object>, within: Range<u64>, patches: Vec<Patch>) -> Self {
        Media { object, within, patches, at: 0, scratch: Vec::new() }
    }

    fn size(&self) -> u64 {
        self.within.end - self.within.start
    }
}

impl Read for Media {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.size().saturating_sub(self.at).min(out.len() as u64) as usize;
        if size == 0 {
            return Ok(0);
        }
        let start = self.within.start + self.at;
        let bytes = self.object.read(start, size, &mut self.scratch).map_err(io::Error::other)?;
        out[..size].copy_from_slice(bytes);
        for (place, patch) in &self.patches {
            for (at, byte) in
                (*place..).zip(patch).filter(|(at, _)| (start..start + size as u64).contains(at))
            {
                out[(at - start) as usize] = *byte;
            }
        }
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
