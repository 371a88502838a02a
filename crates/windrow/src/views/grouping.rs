//! Rows of about the same length in one batch, so that it has little padding.

use std::num::NonZeroU64;
use std::sync::Arc;

use windrow_core::sampler::{Grouped, Sampler};
use windrow_core::{Error, Lengths, Result};

/// How many rows of about the same length come together, and the length of each.
#[derive(Clone)]
pub(crate) struct Grouping {
    rows: NonZeroU64,
    lengths: Arc<[u32]>,
}

/// Records whose lengths are asked for at once.
const AT_ONCE: usize = 4096;

impl Grouping {
    /// Groups of `rows` records that are cut to `length`, of records with these lengths.
    ///
    /// # Errors
    /// `Config` for groups of 0 rows, or of more records than memory holds; what the lengths say.
    pub(crate) fn of(length: u64, rows: u64, lengths: &dyn Lengths) -> Result<Grouping> {
        let rows = NonZeroU64::new(rows).ok_or_else(|| {
            Error::config("groups of 0 rows").field("group").hint("give the rows of a batch over all ranks")
        })?;
        let n = lengths.len();
        let mut found: Vec<u32> = Vec::new();
        let room = usize::try_from(n).ok().and_then(|n| found.try_reserve_exact(n).ok());
        room.ok_or_else(|| Error::memory(format!("the lengths of {n} records, 4 bytes each")))?;
        let mut some = [0; AT_ONCE];
        while (found.len() as u64) < n {
            let first = found.len() as u64;
            let some = &mut some[..(n - first).min(AT_ONCE as u64) as usize];
            lengths.lengths(first, some)?;
            // Longer ones are cut, so they are alike.
            found.extend(some.iter().map(|one| u32::try_from((*one).min(length + 1)).unwrap_or(u32::MAX)));
        }
        Ok(Grouping { rows, lengths: found.into() })
    }

    /// Another order, with rows of about the same length together.
    ///
    /// # Errors
    /// `Config` for the order of the records, which groups would change.
    pub(crate) fn order(
        &self,
        order: Arc<dyn Sampler>,
        is_random: bool,
        seed: u64,
    ) -> Result<Arc<dyn Sampler>> {
        if !is_random {
            return Err(Error::config(
                "group with @shuffle=false@: groups of like lengths have an order of their own",
            )
            .field("group")
            .hint("leave @shuffle=false@ out, or cut the records without group"));
        }
        Ok(Arc::new(Grouped::new(order, self.lengths.clone(), self.rows, seed)))
    }
}
