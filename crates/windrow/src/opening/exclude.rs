//! Samples without some records, which keep the numbers of all others.

use windrow_core::format::Options;
use windrow_core::{Error, Result};

use crate::mix::{Mixture, part_named};
use crate::opening::dataset::Dataset;
use crate::views::recipe::ScalerName;
use crate::views::samples::Samples;

impl Samples {
    /// The same view of all records but these, by their numbers in its data set. [`trace_row`](crate::trace_row), `find` and
    /// `coverage` of a plan of it still call each record by that number.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("series.json");
    /// std::fs::write(&path, "[[1, 2], [3, 4], [5, 6]]").unwrap();
    /// let rows = windrow::open(&path)?.records(1)?.without(&[1])?;
    /// assert_eq!(rows.batch(&[0, 1], 0)?.get::<i64>("labels")?, [2, 6]);
    /// let plan = rows.loader().rank(0, 1).shuffle(false).plan()?;
    /// assert_eq!(windrow::trace_row(&plan, 0, 1, 0)?.reads[0].record, 2);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    ///
    /// # Errors
    /// `OutOfRange` for a record that does not exist; `Config` for a view that leaves out some already, and for values that a
    /// function of the caller's scales.
    pub fn without(&self, records: &[u64]) -> Result<Samples> {
        if records.is_empty() {
            return Ok(self.clone());
        }
        if let ScalerName::Custom(name) = self.recipe.view.scaler() {
            return Err(Error::config(format!("exclude of a view that {name:?} scales"))
                .field("exclude")
                .hint("a scaler by name, or none, can be computed again without the records"));
        }
        let data = self.data.without(records)?;
        data.view(self.recipe.view.clone(), self.recipe.dtype).map_err(|e| data.left_out.numbered(e))
    }
}

impl Mixture {
    /// The same mixture, of each named part without some of its records.
    ///
    /// # Errors
    /// As [`Samples::without`]; `OutOfRange` for a part that it has not.
    pub fn without(&self, records: &[(String, Vec<u64>)]) -> Result<Mixture> {
        let mut samples = self.samples.clone();
        for (name, records) in records {
            let part = part_named(&self.names, name)?;
            samples[part] = samples[part].without(records).map_err(|e| e.or_at(name))?;
        }
        Mixture::assembled(samples, &self.shares, self.part_ids)
    }
}

impl Dataset {
    fn without(&self, records: &[u64]) -> Result<Dataset> {
        if !self.options().exclude.is_empty() {
            return Err(Error::config("exclude of a data set that leaves out records already")
                .field("exclude")
                .hint("give all of them at once"));
        }
        self.parted(Options { exclude: ranges(records), ..self.options().clone() })
    }
}

// Numbers in any order as ranges `[from, to)`, ascending and apart from each other.
fn ranges(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in sorted {
        match ranges.last_mut() {
            Some((_, to)) if number < *to => {}
            Some((_, to)) if number == *to => *to = number.saturating_add(1),
            _ => ranges.push((number, number.saturating_add(1))),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_any_order_are_ranges() {
        assert_eq!(ranges(&[7, 3, 4, 3, 9, 5]), [(3, 6), (7, 8), (9, 10)]);
        assert_eq!(ranges(&[]), []);
    }
}
