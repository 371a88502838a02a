//! The part of some records that options name: whole records, all but some, or a part of each in time.

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

/// All records but those of these ranges.
pub(crate) fn of_exclude(source: SharedSource, ranges: &[(u64, u64)]) -> Result<SharedSource> {
    match ranges {
        [] => Ok(source),
        _ => Ok(Arc::new(Subset::new(source.clone(), excluded(ranges, source.len())?, true)?)),
    }
}

/// The numbers in these ranges.
///
/// # Errors
/// `OutOfRange` for one that `n` records do not have; `Config` for ranges that do not follow one another.
pub(crate) fn excluded(ranges: &[(u64, u64)], n: u64) -> Result<Arc<[u64]>> {
    if ranges.iter().any(|(from, to)| from >= to) || ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(Error::config("ranges of records to exclude that do not follow one another")
            .field("exclude")
            .hint("each is [from, to), ascending and apart from the next"));
    }
    // Before memory is taken for them.
    match ranges.last() {
        Some((_, to)) if *to > n => Err(Error::out_of_range("record", to - 1, n).field("exclude")),
        _ => Ok(ranges.iter().flat_map(|(from, to)| *from..*to).collect()),
    }
}

/// A part in time of every record; all of it where there is no period.
pub(crate) fn of_period(source: SharedSource, period: Option<PeriodOfEach>) -> Result<SharedSource> {
    match period {
        Some(PeriodOfEach { from, to, before, .. }) => Ok(Arc::new(Period::new(source, from, to, before)?)),
        None => Ok(source),
    }
}
