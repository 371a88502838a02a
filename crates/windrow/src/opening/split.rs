//! A validation split by whole records: no value of a record is on both sides.

use windrow_core::format::{Choice, Options, Split};
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;

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
        let is_split_already = self.options().select.iter().any(|choice| matches!(choice, Choice::Split(_)));
        if self.options().random_split.is_some() || self.options().period.is_some() || is_split_already {
            return Err(Error::config("a part of a split is split again")
                .hint("split the whole data set once, first by records and then by time"));
        }
        let n_validation = ((n as f64 * fraction).round() as u64).clamp(1, n - 1);
        let part = |is_validation| {
            let split = Split { n_validation, seed, is_validation };
            self.parted(Options { random_split: Some(split), ..self.options().clone() })
        };
        Ok((part(false)?, part(true)?))
    }
}
