//! The pieces of long records that fill a row each, in record order: the first samples, the same in every pass.

use std::ops::Range;

use crate::error::Result;
use crate::view::allocate::make_room;
use crate::view::lengths::too_many;

/// Which records have such pieces.
pub(in crate::view) enum Pieces {
    /// The number of records, and how many each has.
    Even(u64, u64),
    /// By list.
    Listed {
        /// The records that have some.
        records: Vec<u32>,
        /// Where those of each end among all.
        ends: Vec<u64>,
    },
}

impl Pieces {
    /// Of none yet.
    pub(in crate::view) fn none() -> Pieces {
        Pieces::Listed { records: Vec::new(), ends: Vec::new() }
    }

    /// Those of one more record.
    ///
    /// # Errors
    /// `Memory`; `Corrupt` where they are more than 64 bits can count.
    pub(in crate::view) fn push(&mut self, record: u32, n: u64, n_records: u64) -> Result<()> {
        let before = self.len();
        if let Pieces::Listed { records, ends } = self
            && n > 0
        {
            make_room(records, 1, n_records)?;
            make_room(ends, 1, n_records)?;
            records.push(record);
            ends.push(before.checked_add(n).ok_or_else(|| too_many(n_records))?);
        }
        Ok(())
    }

    /// How many.
    pub(in crate::view) fn len(&self) -> u64 {
        match self {
            Pieces::Even(records, each) => records * each,
            Pieces::Listed { ends, .. } => ends.last().copied().unwrap_or(0),
        }
    }

    /// The record of a piece that is there, and its number in it.
    pub(in crate::view) fn find(&self, piece: u64) -> (u64, u64) {
        match self {
            Pieces::Even(_, each) => (piece / each, piece % each),
            Pieces::Listed { records, ends } => {
                let i = ends.partition_point(|end| *end <= piece);
                let start = if i == 0 { 0 } else { ends[i - 1] };
                (records[i].into(), piece - start)
            }
        }
    }

    /// Those of a record.
    pub(in crate::view) fn of(&self, record: u64) -> Range<u64> {
        match self {
            Pieces::Even(_, each) => record * each..(record + 1) * each,
            Pieces::Listed { records, ends } => {
                match records.binary_search_by(|found| u64::from(*found).cmp(&record)) {
                    Ok(i) => (if i == 0 { 0 } else { ends[i - 1] })..ends[i],
                    Err(_) => 0..0,
                }
            }
        }
    }
}
