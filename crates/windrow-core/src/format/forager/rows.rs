//! The rows of `sample_locations.bin`: read from the map when they are asked for, believed only after a look at the file.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::super::data_files::{DataFiles, hash_ends};
use super::super::json_lines::{Row, Rows};
use super::LOCATIONS;
use crate::error::{Error, Result};
use crate::store::Object;

const ROW_SIZE: u64 = 24;

/// Rows up to this number are all checked when the index is opened; of more, each is checked when it is used.
const CHECKED_AT_ONCE: u64 = 1_000_000;

pub(super) struct LocationRows {
    object: Arc<dyn Object>,
}

impl LocationRows {
    /// Rows of an index that was opened.
    pub(super) fn new(object: Arc<dyn Object>) -> Result<LocationRows> {
        match object.size() % ROW_SIZE {
            0 => Ok(LocationRows { object }),
            over => Err(Error::corrupt(format!(
                "{LOCATIONS} has {} bytes: {over} more than whole rows of {ROW_SIZE} bytes",
                object.size()
            ))
            .at(object.name())
            .byte(object.size() - over)
            .hint("the copy looks unfinished; `windrow index --overwrite` makes the index again")),
        }
    }

    /// Calls `check` with every record of a small index; records of a large one are checked when they are read.
    ///
    /// # Errors
    /// What `check` says first.
    pub(super) fn check_all(&self, files: &DataFiles, check: impl Fn(u64) -> Result<()>) -> Result<()> {
        match self.count() <= CHECKED_AT_ONCE && files.opened_at_once() {
            true => (0..self.count()).try_for_each(check),
            false => Ok(()),
        }
    }
}

impl Rows for LocationRows {
    fn count(&self) -> u64 {
        self.object.size() / ROW_SIZE
    }

    fn row(&self, record: u64, files: &DataFiles) -> Result<Row> {
        if record >= self.count() {
            return Err(Error::out_of_range("record", record, self.count()));
        }
        let byte = record * ROW_SIZE;
        // A mapped index lends the bytes; one that is read by position needs room for a row.
        let mut scratch = Vec::new();
        let bytes = self.object.read(byte, ROW_SIZE as usize, &mut scratch)?;
        let number = |i: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[8 * i..8 * i + 8]);
            u64::from_le_bytes(field)
        };
        let (file, start, size) = (number(0), number(1), number(2));
        let wrong =
            |what: String| {
                Err(Error::corrupt(what).at(self.object.name()).record(record).byte(byte).hint(
                    "the index does not belong to these files; `windrow index --overwrite` makes it again",
                ))
            };
        let count = files.count() as u64;
        let Some(number) = usize::try_from(file).ok().filter(|_| file < count) else {
            return wrong(format!("the row names file {file}, but file_location.txt lists {count}"));
        };
        let end = files.get(number)?.size();
        match start.checked_add(size) {
            Some(last) if last <= end => Ok(Row { file: number, start, size }),
            _ => wrong(format!(
                "the row names bytes {start}+{size} of {}, which ends at byte {end}",
                files.name(number)
            )),
        }
    }

    fn claim(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash_ends(self.object.as_ref(), &mut hash)?;
        Ok(hash.digest())
    }
}
