//! A file of which a few places are looked at when a data set is opened: it is not mapped for that, and not kept open.

use std::sync::{Mutex, PoisonError};

use windrow_core::Result;
use windrow_core::store::Object;

use windrow_core::format::data_files::DataFiles;

/// Bytes that are read at least: a header and what follows it come in one read.
const AT_LEAST: u64 = 512;

/// More than this is read where it is mapped.
const MOST: usize = 1 << 20;

/// A file, read by position.
pub(super) struct Glimpse<'a> {
    files: &'a DataFiles,
    file: usize,
    name: String,
    size: u64,
    /// Where the bytes that were read last begin, and the bytes.
    last: Mutex<(u64, Vec<u8>)>,
}

impl<'a> Glimpse<'a> {
    /// Of a file by its number.
    ///
    /// # Errors
    /// As [`DataFiles::size`].
    pub(super) fn of(files: &'a DataFiles, file: usize) -> Result<Glimpse<'a>> {
        Ok(Glimpse { files, file, name: files.name(file), size: files.size(file)?, last: Mutex::default() })
    }
}

impl Object for Glimpse<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn modified_ns(&self) -> Option<u64> {
        None
    }

    fn read<'a>(&'a self, start: u64, size: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let end = start.checked_add(size as u64).filter(|end| *end <= self.size && size <= MOST);
        let Some(end) = end else {
            // It also says where the file ends.
            return self.files.get(self.file)?.read(start, size, scratch);
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, bytes) = &mut *last;
        if start < *from || end > *from + bytes.len() as u64 {
            let until = end.max(start.saturating_add(AT_LEAST)).min(self.size);
            // Within the file.
            bytes.resize((until - start) as usize, 0);
            let read = self.files.peek(self.file, start, bytes);
            *from = start;
            read.inspect_err(|_| bytes.clear())?;
        }
        let at = (start - *from) as usize;
        scratch.clear();
        scratch.extend_from_slice(&bytes[at..at + size]);
        Ok(scratch)
    }
}
