//! The part of some records that options name: whole records, or a part of each in time.

use std::sync::Arc;

use windrow_core::format::{PeriodOfEach, Split};
use windrow_core::sampler::Permutation;
use windrow_core::source::{Period, SharedSource, Subset};
use windrow_core::{Error, Result};

/// Sets the split's key apart from the orders of the same seed.
const SPLIT: u64 = 0x7370_6c69_745f_7631;

/// The records of one part, whole; all of them where there is no split.
pub(crate) fn of_split(source: SharedSource, split: Option<Split>) -> Result<SharedSource> {
    let Some(split) = split else { return Ok(source) };
    let n = source.len();
    if split.n_validation == 0 || split.n_validation >= n {
        return Err(Error::mismatch(format!(
            "a split with {} records for validation, of a data set of {n} now",
            split.n_validation
        )));
    }
    let order = Permutation::new(split.seed ^ SPLIT, n);
    let mut numbers: Vec<u64> = (0..split.n_validation).map(|i| order.apply(i)).collect();
    numbers.sort_unstable();
    Ok(Arc::new(Subset::new(source, numbers.into(), !split.is_validation)?))
}

/// A part in time of every record; all of it where there is no period.
pub(crate) fn of_period(source: SharedSource, period: Option<PeriodOfEach>) -> Result<SharedSource> {
    match period {
        Some(PeriodOfEach { from, to, before, .. }) => Ok(Arc::new(Period::new(source, from, to, before)?)),
        None => Ok(source),
    }
}
