//! A split of every series in time: what is learned comes before what is validated.

use windrow_core::collate::Moment;
use windrow_core::format::{BorderOfEach, Options, PeriodOfEach};
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;

impl Dataset {
    /// One data set for each fraction: of every series the first, the next, … values. The first part of T values is the
    /// `floor(T × fraction)` first ones, and so on; what the fractions leave over is in none. The parts after the first begin
    /// `context` values earlier, where there are as many: a window may see as its context what another part learned.
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
        let borders: Vec<BorderOfEach> =
            borders(fractions)?.into_iter().map(BorderOfEach::Fraction).collect();
        self.split_at(&borders, context)
    }

    /// One data set more than there are times: of every series the values before the first time, those from it on up to the next
    /// one, …, and those from the last time on. A value is at a time by the `start` and `freq` beside its record; `freq` is the
    /// frequency, in pandas's words, of records that have none. A series that is on one side of a time has no values on the other.
    /// `context` and scalers are those of [`Dataset::split_by_time`].
    ///
    /// # Errors
    /// `Config` for what is not a time, times that do not ascend, and a record that lacks `start` or a frequency; for records that
    /// are not numbers, and parts that are split again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.jsonl");
    /// std::fs::write(&path, r#"{"start": "2020-01-30", "target": [30, 31, 1, 2]}"#).unwrap();
    /// let parts = windrow::open(&path)?.split_by_time_at(&["2020-02-01"], Some("D"), 0)?;
    /// assert_eq!(parts.iter().map(|part| part.source().length(0).unwrap()).collect::<Vec<_>>(), [2, 2]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn split_by_time_at(
        &self,
        times: &[impl AsRef<str>],
        freq: Option<&str>,
        context: u64,
    ) -> Result<Vec<Dataset>> {
        let moments: Vec<Moment> =
            times.iter().map(|time| Moment::parse(time.as_ref())).collect::<Result<_>>()?;
        if moments.is_empty() || moments.windows(2).any(|pair| pair[0] >= pair[1]) {
            let times: Vec<&str> = times.iter().map(AsRef::as_ref).collect();
            return Err(Error::config(format!("a split by time at {times:?}"))
                .field("at")
                .hint("give times that ascend, one at least: the first part ends before the first of them"));
        }
        let border = |at: &Moment| BorderOfEach::Time { at: at.to_string(), freq: freq.map(str::to_string) };
        let mut borders: Vec<BorderOfEach> = moments.iter().map(border).collect();
        borders.push(BorderOfEach::Fraction(1.0));
        self.split_at(&borders, context)
    }

    /// One data set more than there are numbers: of every series all but its last values, and after them this many, …: the last part
    /// has as many as the last number says. Of a series that is shorter, later parts have their values first.
    /// `context` and scalers are those of [`Dataset::split_by_time`].
    ///
    /// # Errors
    /// `Config` for none, and for 0 values; for records that are not numbers, and parts that are split again.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// std::fs::write(&path, "[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 2, 3]]").unwrap();
    /// let parts = windrow::open(&path)?.split_by_time_last(&[1, 3], 0)?;
    /// let lengths = |record| parts.iter().map(|part| part.source().length(record).unwrap()).collect::<Vec<_>>();
    /// assert_eq!((lengths(0), lengths(1)), (vec![6, 1, 3], vec![0, 0, 3]));
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn split_by_time_last(&self, last: &[u64], context: u64) -> Result<Vec<Dataset>> {
        let all = last.iter().try_fold(0u64, |all, n| all.checked_add(*n));
        let (Some(mut rest), false) = (all, last.is_empty() || last.contains(&0)) else {
            return Err(Error::config(format!("a split by time with {last:?} values last"))
                .field("last")
                .hint("give the number of values of the last part, above 0, or of each of the last parts"));
        };
        let mut borders = Vec::with_capacity(last.len() + 1);
        for n in last {
            borders.push(BorderOfEach::Last { last: rest });
            rest -= n;
        }
        borders.push(BorderOfEach::Fraction(1.0));
        self.split_at(&borders, context)
    }

    // A part up to each border.
    fn split_at(&self, borders: &[BorderOfEach], context: u64) -> Result<Vec<Dataset>> {
        if self.options().period.is_some() {
            return Err(Error::config("a part of a split by time is split again")
                .hint("give all parts at once, as in split_by_time(0.7, 0.1, 0.2)"));
        }
        let beginning = BorderOfEach::Fraction(0.0);
        let starts = std::iter::once(&beginning).chain(borders);
        let parts = starts.zip(borders).enumerate().map(|(number, (from, to))| {
            let before = if number == 0 { 0 } else { context };
            let period = PeriodOfEach { from: from.clone(), to: to.clone(), before, fit: borders[0].clone() };
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
