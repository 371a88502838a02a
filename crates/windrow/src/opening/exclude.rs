//! A data set without some records, which keep the numbers of all others.

use windrow_core::format::Options;
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;

impl Dataset {
    /// All records but these.
    ///
    /// # Errors
    /// `OutOfRange` for a record that does not exist; `Config` for a data set that leaves out some already.
    pub(crate) fn without(&self, records: &[u64]) -> Result<Dataset> {
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
