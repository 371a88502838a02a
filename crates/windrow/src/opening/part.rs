//! The part of some records that options name: those of a split, or all but some.

use std::sync::Arc;

use windrow_core::format::Split;
use windrow_core::sampler::Permutation;
use windrow_core::source::{Chosen, LeftOut, SharedSource, Subset};
use windrow_core::{Error, Result};

/// Sets the split's key apart from the orders of the same seed.
const SPLIT: u64 = 0x7370_6c69_745f_7631;

/// The records of one part, whole; all of them where there is no split.
pub(crate) fn of_split(source: SharedSource, split: Option<Split>) -> Result<SharedSource> {
    let Some(split) = split else { return Ok(source) };
    let numbers = validating(split, source.len())?;
    Ok(Arc::new(Subset::new(source, numbers.into(), !split.is_validation)?))
}

/// The records of a split for validation, of `n`, ascending.
///
/// # Errors
/// `Mismatch` where the split is of another number of records.
pub(crate) fn validating(split: Split, n: u64) -> Result<Vec<u64>> {
    if split.n_validation == 0 || split.n_validation >= n {
        return Err(Error::mismatch(format!(
            "a split with {} records for validation, of a data set of {n} now",
            split.n_validation
        )));
    }
    let order = Permutation::new(split.seed ^ SPLIT, n);
    let mut numbers: Vec<u64> = (0..split.n_validation).map(|i| order.apply(i)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// All records but those that are left out.
pub(crate) fn of_exclude(source: SharedSource, left_out: &LeftOut) -> Result<SharedSource> {
    if left_out.is_empty() {
        Ok(source)
    } else {
        Ok(Arc::new(Subset::new(source, left_out.numbers().into(), true)?))
    }
}

/// The places of the records whose numbers are in these ranges, of `n`, or of those that were chosen.
///
/// # Errors
/// `OutOfRange` for one that does not exist; `Config` for ranges that do not follow one another.
pub(crate) fn left_out(ranges: &[(u64, u64)], n: u64, chosen: Option<&Chosen>) -> Result<LeftOut> {
    let n = chosen.map_or(n, Chosen::of);
    if ranges.iter().any(|(from, to)| from >= to) || ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(Error::config("ranges of records to exclude that do not follow one another")
            .field("exclude")
            .hint("each is [from, to), ascending and apart from the next"));
    }
    // Before memory is taken for them.
    match ranges.last() {
        Some((_, to)) if *to > n => Err(Error::out_of_range("record", to - 1, n).field("exclude")),
        _ => {
            let numbers = ranges.iter().flat_map(|(from, to)| *from..*to);
            let Some(chosen) = chosen else { return Ok(LeftOut::new(numbers.collect())) };
            // One that is not chosen is left out already.
            let mut places: Vec<u64> = numbers.filter_map(|number| chosen.place(number)).collect();
            places.sort_unstable();
            Ok(LeftOut::new(places.into()))
        }
    }
}
