//! Rows behind a cursor.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windrow_core::Result;
use windrow_core::collate::Collate;
use windrow_core::view::{self, View};

use crate::views::kind::{Cut, ViewKind};

/// Rows behind a cursor, as oxidizr's loader reads a stream: in the order of their numbers and in batches of `batch_size`
/// they are its batches. `input_ids`, `labels`: `[length]`.
///
/// ```
/// use windrow::Cursor;
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("data.bin");
/// let ids: Vec<u8> = (0..23u32).flat_map(u32::to_le_bytes).collect();
/// std::fs::write(&path, ids).unwrap();
/// let view = windrow::open(&path)?.cursor(Cursor::new(2, 4))?.with_dtype(windrow::DType::U32)?;
/// let mut loader = view.loader().batch_size(2).shuffle(false).rank(0, 1).build()?;
/// let starts = (0..3).map(|_| loader.next_batch().unwrap().unwrap().get::<u32>("input_ids").unwrap()[0]);
/// assert_eq!(starts.collect::<Vec<_>>(), [0, 8, 0]); // begins again, as a whole batch at 16 does not fit
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Cursor {
    /// Rows of a batch.
    pub batch_size: u64,
    /// Inputs of a row.
    pub length: u64,
    /// Which part of the stream.
    #[serde(default)]
    pub rank: u64,
    /// Into how many equal parts it is divided; the last takes what is left over.
    #[serde(default = "one")]
    pub world_size: u64,
}

fn one() -> u64 {
    1
}

impl Cursor {
    /// Over the whole stream.
    pub fn new(batch_size: u64, length: u64) -> Cursor {
        Cursor { batch_size, length, rank: 0, world_size: 1 }
    }
}

impl ViewKind for Cursor {
    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let collate = data.next_token(self.length, false, 0)?;
        let part = (self.rank, self.world_size);
        let cursor = view::Cursor::new(data.lengths(), self.batch_size, self.length, part);
        Ok((Arc::new(cursor.map_err(|e| e.or_at(data.data.paths.to_string()))?), Arc::new(collate)))
    }
}
