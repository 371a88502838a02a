//! What the positions of a document in a row are a multiple of.

use serde::{Deserialize, Serialize};
use windrow_core::format::Takes;
use windrow_core::view::RowLength;

use crate::views::option::{Set, Taken};

/// What the positions of a document are a multiple of: 1, unless another number is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Multiple(pub u64);

impl Default for Multiple {
    fn default() -> Multiple {
        Multiple(1)
    }
}

impl Taken for Multiple {
    const TAKES: Takes = Takes::Number("M");
}

impl Set<u64> for Multiple {
    fn of(given: u64) -> Multiple {
        Multiple(given)
    }
}

impl Multiple {
    /// Rows of documents that are filled up to it.
    pub(crate) fn of_rows(self, length: u64) -> RowLength {
        RowLength::filled(length, self.0)
    }

    /// Whether positions may be filled.
    pub(crate) fn fills(self) -> bool {
        self.0 != 1
    }
}
