//! The rows of `sample_locations.bin`: read from the map when they are asked for, believed only after a look at the file.

use std::sync::Arc;

use windrow_core::store::Object;
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use super::super::json_lines::{Row, Rows};
use super::LOCATIONS;
use windrow_core::format::data_files::{CHECKED_AT_ONCE, DataFiles, hash_ends};

const ROW_SIZE: u64 = 24;

pub(super) struct LocationRows {
    object: Arc<dyn Object>,
    order: Order,
}

/// What is known of how rows follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Nothing: another program wrote them.
    Any,
    /// Each begins where the one before ends, in the same file or at the start of the next.
    Follows,
    /// So, and the last row of a file ends where the file ends.
    FollowsToTheEnd,
}

/// A row as it is in the index.
#[derive(Clone, Copy)]
struct Stored {
    file: u64,
    start: u64,
    size: u64,
}

impl Stored {
    fn of(bytes: &[u8]) -> Stored {
        let number = |i: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[8 * i..8 * i + 8]);
            u64::from_le_bytes(field)
        };
        Stored { file: number(0), start: number(1), size: number(2) }
    }
}

impl LocationRows {
    /// Rows of an index that was opened.
    pub(super) fn new(object: Arc<dyn Object>, order: Order) -> Result<LocationRows> {
        match object.size() % ROW_SIZE {
            0 => Ok(LocationRows { object, order }),
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
        if self.count() <= CHECKED_AT_ONCE && files.opened_at_once() {
            (0..self.count()).try_for_each(check)
        } else {
            Ok(())
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
        // A mapped index lends the bytes; one that is read by position needs room for a row and its neighbours.
        let mut scratch = Vec::new();
        let from = if self.order == Order::Any { record } else { record.saturating_sub(1) };
        let to =
            if self.order == Order::FollowsToTheEnd { (record + 2).min(self.count()) } else { record + 1 };
        let size = ((to - from) * ROW_SIZE) as usize;
        let bytes = self.object.read(from * ROW_SIZE, size, &mut scratch)?;
        let near = |record: u64| {
            let at = usize::try_from(record.checked_sub(from)? * ROW_SIZE).ok()?;
            bytes.get(at..at + ROW_SIZE as usize).map(Stored::of)
        };
        let wrong =
            |what: String| {
                Error::corrupt(what).at(self.object.name()).record(record).byte(byte).hint(
                    "the index does not belong to these files; `windrow index --overwrite` makes it again",
                )
            };
        let Some(Stored { file, start, size }) = near(record) else {
            return Err(Error::out_of_range("record", record, self.count()));
        };
        let count = files.count() as u64;
        let Some(number) = usize::try_from(file).ok().filter(|_| file < count) else {
            return Err(wrong(format!("the row names file {file}, but file_location.txt lists {count}")));
        };
        let end = files.get(number)?.size();
        let last = start.checked_add(size).filter(|last| *last <= end).ok_or_else(|| {
            wrong(format!(
                "the row names bytes {start}+{size} of {}, which ends at byte {end}",
                files.name(number)
            ))
        })?;
        if self.order != Order::Any {
            let expected = match record.checked_sub(1).and_then(near) {
                None => (0, 0),
                Some(before) if before.file == file => (file, before.start.saturating_add(before.size)),
                Some(before) => (before.file.saturating_add(1), 0),
            };
            if (file, start) != expected {
                return Err(wrong(format!(
                    "the row begins at byte {start} of file {file}, expected byte {} of file {}",
                    expected.1, expected.0
                )));
            }
        }
        let is_last = near(record + 1).is_none_or(|next| next.file != file);
        if self.order == Order::FollowsToTheEnd && is_last && last != end {
            return Err(wrong(format!(
                "the last row of {} ends at byte {last}, expected its end, byte {end}",
                files.name(number)
            )));
        }
        Ok(Row { file: number, start, size })
    }

    fn claim(&self) -> Result<u64> {
        let mut hash = Xxh3::new();
        hash_ends(self.object.as_ref(), &mut hash)?;
        Ok(hash.digest())
    }
}
