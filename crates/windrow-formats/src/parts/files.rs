//! The files of all parts, opened when they are first read and compared with the table then.

use std::sync::{Arc, OnceLock};

use windrow_core::format::write::PartFile;
use windrow_core::source::FileInfo;
use windrow_core::store::{Entry, Object, Store, key};
use windrow_core::{Error, Kind, Result};

use super::lengths::{AGAIN, PartLengths, Said, WIDTH};
use super::names::file_name;
use super::table::{Stored, Table};

/// The parts of a folder. A part that was not read yet takes 64 bytes, those of its row included.
pub(super) struct Files {
    store: Arc<dyn Store>,
    /// The key of their folder.
    folder: String,
    /// The number in the name of the first one.
    first: u64,
    pub(super) table: Table,
    pub(super) stored: Stored,
    values: Vec<OnceLock<Arc<dyn Object>>>,
    lengths: Vec<OnceLock<Box<PartLengths>>>,
}

impl Files {
    /// Parts `first`, `first` + 1 … of the folder at this key. None is opened.
    pub(super) fn new(
        store: Arc<dyn Store>,
        folder: String,
        first: u64,
        table: Table,
        stored: Stored,
    ) -> Files {
        let values = (0..table.len()).map(|_| OnceLock::new()).collect();
        let lengths = (0..table.len()).map(|_| OnceLock::new()).collect();
        Files { store, folder, first, table, stored, values, lengths }
    }

    fn key(&self, part: usize, what: PartFile) -> String {
        key::below(&self.folder, &file_name(self.first + part as u64, what))
    }

    /// What a person calls a file of a part.
    pub(super) fn name(&self, part: usize, what: PartFile) -> String {
        self.store.display(&self.key(part, what))
    }

    /// The number in the name of a part.
    pub(super) fn task(&self, part: usize) -> u64 {
        self.first + part as u64
    }

    /// A file of a part, opened for the caller alone, and of this size.
    ///
    /// # Errors
    /// `NotFound` for one that is not there, `Corrupt` for one of another size; what the store says.
    pub(super) fn open(&self, part: usize, what: PartFile, size: Option<u64>) -> Result<Arc<dyn Object>> {
        let key = self.key(part, what);
        let opened = match size {
            // Where the size is known it need not be asked for.
            Some(size) => {
                let entry = Entry { key, size, is_folder: false, modified_ns: None, tag: None };
                self.store.open_listed(&entry)
            }
            None => self.store.open(&key),
        };
        let object = opened.map_err(|e| match e.kind() {
            Kind::NotFound => {
                let task = self.task(part);
                Error::not_found(format!("the file of part {task} is not there"))
                    .at(self.name(part, what))
                    .hint(AGAIN)
            }
            _ => e,
        })?;
        match size.filter(|size| object.size() != *size) {
            None => Ok(object),
            Some(size) => {
                let what = format!("the file has {} bytes, expected {size}", object.size());
                Err(Error::corrupt(what).at(object.name()).hint(AGAIN))
            }
        }
    }

    /// The values of a part.
    ///
    /// # Errors
    /// As [`Files::open`].
    pub(super) fn values(&self, part: usize) -> Result<&Arc<dyn Object>> {
        let Some(slot) = self.values.get(part) else {
            return Err(Error::out_of_range("part", part, self.values.len() as u64));
        };
        if let Some(object) = slot.get() {
            return Ok(object);
        }
        let object = self.open(part, PartFile::Values, Some(self.bytes(part)))?;
        Ok(slot.get_or_init(|| object))
    }

    /// The lengths of a part.
    ///
    /// # Errors
    /// As [`Files::open`] and [`PartLengths::open`].
    pub(super) fn lengths(&self, part: usize) -> Result<&PartLengths> {
        let Some(slot) = self.lengths.get(part) else {
            return Err(Error::out_of_range("part", part, self.lengths.len() as u64));
        };
        if let Some(lengths) = slot.get() {
            return Ok(lengths);
        }
        let lengths = self.read_lengths(part)?;
        Ok(slot.get_or_init(|| Box::new(lengths)))
    }

    /// Reads the lengths of a part, for the caller alone.
    ///
    /// # Errors
    /// As [`Files::lengths`].
    pub(super) fn read_lengths(&self, part: usize) -> Result<PartLengths> {
        let (records, values, xxh3) = self.table.of(part);
        let size = records.checked_mul(WIDTH);
        let object = self.open(part, PartFile::Lengths, size)?;
        PartLengths::open(object, Said { records, values, xxh3 })
    }

    /// Bytes of the values of a part.
    pub(super) fn bytes(&self, part: usize) -> u64 {
        // The product was compared with the row.
        self.table.of(part).1.saturating_mul(self.stored.width())
    }

    /// Names and sizes of all values.
    pub(super) fn infos(&self) -> Vec<FileInfo> {
        (0..self.table.len())
            .map(|part| FileInfo { file: self.name(part, PartFile::Values), size: self.bytes(part) })
            .collect()
    }
}
