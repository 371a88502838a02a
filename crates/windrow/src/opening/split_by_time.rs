//! A split of every series in time: what is learned comes before what is validated.

use windrow_core::format::{Options, PeriodOfEach};
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;

impl Dataset {
    /// One data set for each fraction: of every series the first, the next, … values. The first part of T values is the
    /// `floor(T × fraction)` first ones, and so on; what the fractions leave over is in none. The parts after the first begin
    /// `context` values earlier, where there are so many: a window may see as its context what another part learned.
    ///
    /// Scalers scale each part by the statistics of the first one, which is all that is known when the others begin.
    ///
    /// # Errors
    /// `Config` for fractions that are not above 0 or add up to more than 1; for records that are not numbers, and parts that
    /// are split again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// std::fs::write(&path, "[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]").unwrap();
    /// let parts = windrow::open(&path)?.split_by_time(&[0.7, 0.1, 0.2], 0)?;
    /// assert_eq!(parts.iter().map(|part| part.source().length(0).unwrap()).collect::<Vec<_>>(), [7, 1, 2]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn split_by_time(&self, fractions: &[f64], context: u64) -> Result<Vec<Dataset>> {
        let borders = borders(fractions)?;
        if self.options().period.is_some() {
            return Err(Error::config("a part of a split by time is split again")
                .hint("give all fractions at once: split_by_time(0.7, 0.1, 0.2)"));
        }
        let fit = borders[0];
        let starts = std::iter::once(0.0).chain(borders.iter().copied());
        let parts = starts.zip(&borders).enumerate().map(|(number, (from, &to))| {
            let before = if number == 0 { 0 } else { context };
            let period = PeriodOfEach { from, to, before, fit };
            self.parted(Options { period: Some(period), ..self.options().clone() })
        });
        parts.collect()
    }
}

// Where each part ends: fractions are added up without what binary fractions leave over.
fn borders(fractions: &[f64]) -> Result<Vec<f64>> {
    const DIGITS: f64 = 1e12;
    let mut all = 0.0;
    let borders: Vec<f64> = fractions
        .iter()
        .map(|fraction| {
            all += fraction;
            (all * DIGITS).round() / DIGITS
        })
        .collect();
    let are_fractions = fractions.iter().all(|fraction| *fraction > 0.0) && all.is_finite();
    match borders.last() {
        Some(last) if are_fractions && *last <= 1.0 => Ok(borders),
        _ => Err(Error::config(format!("a split by time into {fractions:?}"))
            .hint("give fractions above 0 that add up to 1 or less, as 0.7, 0.1, 0.2")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_add_up_to_the_borders_that_are_meant() {
        assert_eq!(borders(&[0.7, 0.1, 0.2]).unwrap(), [0.7, 0.8, 1.0]);
        assert_eq!(borders(&[0.1; 10]).unwrap()[2..], [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]);
        assert_eq!(borders(&[0.5]).unwrap(), [0.5]);
        for wrong in [&[][..], &[0.0], &[0.7, 0.4], &[-0.1, 0.5], &[f64::NAN], &[f64::INFINITY]] {
            assert!(borders(wrong).is_err(), "{wrong:?}");
        }
    }
}
