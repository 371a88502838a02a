//! An object as the crate parquet reads it.

use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use windrow_core::Error;
use windrow_core::store::Object;

/// Bytes read at once where a page's head is.
const HEAD: usize = 512;

/// An object, and why it could not be read: the crate hands on the text of an error and no more.
#[derive(Clone)]
pub(crate) struct Reader(pub(crate) Arc<dyn Object>, Arc<Mutex<Option<Error>>>);

impl Reader {
    pub(crate) fn new(object: Arc<dyn Object>) -> Reader {
        Reader(object, Arc::default())
    }

    /// The first error of reading since it was asked for.
    pub(crate) fn cause(&self) -> Option<Error> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    // The text of an error, which is kept.
    fn keep(&self, error: Error) -> String {
        let text = error.message().to_string();
        self.1.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        text
    }
}

impl Length for Reader {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Reader {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(HEAD, Cursor { reader: self.clone(), at: start }))
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
        bytes.map_err(|e| ParquetError::General(self.keep(e)))
    }
}

/// Reads on from a place.
pub(crate) struct Cursor {
    reader: Reader,
    at: u64,
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Reader(object, _) = &self.reader;
        let size = (out.len() as u64).min(object.size().saturating_sub(self.at)) as usize;
        let read = object.read_into(self.at, &mut out[..size]);
        read.map_err(|e| io::Error::other(self.reader.keep(e)))?;
        self.at += size as u64;
        Ok(size)
    }
}
