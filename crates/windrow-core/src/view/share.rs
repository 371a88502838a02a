//! What a record takes of a row, or of the stream of all records: its values, an EOS token, and positions that fill it up to a multiple.

use super::lengths;
use crate::error::{Error, Result};

/// Positions of a row, and what the positions of each document in it are a multiple of.
///
/// ```
/// # use std::sync::Arc;
/// use windrow_core::view::{Pack, RowLength, View};
///
/// // Each document takes 4 or 8 positions.
/// let view = Pack::new(Arc::new(vec![3, 6, 4]), RowLength::filled(8, 4), None)?;
/// assert_eq!(view.len(), 1); // (4 + 8 + 4 - 1) / 8
/// # Ok::<(), windrow_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLength {
    length: u64,
    multiple: u64,
}

impl From<u64> for RowLength {
    fn from(length: u64) -> RowLength {
        RowLength { length, multiple: 1 }
    }
}

impl RowLength {
    /// Rows whose documents are each filled up to a multiple.
    pub fn filled(length: u64, multiple: u64) -> RowLength {
        RowLength { length, multiple }
    }

    /// Positions of a row.
    pub(super) fn length(self) -> u64 {
        self.length
    }

    /// # Errors
    /// `Config` for a multiple of 0, and for one that does not divide the length.
    pub(super) fn check(self) -> Result<()> {
        let RowLength { length, multiple } = self;
        lengths::at_least_one("multiple", multiple)?;
        if length.is_multiple_of(multiple) {
            return Ok(());
        }
        let fitting = (length / multiple * multiple).max(multiple);
        Err(Error::config(format!("@multiple={multiple}@ does not divide a length of {length}"))
            .field("multiple")
            .hint(format!("rows end between documents or at a multiple: choose a length of {fitting}")))
    }

    /// The share of a record that has `more` positions after its values.
    pub(super) fn share(self, more: u64) -> Share {
        Share { more, multiple: self.multiple }
    }
}

/// The share of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Positions after its values: 1 for an EOS token.
    more: u64,
    multiple: u64,
}

impl Share {
    /// That of a record of `len` values; `None` past 64 bits.
    pub(super) fn of(self, len: u64) -> Option<u64> {
        let len = len.checked_add(self.more)?;
        // A division for each record is not free.
        if self.multiple == 1 { Some(len) } else { len.checked_next_multiple_of(self.multiple) }
    }

    /// What its positions are a multiple of.
    pub(super) fn multiple(self) -> u64 {
        self.multiple
    }

    /// Whether positions may be filled.
    pub(super) fn is_filled(self) -> bool {
        self.multiple > 1
    }

    /// What tells a cut of filled documents from one without.
    pub(super) fn described(self) -> String {
        if self.is_filled() { format!(",multiple={}", self.multiple) } else { String::new() }
    }
}
