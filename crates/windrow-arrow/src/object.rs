//! An object as the crate parquet reads it.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use windrow_core::store::Object;

/// Bytes read at once where a page's head is.
const HEAD: usize = 512;

/// An object.
#[derive(Clone)]
pub(crate) struct Reader(pub(crate) Arc<dyn Object>);

impl Length for Reader {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Reader {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(HEAD, Cursor { object: self.0.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A length is a claim of the file: it is compared before there is memory for it.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.size()) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at byte {start}, it has {}",
                self.0.size()
            )));
        }
        let mut scratch = Vec::new();
        let bytes = self.0.read(start, length, &mut scratch).map(Bytes::copy_from_slice);
        bytes.map_err(|e| ParquetError::External(Box::new(e)))
    }
}

/// Reads on from a place.
pub(crate) struct Cursor {
    object: Arc<dyn Object>,
    at: u64,
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = (out.len() as u64).min(self.object.size().saturating_sub(self.at)) as usize;
        self.object.read_into(self.at, &mut out[..size]).map_err(io::Error::other)?;
        self.at += size as u64;
        Ok(size)
    }
}
