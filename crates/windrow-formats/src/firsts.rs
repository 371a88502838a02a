//! Records of several files, numbered one file after the other.

use windrow_core::{Error, Result};

/// The number of the first record of each file, and of all records at the end.
pub(crate) struct Firsts(Vec<u64>);

impl Firsts {
    /// Of no file.
    pub(crate) fn new() -> Firsts {
        Firsts(vec![0])
    }

    /// The next file has this many records; `None` beyond 64 bits, where an index says so of files that were not looked into.
    pub(crate) fn checked_push(&mut self, records: u64) -> Option<()> {
        self.0.push(self.count().checked_add(records)?);
        Some(())
    }

    /// The next file has this many records, which lie in it.
    pub(crate) fn push(&mut self, records: u64) {
        self.0.push(self.count().saturating_add(records));
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> u64 {
        self.0[self.0.len() - 1]
    }

    /// How many records a file has.
    pub(crate) fn count_of(&self, file: usize) -> u64 {
        self.0[file + 1] - self.0[file]
    }

    /// The file of a record, and its number there.
    ///
    /// # Errors
    /// `OutOfRange`.
    pub(crate) fn find(&self, record: u64) -> Result<(usize, u64)> {
        if record >= self.count() {
            return Err(Error::out_of_range("record", record, self.count()));
        }
        // The last file that begins at or before it: one without records begins where the next one does.
        let file = self.0.partition_point(|first| *first <= record) - 1;
        Ok((file, record - self.0[file]))
    }
}
