//! Numbers of records where some are left out: as they are then, and as they were.

use std::sync::Arc;

use crate::error::Error;

/// Numbers that are left out, ascending, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(Arc<[u64]>);

impl LeftOut {
    /// Leaves out these, which ascend.
    pub fn new(numbers: Arc<[u64]>) -> LeftOut {
        debug_assert!(numbers.is_sorted());
        LeftOut(numbers)
    }

    /// Those that are left out.
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }

    /// How many are left out.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// None is left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that a record had, by its place among those that are left.
    pub fn number(&self, place: u64) -> u64 {
        // Before the k-th number that is left out come `number - k` others.
        let (mut low, mut high) = (0, self.0.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.0[middle] - middle as u64 <= place { low = middle + 1 } else { high = middle }
        }
        place.saturating_add(low as u64)
    }

    /// Renames the record of an error from its place among those that are left to its number.
    #[must_use]
    pub fn numbered(&self, error: Error) -> Error {
        match error.place().record {
            Some(place) if !self.is_empty() => error.record(self.number(place)),
            _ => error,
        }
    }

    /// Its place among those that are left, by the number that a record had; `None` where it is left out.
    pub fn place(&self, number: u64) -> Option<u64> {
        let before = self.0.partition_point(|left_out| *left_out < number);
        (self.0.get(before) != Some(&number)).then(|| number - before as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_places_are_each_other_s_inverse() {
        for given in [vec![], vec![0], vec![0, 1, 2], vec![5], vec![1, 3, 4, 9], (0..10).collect()] {
            let left_out = LeftOut::new(given.clone().into());
            let kept: Vec<u64> = (0..12).filter(|number| !given.contains(number)).collect();
            for (place, number) in (0..).zip(&kept) {
                assert_eq!((left_out.number(place), left_out.place(*number)), (*number, Some(place)));
            }
            assert!(given.iter().all(|number| left_out.place(*number).is_none()));
            assert_eq!((left_out.len(), left_out.is_empty()), (given.len() as u64, given.is_empty()));
        }
    }
}
