//! A validation split by whole records: no value of a record is on both sides.

use std::sync::Arc;

use windrow_core::format::{Options, Split};
use windrow_core::sampler::Permutation;
use windrow_core::source::{SharedSource, Subset};
use windrow_core::{Error, Result};

use crate::dataset::Dataset;

/// Sets the split's key apart from the orders of the same seed.
const SPLIT: u64 = 0x7370_6c69_745f_7631;

impl Dataset {
    /// Two data sets: the records to learn from, and `fraction` of all to validate with. Whole records go to one side or
    /// the other, chosen by `seed` alone; each part keeps their order.
    ///
    /// # Errors
    /// `Config` when there are fewer than two records, or the fraction is not between 0 and 1.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// std::fs::write(&path, "[[1, 2], [3, 4], [5, 6], [7, 8]]").unwrap();
    /// let (train, validation) = windrow::open(&path)?.split(0.25, 0)?;
    /// assert_eq!((train.len(), validation.len()), (3, 1));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn split(&self, fraction: f64, seed: u64) -> Result<(Dataset, Dataset)> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::config(format!("a validation part of {fraction}; expected between 0 and 1")));
        }
        let n = self.len();
        if n < 2 {
            return Err(
                Error::config(format!("{n} records cannot be split in two")).or_at(self.paths().to_string())
            );
        }
        if self.options().split.is_some() {
            return Err(
                Error::config("a part of a split is split again").hint("split the whole data set once")
            );
        }
        let n_validation = ((n as f64 * fraction).round() as u64).clamp(1, n - 1);
        let part = |is_validation| {
            let split = Split { n_validation, seed, is_validation };
            let source = part_of(self.source().clone(), split)?;
            let options = Options { split: Some(split), ..self.options().clone() };
            let stores = self.stores().clone();
            Ok(Dataset::new(self.paths().clone(), options, source, self.manifest().cloned(), stores))
        };
        Ok((part(false)?, part(true)?))
    }
}

/// The records of one part.
pub(crate) fn part_of(source: SharedSource, split: Split) -> Result<SharedSource> {
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
