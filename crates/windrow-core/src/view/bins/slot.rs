//! What a record takes of bins: those that it fills by itself, and its positions in the one that it shares.

use serde::{Deserialize, Serialize};

use crate::view::share::Share;

/// What to do with a record that is longer than a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overlong {
    /// Its first values are a bin, the rest is never seen.
    #[default]
    Cut,
    /// It is split into pieces of a bin each; what is left over goes into a bin as a record of that length does.
    Split,
    /// It is left out.
    Drop,
}

/// What each record takes.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Positions of a bin.
    pub(super) length: u64,
    pub(super) overlong: Overlong,
    pub(super) share: Share,
}

impl Slot {
    /// Values of a record of `len` in a bin among others; 0 where it is in none.
    pub(super) fn values(self, len: u64) -> u64 {
        match self.overlong {
            Overlong::Cut => len.min(self.length),
            Overlong::Drop if len > self.length => 0,
            Overlong::Drop => len,
            Overlong::Split => len - self.n_full(len) * self.length,
        }
    }

    /// Positions that it takes there.
    pub(super) fn size(self, len: u64) -> u64 {
        // The length of a bin is a multiple itself.
        self.share.of(self.values(len)).unwrap_or(self.length)
    }

    /// Bins that it fills by itself, before the one that it shares.
    pub(super) fn n_full(self, len: u64) -> u64 {
        if self.overlong == Overlong::Split { len.saturating_sub(1) / self.length } else { 0 }
    }
}
